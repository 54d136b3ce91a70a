import t from 'tap'
import { tellOfWaits } from '../../src/controllers/lasting-waits.ts'
import type { Reconcile, ReconcileRequest } from '../../src/controllers/reconcile.ts'
import { tellObject } from '../../src/controllers/tell-object.ts'
import { throttled, transient } from '../../src/errors.ts'
import { EventRecorder } from '../../src/kubernetes/events.ts'
import { startWorld } from '../integration/world.ts'

const world = await startWorld({ kubernetes: 'simulator' })
t.teardown(() => world.stop())
const recorder = new EventRecorder({ api: world.api, log: world.call.log })
t.teardown(() => recorder.close())

const locked = () => throttled('Hetzner Cloud, updating load balancer 5: it is locked (locked)', Date.now() + 3000)

/** What is told of runs that end, one after the other, at these seconds and like this. */
async function told(name: string, runs: [atS: number, end: () => Error | undefined][]): Promise<string[]> {
  const service = await world.addService(name)
  let atS = 0
  let end: () => Error | undefined = () => undefined
  const cluster = { kubernetes: world.api, recorder, nowMs: () => atS * 1000 }
  const reconcile: Reconcile = async () => {
    const error = end()
    if (error) throw error
    return {}
  }
  const telling = tellOfWaits(cluster, reconcile)
  const request: ReconcileRequest = {
    key: `Service/default/${name}`,
    cause: 'changed',
    urgency: 'user',
    call: world.call,
  }
  for (const run of runs) {
    ;[atS, end] = run
    const wanted = end()
    if (wanted) await t.rejects(telling(request), { message: wanted.message })
    else await telling(request)
  }
  await recorder.flush(10_000)
  return (await world.events())
    .filter(({ involvedObject }) => involvedObject.uid === service.metadata.uid)
    .map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
}

t.test('a lock at the cloud that lasts is told on the object', async (t) => {
  const [event, ...others] = await told(
    'locked',
    [0, 3, 30, 59, 60, 63].map((atS) => [atS, locked]),
  )
  t.match(event, /^Warning Waiting: .*load balancer 5: it is locked/)
  t.same(others, [])
})

t.test('one that passes is not', async (t) => {
  t.same(
    await told('passes', [
      [0, locked],
      [59, locked],
      [62, () => undefined],
      [90, locked],
    ]),
    [],
  )
})

t.test('nor one that a failure came between, which is told by itself', async (t) => {
  t.same(
    await told('fails', [
      [0, locked],
      [50, () => transient('no answer')],
      [61, locked],
    ]),
    [],
  )
})

t.test('what lasts is tried again less and less often, but for what says itself when it is over', async (t) => {
  let atMs = 1_000_000
  let error = () => throttled('it is locked', atMs + 3000, { code: 'locked' })
  const telling = tellOfWaits({ kubernetes: world.api, recorder, nowMs: () => atMs }, async () => {
    throw error()
  })
  const request: ReconcileRequest = { key: 'Cluster/routes', cause: 'changed', urgency: 'user', call: world.call }
  const waits = async (lastedS: number) => {
    atMs = 1_000_000 + lastedS * 1000
    const { kind, code, retryAtMs, userRetryAtMs } = await telling(request).catch((thrown) => thrown)
    t.equal(kind, 'throttled')
    return { code, waitS: (retryAtMs - atMs) / 1000, userWaitS: (userRetryAtMs - atMs) / 1000 }
  }
  const both = (waitS: number) => ({ code: 'locked', waitS, userWaitS: waitS })
  t.same(await waits(0), both(3))
  t.same(await waits(20), both(3))
  t.same(await waits(300), both(30))
  t.same(await waits(600), both(60))
  t.same(await waits(1000), both(60))
  error = () => throttled('used up', atMs + 1000, { code: 'rate_limit_exceeded', userRetryAtMs: atMs })
  t.same(await waits(1100), { code: 'rate_limit_exceeded', waitS: 1, userWaitS: 0 })
})

t.test('two that are far apart are two', async (t) => {
  t.same(
    await told('apart', [
      [0, locked],
      [3600, locked],
    ]),
    [],
  )
})

t.test('what its work came to is told on the object that a key names, and of one that is gone nothing', async (t) => {
  const { metadata } = await world.addService('poison')
  await world.addNode('n1')
  for (const key of ['Service/default/poison', 'Node/n1', 'Service/default/gone', 'Cluster/resync'])
    await tellObject(
      { kubernetes: world.api, recorder },
      key,
      { reason: 'GivenUp', message: 'its workers died' },
      world.call,
    )
  await recorder.flush(10_000)
  const events = (await world.events()).filter(({ reason }) => reason === 'GivenUp')
  t.same(events.map(({ type, involvedObject }) => `${type} ${involvedObject.kind}/${involvedObject.name}`).sort(), [
    'Warning Node/n1',
    'Warning Service/poison',
  ])
  t.equal(events.find(({ involvedObject }) => involvedObject.kind === 'Service')?.involvedObject.uid, metadata.uid)
})
