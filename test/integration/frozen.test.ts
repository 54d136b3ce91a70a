import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { eventually, isInitialised, startWorld } from './world.ts'

/** Longer than a lock that is not renewed lasts, and is taken over. */
const FROZEN_MS = 11_000

t.test('a worker that was frozen before it made a load balancer makes none when it goes on', async (t) => {
  const world = await startWorld({ hcloud: { action_ms: 0 } })
  t.teardown(() => world.stop())
  const { control } = world.hcloud
  control.seed({ servers: [{ id: 1, name: 'w1' }] })
  const server = world.start('server')
  const { host, port } = await server.logged('the server listens')
  world.start('forwarder', { env: { WINDLASS_SERVER_URL: `http://${host}:${port}` } })
  const first = world.start('worker')
  await world.addNode('w1')
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the node is initialised')
  // The last thing that is read before the load balancer is made.
  control.fault({ match: 'GET /load_balancer_types', kind: 'delay', ms: 1500 })
  await world.addService('web')
  await eventually(async () => control.counters().calls['GET /load_balancer_types'], 'a run is at work')
  first.signal('SIGSTOP')
  world.start('worker')
  await delay(FROZEN_MS)
  const made = () => control.counters().calls['POST /load_balancers']
  t.equal(made(), 1, 'the second worker has made it meanwhile')
  first.signal('SIGCONT')
  const ended = await eventually(
    async () => first.lines().find(({ msg, key }) => msg === 'run ended' && key === 'Service/default/web'),
    'the run of the first ends',
  )
  t.match(ended, { outcome: 'lost' })
  await delay(2000)
  t.equal(made(), 1)
  t.equal((await world.account()).load_balancers.length, 1)
  t.ok((await world.services())[0]?.status?.loadBalancer?.ingress?.length)
})
