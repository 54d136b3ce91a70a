import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { SENT_BATCH_BYTES, SENT_BATCH_EVENTS } from '../../src/events/limits.ts'
import { fingerprint, projectNode, projectService } from '../../src/events/projection.ts'
import { EVENT_TYPE, type WindlassEvent } from '../../src/events/types.ts'
import { startForwarder } from '../../src/forwarder/forwarder.ts'
import type { Pace } from '../../src/forwarder/pace.ts'
import { kubernetesSource } from '../../src/forwarder/source.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import type { KubeNode } from '../../src/kubernetes/objects.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { Cluster } from './cluster.ts'
import { Receiver } from './receiver.ts'

const KEY = `whsec_${randomBytes(24).toString('base64')}`
const QUICK: Partial<Pace> = {
  gatherMs: 5,
  keepAliveMs: 40,
  retryMinMs: 4,
  retryMaxMs: 40,
  refusedMinMs: 4,
  refusedMaxMs: 40,
  faultyMinMs: 20,
  faultyMaxMs: 60,
  snapshotGapMs: 20,
}

type Line = Record<string, unknown>

function logInto(lines: Line[], level = 'info') {
  return createLogger({ level, destination: { write: (line: string) => void lines.push(JSON.parse(line) as Line) } })
}

async function setUp(t: Test) {
  const cluster = await Cluster.start(t)
  const receiver = await Receiver.start(t, 'prod', [KEY])
  return { cluster, receiver, lines: [] as Line[] }
}

async function start(
  t: Test,
  { cluster, receiver, lines }: Awaited<ReturnType<typeof setUp>>,
  { pace, keys = [KEY], level }: { pace?: Partial<Pace>; keys?: string[]; level?: string } = {},
) {
  const log = logInto(lines, level)
  const connection = await connect({ server: cluster.url }, createLogger({ level: 'silent' }), { env: {} })
  const forwarder = startForwarder({
    cluster: 'prod',
    keys,
    serverUrl: `${receiver.url}/`,
    source: kubernetesSource(connection, createLogger({ level: 'silent' })),
    log,
    pace: { ...QUICK, ...pace },
  })
  t.teardown(async () => {
    await forwarder.stop()
    connection.close()
  })
  return forwarder
}

function truth(cluster: Cluster): Record<string, string> {
  return Object.fromEntries(
    [
      ...cluster.nodes.map((node) => [`Node/${node.metadata.name}`, fingerprint(projectNode(node))]),
      ...cluster.services.map((one) => [`Service/default/${one.metadata.name}`, fingerprint(projectService(one))]),
    ].sort(),
  ) as Record<string, string>
}

const same = (a: object, b: object) => JSON.stringify(a) === JSON.stringify(b)
const named = (event: WindlassEvent) => ('subject' in event ? event.subject : `${event.data.kind} snapshot`)
const told = (events: WindlassEvent[]) => events.map((event) => `${event.type.split('.').at(-1)} ${named(event)}`)
const labelled = (value: string) => (node: KubeNode) => ({
  ...node,
  metadata: { ...node.metadata, labels: { zone: value } },
})

t.test('at the start each kind is sent as a snapshot: begin, items, end', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  for (const name of ['a', 'b']) cluster.putNode(name)
  cluster.putService('web')
  const forwarder = await start(t, parts)
  await forwarder.ready
  t.strictSame(receiver.state, truth(cluster))
  for (const [kind, items] of [
    ['Node', ['changed Node/a', 'changed Node/b']],
    ['Service', ['changed Service/default/web']],
  ] as const) {
    const events = receiver.events.filter((event) => named(event).startsWith(kind))
    t.strictSame(told(events), [`begin ${kind} snapshot`, ...items, `end ${kind} snapshot`])
    const [begin, ...rest] = events
    const end = rest.pop()
    t.ok(begin?.type === EVENT_TYPE.snapshotBegin && end?.type === EVENT_TYPE.snapshotEnd)
    if (begin?.type !== EVENT_TYPE.snapshotBegin || end?.type !== EVENT_TYPE.snapshotEnd) continue
    t.match(end.data, { kind, snapshot: begin.data.snapshot, items: items.length, listVersion: '103' })
    for (const item of rest) t.match(item, { snapshot: begin.data.snapshot })
  }
  t.match(forwarder.stats(), { ready: true, pending: 0, lagMs: 0, objects: 3, epoch: 'epoch-1' })
})

