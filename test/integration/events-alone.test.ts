import t from 'tap'
import { SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

t.test('without looks at everything, events bring all about', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: ['w1', 'w2'].map((name, i) => ({ id: i + 1, name })) })
  const all = world.start('all', { env: { WINDLASS_RESYNC_PERIOD: '24h' } })
  const looks = () => all.lines().filter(({ msg }) => msg === 'enqueued everything once more').length
  await eventually(async () => looks() === 1, 'the one at the start is over')
  for (const name of ['w1', 'w2']) await world.addNode(name)
  await world.addService('web')
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the nodes are initialised')
  await eventually(
    async () => (await world.account()).load_balancers[0]?.targets.length === 2,
    'there is a load balancer with both',
  )
  await world.api.delete(SERVICES, { namespace: 'default', name: 'web' }, world.call)
  await eventually(async () => (await world.services()).length === 0, 'the Service is let go')
  t.same((await world.account()).load_balancers, [])
  t.equal(looks(), 1)
})
