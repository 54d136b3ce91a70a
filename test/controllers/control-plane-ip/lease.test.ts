import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { createLease } from '../../../src/controllers/control-plane-ip/lease.ts'
import { startRedis } from '../../redis.ts'

const server = await startRedis()
const redis = new Redis(server.url)
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})
let names = 0
const TTL_MS = 10_000

t.test('a lease that is renewed without a gap is one term', async (t) => {
  const lease = createLease(redis, `lease-${++names}`, TTL_MS)
  const term = await lease.hold()
  t.ok(term)
  t.equal(await lease.hold(), term)
  await lease.check('a write', term ?? '')
  await t.rejects(createLease(redis, `lease-${names}`, TTL_MS).check('a write', term ?? ''), {
    message: /not looked after/,
  })
})

t.test('what was seen before a gap is no ground for a write after it', async (t) => {
  const short = createLease(redis, `lease-${++names}`, 100)
  const before = (await short.hold()) ?? ''
  await delay(150)
  const after = (await short.hold()) ?? ''
  t.ok(after)
  t.not(after, before)
  await t.rejects(short.check('a write', before), { message: /not looked after/ })
  await short.check('a write', after)
})

t.test(
  'a lease that Redis has lost is not renewed as if nothing was, since another may have had it meanwhile',
  async (t) => {
    const key = `lease-${++names}`
    const lease = createLease(redis, key, TTL_MS)
    const before = (await lease.hold()) ?? ''
    await redis.del(key)
    await t.rejects(lease.check('a write', before), { message: /not looked after/ })
    t.equal(await lease.hold(), undefined)
    const after = (await lease.hold()) ?? ''
    t.ok(after)
    t.not(after, before)
  },
)

t.test('one that another process has is not held', async (t) => {
  const key = `lease-${++names}`
  const first = createLease(redis, key, TTL_MS)
  const second = createLease(redis, key, TTL_MS)
  const term = (await first.hold()) ?? ''
  t.equal(await second.hold(), undefined)
  await first.release()
  t.ok(await second.hold())
  await t.rejects(first.check('a write', term), { message: /not looked after/ })
})