t.test('a change is told once, with a trace that the logs name when it is sent and when it is there', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver, lines } = parts
  cluster.putNode('a')
  const forwarder = await start(t, parts)
  await forwarder.ready
  const before = receiver.events.length
  cluster.putNode('a', labelled('x'))
  await receiver.until(() => same(receiver.state, truth(cluster)))
  await receiver.until(() => forwarder.stats().pending === 0)
  const news = receiver.events.slice(before)
  t.strictSame(told(news), ['changed Node/a'])
  const { id, traceparent } = news[0]!
  const logged = lines.filter((line) => line.eventId === id)
  t.match(logged, [
    { msg: 'Sending a change', subject: 'Node/a', level: 'info' },
    { msg: 'The server has a change', subject: 'Node/a', level: 'info' },
  ])
  for (const line of logged) t.equal(line.traceId, traceparent?.split('-')[1])
})

t.test('heartbeats of a thousand nodes send nothing', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  const beat = (time: string) => (node: KubeNode) => ({
    ...node,
    status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: time }] },
  })
  for (let index = 0; index < 1000; index++) cluster.putNode(`node-${index}`, beat('1'))
  const forwarder = await start(t, parts)
  await forwarder.ready
  const before = receiver.events.length
  for (let index = 0; index < 1000; index++) cluster.putNode(`node-${index}`, beat('2'))
  cluster.putNode('last')
  await receiver.until(() => same(receiver.state, truth(cluster)))
  t.strictSame(told(receiver.events.slice(before)), ['changed Node/last'])
  t.equal(forwarder.stats().filtered, 1000)
})

t.test('changes while the server is away are gathered by object, and the last one wins', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  for (const name of ['a', 'b', 'c', 'd']) cluster.putNode(name)
  const forwarder = await start(t, parts)
  await forwarder.ready
  const uid = (name: string) => cluster.nodes.find((node) => node.metadata.name === name)?.metadata.uid
  const [first, second] = [uid('b'), uid('c')]
  const before = receiver.events.length
  receiver.fault = () => ({ kind: 'status', status: 500 })
  cluster.putNode('d', labelled('under way'))
  const tries = receiver.requests.length
  await receiver.until(() => receiver.requests.length > tries + 1)
  for (let index = 0; index < 200; index++) cluster.putNode('a', labelled(String(index)))
  cluster.putNode('b', labelled('gone'))
  cluster.remove('nodes', 'b')
  for (let index = 0; index < 20; index++) {
    cluster.remove('nodes', 'c')
    cluster.putNode('c')
  }
  await receiver.until(() => forwarder.stats().pending >= 4)
  t.equal(forwarder.stats().objects, 4)
  const again = receiver.requests.length
  await receiver.until(() => receiver.requests.length > again + 2)
  receiver.fault = () => undefined
  await receiver.until(() => forwarder.stats().pending === 0 && same(receiver.state, truth(cluster)))
  const news = receiver.events.slice(before).filter((event) => named(event) !== 'Node/d')
  const of = (name: string) => news.filter((event) => named(event) === `Node/${name}`)
  t.strictSame(told(of('a')), ['changed Node/a'])
  t.match(of('b'), [{ type: EVENT_TYPE.nodeDeleted, data: { uid: first } }])
  t.match(of('c').at(0), { type: EVENT_TYPE.nodeDeleted, data: { uid: second } })
  t.match(of('c').at(-1), { type: EVENT_TYPE.nodeChanged, data: { uid: uid('c') } })
  t.ok(of('c').length <= 3, 'of lives that nobody heard of, the number does not matter')
})

t.test('what vanished while the watch was blind is told as deleted, and the new list as a snapshot', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  for (const name of ['a', 'b']) cluster.putNode(name)
  const forwarder = await start(t, parts)
  await forwarder.ready
  const before = receiver.events.length
  const { uid } = cluster.nodes[0]!.metadata
  cluster.down = true
  cluster.breakWatches()
  cluster.remove('nodes', 'a')
  cluster.putNode('c')
  cluster.breakWatches(true)
  cluster.down = false
  await receiver.until(() => forwarder.stats().relists === 2 && forwarder.stats().pending === 0)
  await receiver.until(() => same(receiver.state, truth(cluster)))
  const news = receiver.events.slice(before).filter((event) => named(event).startsWith('Node'))
  t.strictSame(told(news), [
    'deleted Node/a',
    'begin Node snapshot',
    'changed Node/b',
    'changed Node/c',
    'end Node snapshot',
  ])
  t.match(news[0], { data: { uid } })
})

