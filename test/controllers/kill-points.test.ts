import t from 'tap'
import { isInitialised, startWorld } from '../integration/world.ts'
import { shortLived } from './short-lived.ts'

t.test(
  'wherever a worker dies while it initialises a node, the node is initialised in the end, and ready for Pods only then',
  async (t) => {
    const world = await startWorld({ kubernetes: 'simulator' })
    t.teardown(() => world.stop())
    const workers = await shortLived(world)
    t.teardown(() => workers.close())
    let points = 0
    for (let write = 1, died = true; died; write++) {
      const name = `w${write}`
      world.hcloud.control.seed({ servers: [{ id: write, name }] })
      await world.addNode(name)
      died = (await workers.run('node', `Node/${name}`, { write })).end === 'died'
      points += Number(died)
      const left = (await world.nodes()).find(({ metadata }) => metadata.name === name)
      const tainted = left?.spec?.taints?.some(({ key }) => key.endsWith('/uninitialized')) ?? false
      t.equal(
        tainted,
        write === 1,
        'the taint goes with the first write, and with it come the provider id and the labels',
      )
      if (!tainted)
        t.match(left, {
          spec: { providerID: `hcloud://${write}` },
          metadata: { labels: { 'topology.kubernetes.io/region': 'fsn1' } },
        })
      await workers.settle('node', `Node/${name}`)
    }
    t.ok((await world.nodes()).every(isInitialised))
    t.equal(points, 2)
  },
)

t.test('wherever a worker dies while it changes the routes of a network, they are right in the end', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator', hcloud: { action_ms: 0 } })
  t.teardown(() => world.stop())
  const workers = await shortLived(
    world,
    { HCLOUD_NETWORK: 'kube', HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK: 'true' },
    { 'cluster-cidr': '10.244.0.0/16' },
  )
  t.teardown(() => workers.close())
  const { control } = world.hcloud
  const ids = [1, 2, 3]
  control.seed({
    networks: [{ id: 5, name: 'kube', ip_range: '10.0.0.0/8', subnets: [{ ip_range: '10.0.0.0/24' }] }],
    servers: ids.map((id) => ({ id, name: `w${id}`, private_net: [{ network: 5, ip: `10.0.0.1${id}` }] })),
  })
  for (const id of ids) {
    await world.addNode(`w${id}`, { podCIDR: `10.244.${id}.0/24` })
    await workers.settle('node', `Node/w${id}`)
  }
  const routes = () =>
    (control.state().networks as { routes: { destination: string; gateway: string }[] }[])[0]?.routes
      .map(({ destination, gateway }) => `${destination} ${gateway}`)
      .sort()
  const wanted = ids.map((id) => `10.244.${id}.0/24 10.0.0.1${id}`)
  // One is right, one leads elsewhere, one is missing, one is nobody's.
  const wrong = [
    { destination: '10.244.1.0/24', gateway: '10.0.0.11' },
    { destination: '10.244.2.0/24', gateway: '10.0.0.99' },
    { destination: '10.244.9.0/24', gateway: '10.0.0.19' },
  ]
  let points = 0
  for (let write = 1, died = true; died; write++) {
    control.mutate({ networks: [{ name: 'kube', set: { routes: structuredClone(wrong) } }] })
    died = (await workers.run('route', 'Cluster/routes', { write })).end === 'died'
    points += Number(died)
    await workers.settle('route', 'Cluster/routes')
    t.same(routes(), wanted, `died before write ${write}`)
  }
  t.ok(points >= 4, `${points} points`)
  const conditions = (await world.nodes()).map(
    ({ status }) => status?.conditions?.find(({ type }) => type === 'NetworkUnavailable')?.status,
  )
  t.same(conditions, ['False', 'False', 'False'])
})
