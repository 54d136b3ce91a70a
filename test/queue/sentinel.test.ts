import t from 'tap'
import { workerConnection } from '../../src/queue/redis.ts'
import { type RedisFixture, startRedis } from '../redis.ts'
import { eventually } from './rig.ts'

/** A server that changes its role closes connections: that is no answer, not the end. */
const asked = (server: RedisFixture, name: string, ...args: (string | number)[]) =>
  server.command(name, ...args).catch(() => undefined)

t.test('sentinels are asked for the primary, and a fail-over is followed', async (t) => {
  const [old, next] = [await startRedis(), await startRedis()]
  await next.command('REPLICAOF', '127.0.0.1', old.port)
  const sentinel = await startRedis({ sentinel: `sentinel monitor main 127.0.0.1 ${old.port} 1\n` })
  const redis = workerConnection({ url: `redis+sentinel://127.0.0.1:${sentinel.port}/main`, prefix: 'windlass' })
  t.teardown(async () => {
    redis.disconnect()
    for (const server of [old, next, sentinel]) await server.stop()
  })
  t.equal(await redis.set('a', '1'), 'OK')
  t.match(await old.command('GET', 'a'), '1')
  await eventually(async () =>
    String(await asked(sentinel, 'SENTINEL', 'REPLICAS', 'main')).includes(String(next.port)),
  )
  await eventually(async () => (await asked(next, 'GET', 'a')) === '1')
  await eventually(() => asked(sentinel, 'SENTINEL', 'FAILOVER', 'main'))
  await eventually(async () => String(await asked(next, 'ROLE')).startsWith('master'))
  await eventually(async () => String(await asked(old, 'ROLE')).startsWith('slave'))
  t.equal(await redis.set('a', '2'), 'OK', 'a write to the old primary is sent again to the new one')
  await eventually(async () => (await asked(next, 'GET', 'a')) === '2')
})