t.test('a kind of which nothing is heard is told, however much is heard of the other', async (t) => {
  const all = await setUp(t)
  const forwarder = await start(t, all, { pace: { silentMs: 1000 } })
  await forwarder.ready
  const hear = async (kinds: ('nodes' | 'services')[], until: () => boolean) => {
    while (!until()) {
      all.cluster.bookmark(kinds)
      await delay(20)
    }
  }
  const begunMs = Date.now()
  await hear(['nodes'], () => forwarder.silences().length > 0)
  t.match(forwarder.silences(), [/^nothing has been heard of Services for/])
  t.ok(forwarder.stats().lastSignOfLifeMs < Date.now() - 900)
  await hear(['nodes', 'services'], () => forwarder.silences().length === 0)
  t.ok(forwarder.stats().lastSignOfLifeMs > begunMs)
})

t.test('what vanished while the forwarder was down is missing in the next snapshot', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  for (const name of ['a', 'b']) cluster.putNode(name)
  const first = await start(t, parts)
  await first.ready
  await first.stop()
  cluster.remove('nodes', 'a')
  const second = await start(t, parts)
  await second.ready
  t.strictSame(receiver.state, truth(cluster))
  t.strictSame(Object.keys(receiver.state), ['Node/b'])
})

t.test('a new epoch makes everything be sent again, also when nothing changes', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  cluster.putNode('a')
  cluster.putService('web')
  const forwarder = await start(t, parts)
  await forwarder.ready
  const lists = cluster.lists
  for (const epoch of ['epoch-2', 'epoch-3']) {
    receiver.forget(epoch)
    await receiver.until(() => same(receiver.state, truth(cluster)))
    await receiver.until(() => forwarder.stats().pending === 0)
    t.equal(forwarder.stats().epoch, epoch)
  }
  t.equal(cluster.lists, lists, 'from memory: Kubernetes is not asked')
})

t.test('an idle forwarder sends empty batches, each signed and named for itself', async (t) => {
  const parts = await setUp(t)
  const { receiver } = parts
  const forwarder = await start(t, parts)
  await forwarder.ready
  const from = receiver.delivered.length
  await receiver.until(() => receiver.delivered.length >= from + 3)
  const idle = receiver.delivered.slice(from)
  for (const { body } of idle) t.equal(body, '[]')
  t.equal(new Set(idle.map(({ id }) => id)).size, idle.length)
})

t.test('a change while a snapshot is sent comes after its item', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  for (let index = 0; index < SENT_BATCH_EVENTS + 100; index++) cluster.putNode(`node-${index}`)
  let changed = false
  receiver.fault = (events): undefined => {
    if (changed || !events.some((event) => event.type === EVENT_TYPE.snapshotBegin && event.data.kind === 'Node'))
      return
    changed = true
    cluster.putNode('node-0', labelled('during'))
    cluster.remove('nodes', 'node-1')
    cluster.putNode('new')
  }
  const forwarder = await start(t, parts)
  await forwarder.ready
  await receiver.until(() => same(receiver.state, truth(cluster)))
  const events = receiver.events.filter((event) => named(event).startsWith('Node'))
  for (const { events } of receiver.delivered) t.ok(events.length <= SENT_BATCH_EVENTS)
  const at = (text: string) => told(events).lastIndexOf(text)
  t.equal(told(events).filter((one) => one === 'changed Node/node-0').length, 2)
  t.ok(at('changed Node/node-0') > at('end Node snapshot'))
  t.ok(at('deleted Node/node-1') > at('begin Node snapshot'))
  const items = events.filter((event) => 'snapshot' in event).length
  t.match(
    events.find((event) => event.type === EVENT_TYPE.snapshotEnd),
    { data: { items } },
  )
})

t.test('batches end before they are too long', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  const long = 'x'.repeat(50_000)
  for (let index = 0; index < 30; index++) cluster.putNode(`node-${index}`, labelled(long))
  const forwarder = await start(t, parts)
  await forwarder.ready
  t.ok(receiver.delivered.length > 3)
  for (const { body } of receiver.delivered) t.ok(body.length <= SENT_BATCH_BYTES)
  t.strictSame(receiver.state, truth(cluster))
})

