import t from 'tap'
import { beginBurst, prepareBurst, wrongIn } from './cherry-burst.ts'
import { eventually, startWorld } from './world.ts'

t.test('many Services that share their objects do not get into each other’s way', async (t) => {
  const world = await startWorld({ clouds: ['cherry'] })
  t.teardown(() => world.stop())
  const burst = await prepareBurst(world, { nodes: 8, services: 15 })
  world.start('all')
  await beginBurst(world, burst)
  await eventually(async () => (await wrongIn(world, burst)).length === 0, 'all is right')
  const failures = (await world.events()).filter(({ reason = '' }) => reason.endsWith('Failed'))
  t.same(
    failures.map(({ reason, involvedObject, message }) => `${reason} ${involvedObject.name} ${message}`),
    [],
  )
})
