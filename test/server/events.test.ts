import { randomUUID } from 'node:crypto'
import t from 'tap'
import { fingerprint } from '../../src/events/projection.ts'
import { sign } from '../../src/events/sign.ts'
import { BATCH_CONTENT_TYPE, EPOCH_HEADER, eventsPath, SERVER_TIME_HEADER } from '../../src/events/types.ts'
import { nodeOf, serviceOf } from '../state/stores.ts'
import {
  harness,
  KEY,
  nodeChanged,
  nodeDeleted,
  OLD_KEY,
  serviceChanged,
  serviceDeleted,
  snapshotBegin,
  snapshotEnd,
} from './harness.ts'

const h = await harness(t)
let objects = 0
let versions = 100
const fresh = () => `o${++objects}`
const version = () => ++versions
const keysOf = (triggers: { key: string }[]) => triggers.map(({ key }) => key).sort()

/** A request that is good but for what `more` changes. */
async function send(more: { url?: string; headers?: Record<string, string | undefined>; payload?: string | Buffer }) {
  const payload = more.payload ?? '[]'
  const headers = {
    'content-type': BATCH_CONTENT_TYPE,
    ...sign(KEY, randomUUID(), Date.now(), payload.toString()),
    ...more.headers,
  }
  return await h.server.app.inject({
    method: 'POST',
    url: more.url ?? eventsPath('default'),
    headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
    payload,
  })
}

t.test('an empty batch tells the epoch', async (t) => {
  const answer = await h.post([])
  t.equal(answer.status, 202)
  t.same(answer.body, { accepted: 0, epoch: (await h.stores.epochs.current()).id })
  t.equal(answer.headers[EPOCH_HEADER], answer.body.epoch)
  t.equal(h.asserted(), 1, 'and a new one has the schedules asserted')
  await h.post([])
  t.equal(h.asserted(), 1)
})

