import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import t from 'tap'
import { projectNode, projectService } from '../../src/events/projection.ts'
import { BatchSchema, validateBatch } from '../../src/events/schema.ts'
import { subjectOf } from '../../src/events/subject.ts'
import { EVENT_TYPE, sourceOf, type WindlassEvent } from '../../src/events/types.ts'
import { anyNode, anyService } from './objects.ts'

const node = projectNode({
  metadata: { name: 'worker-1', uid: 'u-1', resourceVersion: '7', creationTimestamp: '2026-01-02T03:04:05Z' },
})

function event(changes: object = {}) {
  return {
    specversion: '1.0',
    id: 'e-1',
    source: sourceOf('prod'),
    type: EVENT_TYPE.nodeChanged,
    subject: 'Node/worker-1',
    time: '2026-01-02T03:04:05.678Z',
    datacontenttype: 'application/json',
    data: node,
    ...changes,
  }
}

const faultsOf = (...events: unknown[]) => validateBatch(events, 'prod').faults

t.test('every object of Kubernetes makes events that are let in as they are', (t) => {
  const throughJson = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown
  fc.assert(
    fc.property(fc.array(anyNode, { maxLength: 3 }), fc.array(anyService, { maxLength: 3 }), (nodes, services) => {
      const events = [
        event({
          id: 'begin',
          type: EVENT_TYPE.snapshotBegin,
          data: { kind: 'Node', snapshot: 's' },
          subject: undefined,
        }),
        ...nodes
          .map(projectNode)
          .map((data, index) =>
            event({ id: `n${index}`, subject: subjectOf({ kind: 'Node', name: data.name }), data, snapshot: 's' }),
          ),
        ...services.map(projectService).flatMap((data, index) => {
          const subject = subjectOf({ kind: 'Service', namespace: data.namespace, name: data.name })
          const { uid, resourceVersion } = data
          return [
            event({ id: `s${index}`, type: EVENT_TYPE.serviceChanged, subject, data }),
            event({ id: `d${index}`, type: EVENT_TYPE.serviceDeleted, subject, data: { uid, resourceVersion } }),
          ]
        }),
        event({
          id: 'end',
          type: EVENT_TYPE.snapshotEnd,
          data: { kind: 'Node', snapshot: 's', items: nodes.length, listVersion: '12' },
          subject: undefined,
        }),
      ]
      const batch = throughJson(events)
      t.strictSame(validateBatch(batch, 'prod'), { events: throughJson(events) })
    }),
    { numRuns: 30 },
  )
  t.end()
})

t.test('a fault names its place and what would be right', (t) => {
  const { uid: _, ...withoutUid } = node
  const cases: [object, string, RegExp][] = [
    [{ source: '/clusters/other' }, '.source', /must be "\/clusters\/prod"/],
    [{ subject: 'Node/other' }, '.subject', /must be "Node\/worker-1"/],
    [{ subject: 'Service/a/b' }, '.subject', /"Node\/\{name\}"/],
    [{ subject: undefined }, '.subject', /missing/],
    [{ type: 'dev.windlass.pod.changed' }, '.type', /dev\.windlass\.node\.changed.*update the server first/],
    [{ id: '' }, '.id', /printable/],
    [{ specversion: '0.3' }, '.specversion', /"1.0"/],
    [{ time: 'yesterday' }, '.time', /RFC 3339/],
    [{ snapsot: 'x' }, '.snapsot', /must not be there.*snapshot/],
    [{ data: withoutUid }, '.data.uid', /is missing: must be the object's uid/],
    [{ data: { ...node, resourceVersion: '007' } }, '.data.resourceVersion', /leading zeros/],
    [{ data: { ...node, name: 'Worker_1' } }, '.data.name', /DNS name/],
    [{ data: { ...node, labels: { 'a/b': 1 } } }, '.data.labels["a/b"]', /a string/],
    [{ data: { ...node, taints: [{ key: 'a', effect: 'b' }, { key: 'a' }] } }, '.data.taints[1].effect', /missing/],
    [{ data: null }, '.data', /projection of a Node/],
    [{ traceparent: 'x' }, '.traceparent', /traceparent/],
  ]
  for (const [changes, path, message] of cases) {
    const faults = faultsOf(event({ id: 'fine' }), JSON.parse(JSON.stringify(event(changes))))
    t.match(faults, [{ path: `$[1]${path}`, message }], path)
    t.equal(faults?.length, 1, path)
  }
  t.match(validateBatch({}, 'prod').faults, [{ path: '$', message: /array/ }])
  t.match(faultsOf(7, null, []), [{ path: '$[0]' }, { path: '$[1]' }, { path: '$[2]' }])
  t.end()
})

t.test('keys that would change an object instead of filling it are refused', (t) => {
  const hostile = JSON.parse(JSON.stringify(event()).replace('"labels":{}', '"labels":{"__proto__":"x"}')) as unknown
  t.match(faultsOf(hostile), [{ path: '$[0].data.labels.__proto__' }])
  t.end()
})

t.test('ids differ within a batch, and batches have an end', (t) => {
  t.match(faultsOf(event(), event()), [{ path: '$[1].id', message: /differ/ }])
  t.match(faultsOf(...Array.from({ length: 2001 }, (_, index) => event({ id: `e${index}` }))), [
    { path: '$', message: /at most 2000 events, not 2001/ },
  ])
  t.equal(faultsOf(...Array.from({ length: 1000 }, () => ({}))!)?.length, 50)
  t.strictSame(validateBatch([], 'prod'), { events: [] })
  t.end()
})

t.test('a newer forwarder may send more fields in data: they are left out', (t) => {
  const newer = event({ data: { ...node, later: { than: 'us' }, taints: [{ key: 'a', effect: 'b', since: 1 }] } })
  const { events } = validateBatch([newer], 'prod')
  t.strictSame(events, [event({ data: { ...node, taints: [{ key: 'a', effect: 'b' }] } }) as WindlassEvent])
  t.end()
})

t.test('the schema of a batch is plain JSON, for descriptions', (t) => {
  const schema = JSON.parse(JSON.stringify(BatchSchema)) as { type: string; items: { anyOf: unknown[] } }
  t.equal(schema.type, 'array')
  t.equal(schema.items.anyOf.length, Object.keys(EVENT_TYPE).length)
  t.end()
})

t.test('the example in the documentation is valid', async (t) => {
  const page = await readFile(new URL('../../docs/events.md', import.meta.url), 'utf8')
  const example = /```json\n([\s\S]*?)```/.exec(page)?.[1]
  t.equal(validateBatch(JSON.parse(example!), 'prod').events?.length, 1)
})
