import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { storesFor } from './stores.ts'

t.test('an epoch is new until it is confirmed, and lasts', async (t) => {
  const { stores } = await storesFor(t)
  const first = await stores.epochs.current()
  t.ok(first.isNew)
  t.same(await stores.epochs.current(), first, 'looking confirms nothing')
  await stores.epochs.confirm(first.id)
  t.same(await stores.epochs.current(), { id: first.id, isNew: false })
})

t.test('a flush begins a new epoch', async (t) => {
  const { stores, server } = await storesFor(t)
  const first = await stores.epochs.current()
  await stores.epochs.confirm(first.id)
  await server.flush()
  const second = await stores.epochs.current()
  t.not(second.id, first.id)
  t.ok(second.isNew)
})

t.test('another redis process begins a new epoch', async (t) => {
  const { stores, server } = await storesFor(t)
  const first = await stores.epochs.current()
  await server.restart()
  for (;;) {
    const second = await stores.epochs.current().catch(() => undefined)
    if (second) {
      t.not(second.id, first.id)
      return
    }
    await sleep(10)
  }
})

t.test('a lost marker is enough, and so is another run id', async (t) => {
  const { stores, redis } = await storesFor(t)
  const first = await stores.epochs.current()
  await redis.del('{w}:v1:global:epoch:marker')
  t.not((await stores.epochs.current()).id, first.id)
  t.match(first.id, /^[0-9a-f]{40}\.[0-9a-f-]{36}$/)
})

t.test('health says why Redis can not be used', async (t) => {
  const { stores, server } = await storesFor(t)
  t.same(await stores.problems(), [])
  await server.config('maxmemory-policy', 'allkeys-lru')
  t.match(await stores.problems(), [/maxmemory-policy is allkeys-lru.*noeviction/])
  await server.config('maxmemory-policy', 'noeviction')
  await server.config('maxmemory', '1')
  t.match(await stores.problems(), [/takes no writes.*OOM/])
  await server.config('maxmemory', '0')
  await server.command('REPLICAOF', '127.0.0.1', 1)
  t.match(await stores.problems(), [/takes no writes.*READONLY/])
  await server.command('REPLICAOF', 'NO', 'ONE')
  t.same(await stores.problems(), [])
  await server.kill9()
  t.match(await stores.problems(), [/takes no writes/])
})