const answers: [what: string, request: Parameters<typeof send>[0], status: number, message: RegExp][] = [
  ['a cluster that the server does not know', { url: eventsPath('nobody') }, 404, /no cluster of this name/],
  ['no signature', { headers: { 'webhook-signature': undefined } }, 401, /webhook-signature/],
  ['no id', { headers: { 'webhook-id': undefined } }, 401, /webhook-id/],
  ['no timestamp', { headers: { 'webhook-timestamp': undefined } }, 401, /webhook-timestamp/],
  ['a signature of another key', { headers: sign(OLD_KEY.replace(/^./, 'z'), 'a', Date.now(), '[]') }, 401, /No key/],
  ['a stale signature', { headers: sign(KEY, 'a', Date.now() - 301_000, '[]') }, 401, /server's time/],
  ['a signature from the future', { headers: sign(KEY, 'a', Date.now() + 302_000, '[]') }, 401, /server's time/],
  ['another content type', { headers: { 'content-type': 'application/json' } }, 415, /cloudevents-batch/],
  ['no JSON', { payload: '{' }, 400, /contract/],
  ['no list', { payload: '{}' }, 400, /contract/],
  ['too much', { payload: `[${' '.repeat(1024 * 1024)}]` }, 413, /1048576 bytes.*fewer/],
  ['an empty body', { payload: '' }, 400, /contract/],
]
for (const [what, request, status, message] of answers)
  t.test(`${what} is answered ${status}`, async (t) => {
    const answer = await send(request)
    t.equal(answer.statusCode, status)
    t.match(answer.json().message, message)
    t.notOk(answer.headers[EPOCH_HEADER])
  })

t.test("only a stale signature is told the server's time", async (t) => {
  const stale = await send({ headers: sign(KEY, 'a', Date.now() - 400_000, '[]') })
  t.ok(Math.abs(Number(stale.headers[SERVER_TIME_HEADER]) - Date.now() / 1000) < 60)
  const bad = await send({ headers: { ...sign(KEY, 'a', Date.now() - 400_000, '[]'), 'webhook-signature': 'v1,AAAA' } })
  t.equal(bad.statusCode, 401)
  t.notOk(bad.headers[SERVER_TIME_HEADER])
})

t.test('each of the keys verifies', async (t) => {
  t.equal((await h.post([], { key: OLD_KEY })).status, 202)
  t.equal((await h.post([], { key: OLD_KEY, cluster: 'other' })).status, 401)
})

t.test('the bytes are verified before anything looks into them', async (t) => {
  const payload = JSON.stringify([nodeChanged(nodeOf(fresh(), version()))])
  const signed = sign(KEY, randomUUID(), Date.now(), payload)
  t.equal((await send({ payload: payload.replace('"True"', '"true"'), headers: signed })).statusCode, 401)
  t.equal((await send({ payload: `${payload} `, headers: signed })).statusCode, 401)
  t.equal((await send({ payload, headers: signed })).statusCode, 202)
})

t.test('what is wrong with a batch is said by its path', async (t) => {
  h.triggers()
  const good = nodeChanged(nodeOf(fresh(), version()))
  const answer = await h.post([good, { ...good, id: 'x', subject: 'Node/other' } as never])
  t.equal(answer.status, 400)
  t.same(
    answer.body.faults?.map(({ path }) => path),
    ['$[1].subject'],
  )
  t.same(h.triggers(), [], 'and nothing of it is taken')
  const elsewhere = await h.post([good], { cluster: 'other' })
  t.same([elsewhere.status, elsewhere.body.faults?.[0]?.path], [400, '$[0].source'])
})

t.test('a new node costs a job for it, one for the targets and one for the routes', async (t) => {
  const name = fresh()
  const node = nodeOf(name, version())
  const event = nodeChanged(node, { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` })
  t.equal((await h.post([event])).status, 202)
  const triggers = h.triggers()
  t.same(keysOf(triggers), ['Cluster/routes', 'Cluster/targets', `Node/${name}`])
  const found = triggers.find(({ key }) => key === `Node/${name}`)
  t.match(found, { kind: 'node', urgency: 'user', uid: node.uid, eventId: event.id, traceparent: /^00-a/ })
  const targets = triggers.find(({ kind }) => kind === 'targets')
  t.match(targets, { eventId: event.id, delayMs: 200 })
  t.ok((await h.jobs()).has(`Node/${name}`), 'and Redis holds it')
  const line = h.logged.find(({ msg, eventId }) => msg === 'an object changed' && eventId === event.id)
  t.match(line, {
    cluster: 'default',
    traceId: 'a'.repeat(32),
    subject: `Node/${name}`,
    verdict: 'changed',
    jobId: /./,
  })
  t.match(h.logged.at(-1), { msg: 'a batch was accepted', events: 1, jobs: 3, webhookId: /./ })
})

t.test('a change that no target depends on costs one job', async (t) => {
  const name = fresh()
  await h.post([nodeChanged(nodeOf(name, version()))])
  h.triggers()
  await h.post([nodeChanged(nodeOf(name, version(), { ready: 'False' }))])
  t.same(keysOf(h.triggers()), [`Node/${name}`])
})

t.test('a node that goes costs the same three', async (t) => {
  const name = fresh()
  await h.post([nodeChanged(nodeOf(name, version()))])
  h.triggers()
  await h.post([nodeDeleted(name, `uid-${name}`, version())])
  t.same(keysOf(h.triggers()), ['Cluster/routes', 'Cluster/targets', `Node/${name}`])
})

t.test('a state older than the known one costs nothing', async (t) => {
  const name = fresh()
  const [older, newer] = [version(), version()]
  await h.post([nodeChanged(nodeOf(name, newer, { ready: 'False' }))])
  h.triggers()
  t.equal((await h.post([nodeChanged(nodeOf(name, older))])).status, 202)
  t.same(h.triggers(), [])
})

t.test('the echo of our own write costs nothing, any other state does', async (t) => {
  const name = fresh()
  const before = nodeOf(name, version())
  await h.post([nodeChanged(before)])
  h.triggers()
  const subject = `Node/${name}` as const
  const after = nodeOf(name, version(), { labels: { ours: 'x' } })
  const token = await h.stores.handled.begin('default', subject)
  t.ok(await h.stores.handled.record('default', subject, token, fingerprint(after)))
  await h.post([nodeChanged(after)])
  t.same(keysOf(h.triggers()), ['Cluster/targets'], 'labels may be selected by')
  await h.post([nodeChanged(nodeOf(name, version(), { labels: { ours: 'x' }, ready: 'False' }))])
  t.same(keysOf(h.triggers()), [`Node/${name}`])
})

t.test(
  'a snapshot after a start looks again at what was handled, behind everything else; the next one does not',
  async (t) => {
    const [handled, open] = [fresh(), fresh()]
    const one = nodeOf(handled, version())
    const two = nodeOf(open, version())
    await h.post([nodeChanged(one), nodeChanged(two)])
    const subject = `Node/${handled}` as const
    await h.stores.handled.record(
      'default',
      subject,
      await h.stores.handled.begin('default', subject),
      fingerprint(one),
    )
    for (const snapshot of ['first', 'second']) {
      h.triggers()
      const items = [nodeChanged(one, { snapshot }), nodeChanged(two, { snapshot })]
      await h.post([snapshotBegin('Node', snapshot), ...items, snapshotEnd('Node', snapshot, 99, version())])
      const urgencies = h.triggers().map(({ key, urgency }) => [key, urgency])
      const again = snapshot === 'first' ? [[subject, 'background']] : []
      t.same(urgencies, [...again, [`Node/${open}`, 'user']], snapshot)
    }
  },
)

const wants: [what: string, service: Parameters<typeof serviceOf>[2], asked: boolean][] = [
  ['of type LoadBalancer', {}, true],
  ['of type ClusterIP', { type: 'ClusterIP' }, false],
  ['of a class', { loadBalancerClass: 'metallb' }, false],
  ['of one of our classes', { loadBalancerClass: 'example.com/ours' }, true],
  ['of a class that is called as what every object has', { loadBalancerClass: 'constructor' }, false],
  ['with our finalizer', { type: 'ClusterIP', finalizers: ['service.kubernetes.io/load-balancer-cleanup'] }, true],
  [
    'that is being deleted with our finalizer',
    { deleting: true, finalizers: ['service.kubernetes.io/load-balancer-cleanup'] },
    true,
  ],
]
for (const [what, more, asked] of wants)
  t.test(`a Service ${what} ${asked ? 'costs a job' : 'costs nothing'}`, async (t) => {
    const name = fresh()
    await h.post([serviceChanged(serviceOf(name, version(), more))])
    t.same(keysOf(h.triggers()), asked ? [`Service/default/${name}`] : [])
  })

t.test(
  'a Service that is no longer of type LoadBalancer is looked at once more, also without our finalizer',
  async (t) => {
    const name = fresh()
    await h.post([serviceChanged(serviceOf(name, version()))])
    h.triggers()
    await h.post([serviceChanged(serviceOf(name, version(), { type: 'ClusterIP' }))])
    t.match(h.triggers(), [{ kind: 'service', key: `Service/default/${name}`, uid: `uid-${name}` }])
    await h.post([serviceChanged(serviceOf(name, version(), { type: 'ClusterIP', annotations: { a: 'b' } }))])
    t.same(h.triggers(), [])
  },
)

t.test('a Service that goes is told with its uid if it was ours', async (t) => {
  const [ours, other] = [fresh(), fresh()]
  await h.post([
    serviceChanged(serviceOf(ours, version())),
    serviceChanged(serviceOf(other, version(), { type: 'ClusterIP' })),
  ])
  h.triggers()
  await h.post([serviceDeleted(ours, `uid-${ours}`, version()), serviceDeleted(other, `uid-${other}`, version())])
  t.match(h.triggers(), [{ key: `Service/default/${ours}`, uid: `uid-${ours}`, urgency: 'user', cause: 'deleted' }])
})

t.test('what vanished while nobody watched is found by the next snapshot', async (t) => {
  const [gone, stays] = [fresh(), fresh()]
  const kept = serviceOf(stays, version())
  await h.post([serviceChanged(serviceOf(gone, version())), serviceChanged(kept)])
  const parts = [
    [snapshotBegin('Service', 's')],
    [serviceChanged(kept, { snapshot: 's' })],
    [snapshotEnd('Service', 's', 1, version())],
  ]
  for (const part of parts) {
    h.triggers()
    t.equal((await h.post(part)).status, 202)
  }
  const vanished = h.triggers()
  t.ok(vanished.every(({ cause }) => cause === 'vanished'))
  t.ok(keysOf(vanished).includes(`Service/default/${gone}`))
  t.notOk(keysOf(vanished).includes(`Service/default/${stays}`))
})

t.test('a cluster without pod routes is not bothered with them', async (t) => {
  const name = fresh()
  const event = { ...nodeChanged(nodeOf(name, version())), source: '/clusters/other' }
  t.equal((await h.post([event], { cluster: 'other' })).status, 202)
  t.same(keysOf(h.triggers()), ['Cluster/targets', `Node/${name}`])
  t.same(await h.stores.outbox.read('other'), [])
})

t.test('a batch that comes twice does nothing the second time', async (t) => {
  const name = fresh()
  const batch = [nodeChanged(nodeOf(name, version()))]
  const id = randomUUID()
  t.equal((await h.post(batch, { id })).status, 202)
  h.triggers()
  const again = await h.post(batch, { id, atMs: Date.now() + 1000 })
  t.equal(again.status, 202)
  t.equal(again.body.accepted, 1)
  t.same(h.triggers(), [])
})

t.test('several states of one object in one batch cost one job', async (t) => {
  const name = fresh()
  await h.post([1, 2, 3].map((n) => nodeChanged(nodeOf(name, version(), { labels: { n: String(n) } }))))
  t.equal(h.triggers().filter(({ key }) => key === `Node/${name}`).length, 1)
  t.equal((await h.stores.nodes.get('default', name)).node?.labels.n, '3')
})

t.test('no log line has a key or a signature', async (t) => {
  const all = JSON.stringify(h.logged)
  t.notMatch(all, KEY)
  t.notMatch(all, OLD_KEY)
  t.notMatch(all, 'v1,')
})
