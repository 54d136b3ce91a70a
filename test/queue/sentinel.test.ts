import t from 'tap'
import { workerConnection } from '../../src/queue/redis.ts'
import { startRedis } from '../redis.ts'
import { eventually } from './rig.ts'

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
    String(await sentinel.command('SENTINEL', 'REPLICAS', 'main')).includes(String(next.port)),
  )
  await eventually(async () => (await next.command('GET', 'a')) === '1')
  await eventually(() => sentinel.command('SENTINEL', 'FAILOVER', 'main').catch(() => undefined))
  await eventually(async () => String(await next.command('ROLE')).startsWith('master'))
  await eventually(async () => String(await old.command('ROLE')).startsWith('slave'))
  t.equal(await redis.set('a', '2'), 'OK', 'a write to the old primary is sent again to the new one')
  await eventually(async () => (await next.command('GET', 'a')) === '2')
})
