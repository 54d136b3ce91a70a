import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { type Budget, createBudget } from '../../src/cloud/budget.ts'
import { startRedis } from '../redis.ts'

const HOUR = 3_600_000
const redis = await startRedis()
const connections: Redis[] = []
t.teardown(async () => {
  for (const one of connections) one.disconnect()
  await redis.stop()
})

function connect(): Redis {
  const one = new Redis(redis.url, { maxRetriesPerRequest: 1, enableOfflineQueue: true })
  one.on('error', () => {})
  connections.push(one)
  return one
}

const budget = (
  more: { redis?: Redis; credential?: string; limit?: number; windowMs?: number; rolling?: boolean } = {},
): Budget =>
  createBudget({ prefix: 'test', account: 'Somewhere', credential: 'a', limit: 100, windowMs: HOUR, ...more })

const taken = async (of: Budget, urgency: 'user' | 'background', times: number) => {
  let count = 0
  for (let i = 0; i < times; i++)
    if (
      await of.take(urgency).then(
        () => true,
        () => false,
      )
    )
      count++
  return count
}

t.afterEach(() => redis.flush())

for (const where of ['in process', 'in Redis'] as const) {
  const make = (more: Parameters<typeof budget>[0] = {}) =>
    budget({ ...(where === 'in Redis' ? { redis: connect() } : {}), ...more })

  t.test(`${where}: background work leaves a reserve to what users wait for`, async (t) => {
    const one = make()
    t.equal(await taken(one, 'background', 100), 90)
    const { retryAtMs, userRetryAtMs } = await one.take('background').catch((error) => error)
    t.ok(retryAtMs > Date.now() + 1000, 'the reserve is kept')
    t.ok(userRetryAtMs <= Date.now(), 'and is there for a user now')
    t.equal(await taken(one, 'user', 20), 10)
    await t.rejects(one.take('user'), { kind: 'throttled', message: /Somewhere/ })
  })

  t.test(`${where}: the account's own words count`, async (t) => {
    const one = make()
    await one.observe({ limit: 1000, remaining: 3 })
    t.equal(await taken(one, 'background', 5), 0)
    t.equal(await taken(one, 'user', 5), 3)
    await one.observe({ limit: 1000, remaining: 1000 })
    t.equal(await taken(one, 'background', 5), 5)
  })

  t.test(`${where}: a block holds for everybody, until its time`, async (t) => {
    for (const rolling of [false, true]) {
      const one = make({ rolling })
      // Another worker, where they can hear of each other.
      const other = where === 'in Redis' ? make({ rolling }) : one
      const until = Date.now() + 5000
      await one.block(until)
      const error = await other.take('user').catch((error) => error)
      t.match(error, { kind: 'throttled', retryAtMs: until })
      await redis.flush()
    }
  })

  t.test(`${where}: where requests count in windows, none has more than the limit`, async (t) => {
    const [limit, windowMs] = [10, 300]
    const one = make({ limit, windowMs, rolling: true })
    const sent: number[] = []
    const untilMs = Date.now() + 4 * windowMs
    while (Date.now() < untilMs) {
      const before = Date.now()
      if ((await taken(one, 'user', 1)) === 1) sent.push(before)
      else await delay(5)
    }
    t.ok(sent.length > 2 * limit, `${sent.length} requests`)
    for (const [i, at] of sent.entries()) {
      const after = sent[i + limit]
      if (after !== undefined && after - at < windowMs - 2) t.fail(`${limit + 1} requests within ${after - at} ms`)
    }
    const error = await one.take('user').catch((error) => error)
    if (error) t.ok(error.retryAtMs > Date.now() - 50 && error.retryAtMs <= Date.now() + windowMs)
    await delay(windowMs)
    t.equal(await taken(one, 'background', limit), 9, 'one is kept for what users wait for')
    t.ok((await one.take('background').catch((error) => error)).userRetryAtMs <= Date.now())
    t.equal(await taken(one, 'user', limit), 1)
  })
}

t.test('all workers of one credential share it, others have their own', async (t) => {
  const [a, b, other] = [
    budget({ redis: connect() }),
    budget({ redis: connect() }),
    budget({ redis: connect(), credential: 'b' }),
  ]
  const counts = await Promise.all([taken(a, 'user', 80), taken(b, 'user', 80)])
  t.equal(counts[0] + counts[1], 100)
  t.equal(await taken(other, 'user', 10), 10)
  const keys = (await redis.command('KEYS', '*')) as string[]
  t.notOk(
    keys.some((key) => key.endsWith(':a') || key.endsWith(':b')),
    'no credential in a key',
  )
})

t.test('without Redis the process keeps its own count', async (t) => {
  const connection = new Redis({
    host: '127.0.0.1',
    port: 1,
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    retryStrategy: () => null,
  })
  connection.on('error', () => {})
  const one = budget({ redis: connection })
  t.equal(await taken(one, 'user', 101), 100)
  connection.disconnect()
})
