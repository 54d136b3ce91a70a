import t from 'tap'
import { eventually, isInitialised, startWorld } from '../integration/world.ts'

t.test('what no Service has any more is told at a resync, and nothing of it is touched', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const owner = (uid: string) => ({ 'hcloud-ccm/service-uid': uid })
  const on = (name: string) => [{ type: 'server', server: name }]
  world.hcloud.control.seed({
    servers: ['w1', 'w2', 'elsewhere'].map((name, i) => ({ id: i + 1, name })),
    load_balancers: [
      { name: 'left-behind', labels: owner('a-vanished-uid'), targets: on('w1') },
      { name: 'of-another-cluster', labels: owner('a-uid-of-its-own'), targets: on('elsewhere') },
      { name: 'kept', labels: { ...owner('a-released-uid'), 'windlass/released': 'true' }, targets: on('w2') },
      { name: 'by-hand', targets: on('w1') },
    ],
  })
  for (const name of ['w1', 'w2']) await world.addNode(name)
  const all = world.start('all', { env: { WINDLASS_RESYNC_PERIOD: '1s' } })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'both nodes are initialised')
  const service = await world.addService('web')
  await eventually(async () => {
    const account = await world.account()
    return account.load_balancers.some(({ labels }) => labels['hcloud-ccm/service-uid'] === service.metadata.uid)
  }, 'the Service has its load balancer')

  const message = 'no Service has it any more: remove it by hand'
  const told = () => all.lines().filter(({ msg }) => msg === message)
  await eventually(async () => told().length >= 2, 'two resyncs tell')
  t.same(
    [...new Set(told().map(({ cloud, orphan }) => `${cloud}: ${orphan}`))].map((one) => one.replace(/\d+/, 'N')),
    ['hcloud: load balancer "left-behind" (N)'],
  )
  const { host, port } = (await all.logged('the server listens')) as { host: string; port: number }
  const metrics = await (await fetch(`http://${host}:${port}/metrics`)).text()
  t.match(metrics, /windlass_orphans\{[^}]*cloud="hcloud"[^}]*\} 1\n/)
  t.equal((await world.account()).load_balancers.length, 5)
})
