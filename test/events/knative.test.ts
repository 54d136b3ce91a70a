import { CloudEvent, HTTP, type Message } from 'cloudevents'
import fc from 'fast-check'
import t from 'tap'
import { readCloudEvent } from '../../src/events/http-binding.ts'
import { type KnativeEvent, readKnativeEvent } from '../../src/events/knative.ts'
import { KNATIVE_TYPE } from '../../src/events/knative-schema.ts'
import { projectNode, projectService } from '../../src/events/projection.ts'
import { validateBatch } from '../../src/events/schema.ts'
import { EVENT_TYPE, sourceOf } from '../../src/events/types.ts'
import { anyNode, anyService } from './objects.ts'

const NODE = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'w1', uid: 'u-1', resourceVersion: '7', creationTimestamp: '2026-01-02T03:04:05Z' },
  status: { images: [{ names: ['x'] }] },
}
const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { ...NODE.metadata, name: 'web', namespace: 'default' },
  spec: { type: 'LoadBalancer', ports: [{ port: 80, targetPort: 'http' }] },
}

/** As an ApiServerSource makes it, with the attributes that it adds. */
const event = (more: object = {}, data: unknown = NODE) => ({
  specversion: '1.0',
  id: '0b5e7a52-9d1c-4c69-8f0e-1a2b3c4d5e6f',
  source: 'https://10.96.0.1:443',
  type: KNATIVE_TYPE.update,
  subject: '/apis/v1/namespaces//nodes/w1',
  time: '2026-01-02T03:04:05.678Z',
  datacontenttype: 'application/json',
  apiversion: 'v1',
  kind: 'Node',
  name: 'w1',
  namespace: '',
  data,
  ...more,
})

const read = ({ headers, body }: Message) => {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  return readCloudEvent(Object.fromEntries(lower), Buffer.from(String(body)))
}

t.test("both content modes of the specification's own library are one event", (t) => {
  const { namespace: _, ...attributes } = event({ source: 'https://example.org/?a=%20' })
  const sent = new CloudEvent<unknown>(attributes)
  for (const message of [HTTP.binary(sent), HTTP.structured(sent)])
    t.match(readKnativeEvent(read(message).event), {
      event: { id: sent.id, source: sent.source, type: KNATIVE_TYPE.update, about: { kind: 'Node' } },
    })
  t.end()
})

t.test('a request as an ApiServerSource sends it is read', (t) => {
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'ce-id': '1',
    'ce-source': 'https://10.96.0.1:443',
    'ce-specversion': '1.0',
    'ce-type': KNATIVE_TYPE.add,
    'ce-kind': 'Node',
    'ce-name': 'w1',
    'ce-namespace': '',
    'ce-time': '2026-01-02T03:04:05.678Z',
    'kn-namespace': 'windlass',
  }
  const { event: given } = readCloudEvent(headers, Buffer.from(JSON.stringify(NODE)))
  t.notOk(Object.hasOwn(given ?? {}, 'kn-namespace'))
  t.match(readKnativeEvent(given), {
    event: { id: '1', deleted: false, about: { kind: 'Node', node: { name: 'w1' } } },
  })
  t.end()
})

t.test('data in base64 is data', (t) => {
  const structured = (json: unknown) =>
    readCloudEvent({ 'content-type': 'Application/CloudEvents+JSON; charset=utf-8' }, Buffer.from(JSON.stringify(json)))
  const { data: _, ...bare } = event()
  const encoded = Buffer.from(JSON.stringify(NODE)).toString('base64')
  t.match(readKnativeEvent(structured({ ...bare, data_base64: encoded }).event), { event: { about: { kind: 'Node' } } })
  for (const data_base64 of ['no JSON', 7])
    t.match(structured({ ...bare, data_base64 }).faults, [{ path: '$.data_base64' }])
  for (const json of [[event()], 'text', null]) t.match(structured(json).faults, [{ path: '$' }])
  t.match(readCloudEvent({}, Buffer.from('{')).faults, [{ path: '$.data' }])
  t.end()
})

t.test('an object of Kubernetes is to Windlass what the forwarder makes of it', (t) => {
  const throughJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
  const about = (data: object) => (readKnativeEvent(event({}, data)).event as KnativeEvent).about
  fc.assert(
    fc.property(anyNode, anyService, (someNode, someService) => {
      const [node, service] = throughJson([someNode, someService] as const)
      const nodeAbout = about({ ...node, apiVersion: 'v1', kind: 'Node' })
      const serviceAbout = about({ ...service, apiVersion: 'v1', kind: 'Service' })
      t.same(nodeAbout, { kind: 'Node', node: projectNode(node) })
      t.same(serviceAbout, { kind: 'Service', service: projectService(service) })
      const envelope = {
        specversion: '1.0',
        time: event().time,
        source: sourceOf('c'),
        datacontenttype: 'application/json',
      }
      const batch = throughJson([
        {
          ...envelope,
          id: '1',
          type: EVENT_TYPE.nodeChanged,
          subject: `Node/${node.metadata.name}`,
          data: projectNode(node),
        },
      ])
      t.equal(validateBatch(batch, 'c').faults, undefined)
    }),
    { numRuns: 100 },
  )
  t.end()
})

