import { Redis } from 'ioredis'
import t from 'tap'
import { createPace } from '../../../src/cloud/cherry/pace.ts'
import { startRedis } from '../../redis.ts'
import { callOf, ofKind } from './bench.ts'

const server = await startRedis()
const redis = new Redis(server.url, { maxRetriesPerRequest: 1, commandTimeout: 500, retryStrategy: () => 50 })
redis.on('error', () => {})
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})

let credential = 0
const shared = (more = {}) => ({
  redis,
  prefix: 'w',
  credential: `key-${credential}`,
  limit: 4,
  windowMs: 200,
  ...more,
})

t.beforeEach(async () => {
  credential++
})

t.test('all workers together send no more than the limit in any stretch of the window', async (t) => {
  const workers = [createPace(shared()), createPace(shared())]
  const sent: number[] = []
  await Promise.all(
    Array.from({ length: 14 }, async (_, i) => {
      await workers[i % 2]?.take(callOf())
      sent.push(Number((await redis.time())[0]) * 1000 + Number((await redis.time())[1]) / 1000)
    }),
  )
  sent.sort((a, b) => a - b)
  t.equal(sent.length, 14)
  const span = (sent.at(-1) ?? 0) - (sent[0] ?? 0)
  t.ok(span >= 500, `14 requests need three windows after the first: ${Math.round(span)} ms`)
})

t.test('background work leaves room, and none while a user waits', async (t) => {
  const pace = createPace(shared({ windowMs: 60_000, patienceMs: 0 }))
  const background = callOf({ urgency: 'background' })
  for (let i = 0; i < 3; i++) await pace.take(background)
  await t.rejects(pace.take(background), ofKind('throttled'))
  await pace.take(callOf())
  await t.rejects(pace.take(callOf()), ofKind('throttled'))
})

t.test('after a refusal nobody asks before the time that the cloud named', async (t) => {
  const [one, other] = [createPace(shared({ patienceMs: 0 })), createPace(shared({ patienceMs: 0 }))]
  await one.block(Date.now() + 60_000)
  await t.rejects(other.take(callOf()), ofKind('throttled'))
})

t.test('a run that is stopped waits no longer', async (t) => {
  const pace = createPace(shared({ windowMs: 5000 }))
  for (let i = 0; i < 4; i++) await pace.take(callOf())
  const stopped = new AbortController()
  const waiting = pace.take(callOf({ signal: stopped.signal }))
  stopped.abort()
  await t.rejects(waiting, ofKind('aborted'))
})

t.test('without Redis each process keeps the pace by itself', async (t) => {
  const pace = createPace({ prefix: 'w', credential: 'k', limit: 2, windowMs: 60_000, patienceMs: 0 })
  await pace.take(callOf())
  await pace.take(callOf())
  await t.rejects(pace.take(callOf()), ofKind('throttled'))
})

t.test('who waits goes in the order of coming, and what is urgent before all', async (t) => {
  const pace = createPace(shared({ windowMs: 300 }))
  for (let i = 0; i < 4; i++) await pace.take(callOf())
  const order: (number | string)[] = []
  const waiting = [1, 2, 3, 4, 5, 6].map(async (n) => {
    await pace.take(callOf())
    order.push(n)
  })
  const urgent = pace.take(callOf({ urgency: 'urgent' })).then(() => order.push('urgent'))
  await Promise.all([...waiting, urgent])
  t.same(
    order.filter((one) => one !== 'urgent'),
    [1, 2, 3, 4, 5, 6],
  )
  t.ok(order.indexOf('urgent') <= 1, order.join())
})

t.test('what is urgent asks all the same behind a block that may last for long', async (t) => {
  const pace = createPace(shared())
  await pace.block(Date.now() + 3_600_000)
  await t.rejects(pace.take(callOf()), ofKind('throttled'))
  await pace.take(callOf({ urgency: 'urgent' }))
})

t.test('a line that is too long is not joined, and one who leaves it holds up nobody', async (t) => {
  const pace = createPace(shared({ windowMs: 1000, patienceMs: 1500 }))
  for (let i = 0; i < 4; i++) await pace.take(callOf())
  const leaving = new AbortController()
  const left = t.rejects(pace.take(callOf({ signal: leaving.signal })), ofKind('aborted'))
  const waiting = Array.from({ length: 7 }, () =>
    pace.take(callOf()).then(
      () => 'taken',
      (error) => error.kind,
    ),
  )
  await t.rejects(pace.take(callOf()), ofKind('throttled'))
  leaving.abort()
  await left
  const came = await Promise.all(waiting)
  t.same(came.slice(0, 4), ['taken', 'taken', 'taken', 'taken'])
})