t.test('events that the server cut off, hung on or failed at come with the same id until it has them', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  const forwarder = await start(t, parts, { pace: { requestTimeoutMs: 250 } })
  await forwarder.ready
  for (const fault of [
    { kind: 'cut', after: false },
    { kind: 'cut', after: true },
    { kind: 'hang' },
    { kind: 'status', status: 500 },
    { kind: 'status', status: 502 },
    { kind: 'status', status: 503, headers: { 'retry-after': '0' } },
    { kind: 'status', status: 200 },
    { kind: 'status', status: 302 },
    { kind: 'status', status: 404 },
  ] as const) {
    const ids: unknown[] = []
    const name = `${fault.kind}-${'status' in fault ? fault.status : 'after' in fault && fault.after}`
    receiver.fault = (events) => {
      if (!events.some((event) => named(event) === `Node/${name}`)) return undefined
      ids.push(receiver.requests.at(-1)?.['webhook-id'])
      return ids.length < 3 ? fault : undefined
    }
    cluster.putNode(name)
    await receiver.until(() => forwarder.stats().pending === 0 && same(receiver.state, truth(cluster)))
    t.equal(new Set(ids).size, 1, name)
    t.equal(receiver.events.filter((event) => named(event) === `Node/${name}`).length, 1, name)
  }
  t.ok(forwarder.stats().retries >= 16)
  t.match(
    parts.lines.filter(({ level }) => level === 'error'),
    [{ reason: /status 200.*not the answer of a Windlass server/ }],
  )
})

t.test('a clock that is wrong is corrected by the time of the server', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver, lines } = parts
  receiver.aheadMs = 3_600_000
  cluster.putNode('a')
  const forwarder = await start(t, parts)
  await forwarder.ready
  t.strictSame(receiver.state, truth(cluster))
  t.equal(forwarder.stats().retries, 0)
  receiver.aheadMs = -3_600_000
  cluster.putNode('b')
  await receiver.until(() => same(receiver.state, truth(cluster)))
  t.equal(lines.filter(({ msg }) => /Set the clock/.test(String(msg))).length, 2)
})

t.test('a key that the server does not have yet is kept trying, and said loudly', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver, lines } = parts
  cluster.putNode('a')
  const next = `whsec_${randomBytes(24).toString('base64')}`
  const forwarder = await start(t, parts, { keys: [next, KEY] })
  await receiver.until(() => receiver.requests.length >= 3)
  t.match(lines.filter(({ level }) => level === 'error').at(0), { reason: /401.*same webhook key/ })
  t.match(forwarder.stats(), { trouble: /401/, acknowledged: 0 })
  receiver.keys.push(next)
  await forwarder.ready
  t.strictSame(receiver.state, truth(cluster))
  t.equal(forwarder.stats().trouble, undefined)
})

t.test(
  'a batch that is too big goes in halves; one event that is too big alone stays pending, and the others go on',
  async (t) => {
    const parts = await setUp(t)
    const { cluster, receiver, lines } = parts
    for (let index = 0; index < 40; index++) cluster.putNode(`node-${index}`)
    cluster.putNode('fat', labelled('x'.repeat(5000)))
    receiver.fault = (events) => (JSON.stringify(events).length > 5000 ? { kind: 'status', status: 413 } : undefined)
    const forwarder = await start(t, parts)
    await receiver.until(() => Object.keys(receiver.state).length === 40 && forwarder.stats().refused > 0)
    t.match(
      lines.find(({ level, subject }) => level === 'error' && subject),
      { subject: 'Node/fat', reason: /413/ },
    )
    t.notOk(forwarder.stats().ready, 'a snapshot without one of its items is not whole')
    receiver.fault = () => undefined
    await forwarder.ready
    await receiver.until(() => forwarder.stats().pending === 0)
    t.strictSame(receiver.state, truth(cluster))
  },
)

t.test('an event that the server finds faulty does not keep back the others', async (t) => {
  for (const namesIt of [true, false])
    await t.test(namesIt ? 'and names' : 'and does not name', async (t) => {
      const parts = await setUp(t)
      const { cluster, receiver, lines } = parts
      const forwarder = await start(t, parts)
      await forwarder.ready
      const isBad = (event: WindlassEvent) =>
        event.type === EVENT_TYPE.nodeChanged && event.data.labels.zone === 'bad' && event.subject === 'Node/node-7'
      receiver.fault = (events) => {
        const place = events.findIndex(isBad)
        if (place < 0) return undefined
        const faults = [{ path: `$[${place}].data.labels.zone`, message: 'must be good' }]
        return { kind: 'status', status: 400, body: namesIt ? { message: 'faults', faults } : 'Bad Request' }
      }
      for (let index = 0; index < 30; index++) cluster.putNode(`node-${index}`, labelled('bad'))
      await receiver.until(() => Object.keys(receiver.state).length === 29 && forwarder.stats().refused > 1)
      const { reason } = lines.find(({ subject, level }) => subject === 'Node/node-7' && level === 'error')!
      t.match(reason, namesIt ? /400.*\$\[\d+\]\.data\.labels\.zone must be good/ : /400/)
      t.match(forwarder.stats(), { pending: 1, objects: 30 })
      cluster.putNode('node-7', labelled('good'))
      await receiver.until(() => forwarder.stats().pending === 0 && same(receiver.state, truth(cluster)))
    })
})

