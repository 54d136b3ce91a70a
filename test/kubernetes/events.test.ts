import t, { type Test } from 'tap'
import { EventRecorder, type EventToRecord } from '../../src/kubernetes/events.ts'
import { setUp, silent, until } from './setting.ts'

const WAIT_MS = 30_000

async function start(t: Test) {
  const { simulator, api } = await setUp(t)
  const clock = { nowMs: 0 }
  const recorder = new EventRecorder({ api, log: silent, nowMs: () => clock.nowMs, maxRetryDelayMs: 2 })
  t.teardown(() => recorder.close())
  const stored = () =>
    simulator.list('events') as unknown as { metadata: { name: string }; message: string; count: number }[]
  const written = async () => {
    t.ok(await recorder.flush(WAIT_MS))
    return stored()
  }
  return { simulator, recorder, clock, stored, written }
}

const event = (more: Partial<EventToRecord> = {}): EventToRecord => ({
  object: { kind: 'Service', namespace: 'default', name: 'web', uid: 'u1' },
  type: 'Normal',
  reason: 'EnsuredLoadBalancer',
  message: 'Ensured load balancer',
  component: 'service-controller',
  ...more,
})
const node = (name: string) => event({ object: { kind: 'Node', name, uid: `uid-${name}` }, reason: 'Synced' })

t.test('an event stands in the namespace of its object, or in default', async (t) => {
  const { recorder, written } = await start(t)
  recorder.record(event({ object: { kind: 'Service', namespace: 'kube-system', name: 'web', uid: 'u1' } }))
  recorder.record(node('n'))
  const [ofNode, ofService] = await written()
  t.match(ofService, {
    metadata: { namespace: 'kube-system', name: /^web\./ },
    involvedObject: { apiVersion: 'v1', kind: 'Service', namespace: 'kube-system', name: 'web', uid: 'u1' },
    type: 'Normal',
    reason: 'EnsuredLoadBalancer',
    source: { component: 'service-controller' },
    reportingComponent: 'service-controller',
    count: 1,
    firstTimestamp: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  })
  t.match(ofNode, { metadata: { namespace: 'default' }, involvedObject: { kind: 'Node', name: 'n' }, reason: 'Synced' })
})

t.test('equal events within ten minutes raise the count of the first', async (t) => {
  const { recorder, clock, written } = await start(t)
  for (let i = 0; i < 3; i++) {
    recorder.record(event())
    await written()
    clock.nowMs += 500_000
  }
  t.match(await written(), [{ count: 3 }])
  clock.nowMs += 600_001
  recorder.record(event())
  t.match((await written()).map(({ count }) => count).sort(), [1, 3])
})

t.test('events that come at once are one write, and none is lost from the count', async (t) => {
  const { simulator, recorder, written } = await start(t)
  for (let i = 0; i < 10; i++) recorder.record(event())
  t.match(await written(), [{ count: 10 }])
  t.ok(simulator.requests.length <= 2)
})

t.test('more than ten look-alikes are combined', async (t) => {
  const { recorder, written } = await start(t)
  for (let i = 0; i < 15; i++) recorder.record(event({ message: `try ${i} failed` }))
  const events = await written()
  t.equal(events.length, 11)
  t.match(
    events.find(({ count }) => count > 1),
    { count: 5, message: '(combined from similar events): try 14 failed' },
  )
})

t.test('an object gets 25 events in a burst, then one in five minutes', async (t) => {
  const { recorder, clock, written } = await start(t)
  const counted = async () => (await written()).reduce((sum, { count }) => sum + count, 0)
  for (let i = 0; i < 40; i++) recorder.record(event())
  t.equal(await counted(), 25)
  t.equal(recorder.dropped, 15)
  clock.nowMs += 300_000
  recorder.record(event())
  recorder.record(event())
  t.equal(await counted(), 26)
  recorder.record(node('other'))
  t.equal(await counted(), 27)
})

t.test('a long message is cut at 1024 characters, and a long name fits', async (t) => {
  const { recorder, written } = await start(t)
  recorder.record(event({ message: 'x'.repeat(5000), object: { kind: 'Node', name: 'n'.repeat(253), uid: 'u' } }))
  const [one] = await written()
  t.equal(one?.message.length, 1024)
})

t.test('an event that the API server has forgotten is made again', async (t) => {
  const { simulator, recorder, stored, written } = await start(t)
  recorder.record(event())
  await written()
  simulator.delete('events', stored()[0]!.metadata.name)
  recorder.record(event())
  t.match(await written(), [{ count: 2 }])
})

t.test('what fails in passing is tried again', async (t) => {
  const { simulator, recorder, written } = await start(t)
  simulator.faults.add({ match: { verb: 'create' }, effect: { kind: 'status', status: 500 }, times: 2 })
  simulator.faults.add({ match: { verb: 'create' }, effect: { kind: 'drop', afterEffect: true }, times: 1 })
  recorder.record(event())
  recorder.record(event())
  t.match(await written(), [{ count: 2 }])
  t.equal(recorder.dropped, 0)
})

t.test('what can never succeed is given up', async (t) => {
  const { simulator, recorder } = await start(t)
  for (const status of [403, 404, 422]) {
    const before = simulator.requests.length
    simulator.faults.add({ match: { verb: 'create' }, effect: { kind: 'status', status }, times: 1 })
    recorder.record(event({ message: `refused with ${status}` }))
    t.ok(await recorder.flush(WAIT_MS))
    t.equal(simulator.requests.length, before + 1)
  }
  simulator.faults.add({ effect: { kind: 'status', status: 500 } })
  const before = simulator.requests.length
  recorder.record(event({ message: 'twelve times' }))
  t.ok(await recorder.flush(WAIT_MS))
  t.equal(simulator.requests.length, before + 12)
  t.equal(recorder.dropped, 4)
})

t.test('while the API is away at most a thousand wait, and recording goes on at once', async (t) => {
  const { simulator, recorder } = await start(t)
  simulator.faults.add({ effect: { kind: 'hang' } })
  for (let i = 0; i < 1100; i++) recorder.record(node(`n${i}`))
  t.equal(recorder.dropped, 1100 - 1000 - 8)
  await until(() => simulator.requests.length === 8)
  t.notOk(await recorder.flush(1))
  recorder.close()
  t.ok(await recorder.flush(WAIT_MS))
  t.equal(recorder.written, 0)
  recorder.record(node('late'))
  t.equal(recorder.dropped, 1101)
})

t.test('five hundred nodes get their events, eight at a time', async (t) => {
  const { simulator, recorder, written } = await start(t)
  simulator.faults.add({ match: { verb: 'create' }, effect: { kind: 'delay', ms: 1 } })
  for (let i = 0; i < 500; i++) recorder.record(node(`n${i}`))
  t.equal((await written()).length, 500)
  t.equal(simulator.requests.length, 500)
})