t.test('what is not of use to Windlass is not taken along', (t) => {
  const address = { type: 'InternalIP', address: '10.0.0.1', more: 'x' }
  const { event: taken } = readKnativeEvent(event({}, { ...NODE, status: { addresses: [address] } }))
  t.same(taken?.about.kind === 'Node' && taken.about.node.addresses, [{ type: 'InternalIP', address: '10.0.0.1' }])
  t.end()
})

const reference = { apiVersion: 'v1', kind: 'Service', name: 'web', namespace: 'default' }

t.test('a reference says which object, and no more', (t) => {
  t.same(readKnativeEvent(event({ type: KNATIVE_TYPE.refAdd }, reference)).event?.about, {
    kind: 'reference',
    ref: { kind: 'Service', namespace: 'default', name: 'web' },
  })
  const node = { apiVersion: 'v1', kind: 'Node', name: 'w1', namespace: '' }
  t.same(readKnativeEvent(event({ type: KNATIVE_TYPE.refDelete }, node)).event, {
    id: event().id,
    source: event().source,
    type: KNATIVE_TYPE.refDelete,
    time: event().time,
    traceparent: undefined,
    deleted: true,
    about: { kind: 'reference', ref: { kind: 'Node', name: 'w1' } },
  })
  t.end()
})

const wrong: [what: string, json: unknown, path: string, message: RegExp][] = [
  ['no object', [], '$', /JSON object/],
  ['another version', event({ specversion: '0.3' }), '$.specversion', /"1.0"/],
  ['no id', event({ id: '' }), '$.id', /1 to 256/],
  ['no source', event({ source: undefined }), '$.source', /missing/],
  ['an event of another source', event({ type: 'dev.knative.sources.ping' }), '$.type', /ApiServerSource/],
  ['no data', event({}, null), '$.data', /the object/],
  ['an object that nobody asked for', event({}, { ...NODE, kind: 'Pod' }), '$.data.kind', /names no other resources/],
  [
    "Knative's own kind of Service",
    event({}, { ...SERVICE, apiVersion: 'serving.knative.dev/v1' }),
    '$.data.apiVersion',
    /names no other resources/,
  ],
  [
    'a name that is none',
    event({}, { ...NODE, metadata: { ...NODE.metadata, name: '../x' } }),
    '$.data.metadata.name',
    /DNS/,
  ],
  [
    'a Service without namespace',
    event({}, { ...SERVICE, metadata: NODE.metadata }),
    '$.data.metadata.namespace',
    /missing/,
  ],
  ['a Service without spec', event({}, { ...SERVICE, spec: undefined }), '$.data.spec', /missing/],
  [
    'a version that is no number',
    event({}, { ...NODE, metadata: { ...NODE.metadata, resourceVersion: '0x1' } }),
    '$.data.metadata.resourceVersion',
    /decimal/,
  ],
  [
    'a port that is none',
    event({}, { ...SERVICE, spec: { ports: [{ port: 70000 }] } }),
    '$.data.spec.ports[0].port',
    /65535/,
  ],
  [
    'a reference without namespace',
    event({ type: KNATIVE_TYPE.refAdd }, { ...reference, namespace: undefined }),
    '$.data.namespace',
    /missing/,
  ],
  ['a reference in place of an object', event({}, reference), '$.data.metadata', /missing/],
]
for (const [what, json, path, message] of wrong)
  t.test(`${what} is told by its path`, (t) => {
    const found = readKnativeEvent(JSON.parse(JSON.stringify(json))).faults?.find((fault) => fault.path === path)
    t.match(found?.message, message)
    t.end()
  })

t.test('nothing that is sent makes it fail', (t) => {
  const data = fc.object({ key: fc.constantFrom('apiVersion', 'kind', 'metadata', 'name', 'spec', '__proto__', 'x') })
  fc.assert(
    fc.property(
      data,
      fc.constantFrom(...Object.values(KNATIVE_TYPE)),
      fc.constantFrom('Node', 'Service'),
      (d, type, kind) => {
        const { event: taken, faults = [] } = readKnativeEvent(event({ type }, { ...d, apiVersion: 'v1', kind }))
        t.ok(taken || faults.length > 0)
      },
    ),
  )
  t.end()
})