t.test('a server that finds fault with everything is not asked about every single event', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  receiver.fault = () => ({ kind: 'status', status: 400 })
  for (let index = 0; index < 400; index++) cluster.putNode(`node-${index}`)
  const forwarder = await start(t, parts, { pace: { faultyMinMs: 60_000, faultyMaxMs: 60_000 } })
  await receiver.until(() => forwarder.stats().refused >= 404)
  t.ok(receiver.requests.length < 60, `${receiver.requests.length} requests`)
})

t.test('a stop delivers what is pending, and does not wait for a server that is away', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  const forwarder = await start(t, parts, { pace: { gatherMs: 60_000, flushMs: 60_000 } })
  await forwarder.ready
  const before = receiver.events.length
  cluster.putNode('b')
  cluster.putService('web')
  while (forwarder.stats().pending < 2) await new Promise((resolve) => setImmediate(resolve))
  t.equal(receiver.events.length, before)
  await forwarder.stop()
  t.strictSame(receiver.state, truth(cluster))

  const second = await start(t, parts, { pace: { flushMs: 30, requestTimeoutMs: 60_000 } })
  await second.ready
  receiver.fault = () => ({ kind: 'hang' })
  cluster.putNode('c')
  const requests = receiver.requests.length
  await receiver.until(() => receiver.requests.length > requests)
  await second.stop()
  t.equal(second.stats().pending > 0, !same(receiver.state, truth(cluster)))
})

t.test('two forwarders of one cluster do no harm', async (t) => {
  const parts = await setUp(t)
  const { cluster, receiver } = parts
  cluster.putNode('a')
  const both = [await start(t, parts), await start(t, parts)]
  await Promise.all(both.map(({ ready }) => ready))
  for (let index = 0; index < 20; index++) {
    cluster.putNode('a', labelled(String(index)))
    cluster.remove('nodes', 'b')
    cluster.putNode('b')
  }
  await receiver.until(() => both.every((one) => one.stats().pending === 0) && same(receiver.state, truth(cluster)))
  t.pass('the receiving side has the state of the cluster')
})

t.test('whatever fails, in the end the receiving side has the state of the cluster', async (t) => {
  const name = fc.constantFrom('a', 'b', 'c', 'd')
  const change = fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('node' as const), name, value: fc.nat(2).map(String) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('service' as const), name, value: fc.nat(2).map(String) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('remove' as const), of: fc.constantFrom('nodes', 'services'), name }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('break' as const), forget: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const), epoch: fc.uuid() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('request' as const) }) },
  )
  const fault = fc.oneof(
    { weight: 4, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const), after: fc.boolean() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('status' as const),
        status: fc.constantFrom(400, 401, 404, 413, 429, 500, 503),
      }),
    },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 25 }),
      fc.array(fault, { maxLength: 12 }),
      async (changes, faults) => {
        await t.test('one history', async (t) => {
          const parts = await setUp(t)
          const { cluster, receiver } = parts
          cluster.putNode('a')
          cluster.putService('a')
          receiver.fault = (_events, attempt) => faults[attempt]
          let forwarder = await start(t, parts)
          for (const one of changes) {
            if (one.kind === 'node') cluster.putNode(one.name, labelled(one.value))
            else if (one.kind === 'service')
              cluster.putService(one.name, (service) => ({ ...service, spec: { type: one.value } }))
            else if (one.kind === 'remove') cluster.remove(one.of as 'nodes' | 'services', one.name)
            else if (one.kind === 'break') cluster.breakWatches(one.forget)
            else if (one.kind === 'flush') receiver.forget(one.epoch)
            else if (one.kind === 'restart') {
              await forwarder.stop()
              forwarder = await start(t, parts)
            } else {
              const { length } = receiver.requests
              await receiver.until(() => receiver.requests.length > length)
            }
          }
          await receiver.until(
            () =>
              same(receiver.state, truth(cluster)) &&
              forwarder.stats().pending === 0 &&
              forwarder.stats().ready &&
              forwarder.stats().epoch === receiver.epoch,
          )
          await forwarder.stop()
        })
      },
    ),
    { numRuns: 25 },
  )
})
