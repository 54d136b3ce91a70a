import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { NODES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld, type World } from './world.ts'

const network = { id: 5, name: 'kube', ip_range: '10.0.0.0/8', subnets: [{ ip_range: '10.0.0.0/24' }] }
const server = (id: number, more: object = {}) => ({
  id,
  name: `w${id}`,
  private_net: [{ network: 5, ip: `10.0.0.1${id}` }],
  ...more,
})
const env = { HCLOUD_NETWORK: 'kube', HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK: 'true' }

const routesIn = ({ hcloud }: World) =>
  (hcloud.control.state().networks as { routes: { destination: string; gateway: string }[] }[])[0]?.routes
    .map(({ destination, gateway }) => `${destination} ${gateway}`)
    .sort()
const conditionsIn = async (world: World) =>
  (await world.nodes()).map(({ status }) => {
    const one = status?.conditions?.find(({ type }) => type === 'NetworkUnavailable')
    return one && `${one.status} ${one.reason}`
  })

async function open(t: Test): Promise<World> {
  const world = await startWorld()
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ networks: [network], servers: [server(1), server(2)] })
  return world
}

t.test('with a period, what others do to the network is repaired without any change in the cluster', async (t) => {
  const world = await open(t)
  world.start('all', { env, args: ['--cluster-cidr=10.244.0.0/16', '--route-reconciliation-period=200ms'] })
  for (const id of [1, 2]) await world.addNode(`w${id}`, { podCIDR: `10.244.${id}.0/24` })
  const all = ['10.244.1.0/24 10.0.0.11', '10.244.2.0/24 10.0.0.12']
  await eventually(async () => `${routesIn(world)}` === `${all}`, 'both nodes have their routes')
  await eventually(async () => (await conditionsIn(world)).every((one) => one === 'False RouteCreated'), 'and say so')
  t.notOk(
    (await world.events()).some(({ reason }) => reason === 'FailedToCreateRoute'),
    'a node that only has to be initialised first is no failure',
  )

  world.hcloud.control.mutate({ networks: [{ name: 'kube', set: { routes: [] } }] })
  await eventually(async () => `${routesIn(world)}` === `${all}`, 'routes that were taken away are there again')

  world.hcloud.control.mutate({ servers: [{ name: 'w1', set: { private_net: [] } }] })
  await eventually(async () => `${routesIn(world)}` === `${all[1]}`, 'a route to a server that left the network goes')
  await eventually(
    async () => (await conditionsIn(world)).includes('True NoRouteCreated'),
    'and its node gets no pods that nobody would reach',
  )
})

t.test('what could not be done to the network is done later, without a change of nodes', async (t) => {
  const world = await open(t)
  const { control } = world.hcloud
  control.mutate({
    networks: [{ name: 'kube', set: { routes: [{ destination: '10.244.7.0/24', gateway: '10.0.0.7' }] } }],
  })
  control.fault({ match: 'POST /networks/{id}/actions/delete_route', kind: 'error', status: 500, code: 'server_error' })
  control.fault({ match: 'POST /networks/{id}/actions/add_route', kind: 'locked', times: 5 })
  world.start('all', { env, args: ['--cluster-cidr=10.244.0.0/16'] })
  await world.addNode('w1', { podCIDR: '10.244.1.0/24' })
  await eventually(
    async () => `${routesIn(world)}` === '10.244.1.0/24 10.0.0.11',
    'the route of nobody is gone, and that of the node is there',
  )
  await eventually(async () => `${await conditionsIn(world)}` === 'False RouteCreated', 'and the node says so')
  t.notOk(
    (await world.events()).some(({ reason }) => reason === 'FailedToCreateRoute'),
    'to wait for the network is no failure',
  )
})

t.test(
  'the last node takes its route with it, and one without a pod CIDR gets no pods by a route of before',
  async (t) => {
    const world = await open(t)
    world.start('all', { env, args: ['--cluster-cidr=10.244.0.0/16'] })
    await world.addNode('w1', { podCIDR: '10.244.1.0/24' })
    await eventually(async () => `${await conditionsIn(world)}` === 'False RouteCreated', 'the node has its route')
    await world.api.delete(NODES, { name: 'w1' }, world.call)
    await eventually(async () => routesIn(world)?.length === 0, 'it goes with its node')

    world.hcloud.control.mutate({
      networks: [{ name: 'kube', set: { routes: [{ destination: '10.244.1.0/24', gateway: '10.0.0.11' }] } }],
    })
    await world.addNode('w1')
    await eventually(async () => `${await conditionsIn(world)}` === 'True NoRouteCreated', 'it has none, and says so')
    t.same(routesIn(world), [])
  },
)

t.test('without a cluster CIDR no node is said to be unreachable', async (t) => {
  const world = await open(t)
  world.start('all', { env })
  for (const id of [1, 2]) await world.addNode(`w${id}`, { podCIDR: `10.244.${id}.0/24` })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the nodes are initialised')
  await world.addService('web')
  await eventually(async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length, 'web has an address')
  t.same(await conditionsIn(world), [undefined, undefined])
  t.same(routesIn(world), [])
})

t.test('a cluster CIDR that pod CIDRs are not in is told by Events and a metric, and fills no network', async (t) => {
  const world = await open(t)
  const args = ['--cluster-cidr=10.244.0.0/16']
  const { host, port } = await world.start('all', { env, args }).logged('the server listens')
  await world.addNode('w1', { podCIDR: '10.245.1.0/24' })
  await world.addNode('w2', { podCIDR: '10.244.2.0/24' })
  await eventually(
    async () => `${await conditionsIn(world)}` === 'True NoRouteCreated,False RouteCreated',
    'one node is routed, and the other says that it is not',
  )
  t.same(routesIn(world), ['10.244.2.0/24 10.0.0.12'])
  const told = await eventually(async () => {
    const all = (await world.events()).filter(({ involvedObject }) => involvedObject.name === 'w1')
    return all.find(({ reason }) => reason === 'ClusterCIDRMisconfigured')
  }, 'an Event says what is wrong')
  t.match(told.message, /10.245.1.0\/24 of node w1 is outside the cluster CIDR 10.244.0.0\/16: set --cluster-cidr/)
  const has = (line: string) =>
    eventually(async () => (await (await fetch(`http://${host}:${port}/metrics`)).text()).includes(line), line)
  t.ok(await has('windlass_nodes_outside_cluster_cidr{cluster="default"} 1'))
  t.ok(await has('windlass_network_routes_limit{cluster="default"} 100'))

  world.hcloud.control.seed({ servers: [server(3)] })
  await world.addNode('w3', { podCIDR: '10.244.3.0/24' })
  t.ok(await has('windlass_network_routes{cluster="default"} 1'), 'as it was when the third node joined')
})

t.test('a node of another cloud, or of nobody, is not written to', async (t) => {
  const world = await open(t)
  world.start('all', { env, args: ['--cluster-cidr=10.244.0.0/16', '--route-reconciliation-period=300ms'] })
  const others = { edge: 'k3s://edge', aws: 'aws:///eu/i-1', cherry: 'cherryservers://383531' }
  for (const [i, [name, providerID]] of Object.entries(others).entries())
    await world.addNode(name, { providerID, podCIDR: `10.244.${100 + i}.0/24` })
  const versions = async () =>
    (await world.nodes())
      .filter(({ metadata }) => metadata.name in others)
      .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
  const before = await versions()
  await world.addNode('w1', { podCIDR: '10.244.1.0/24' })
  await eventually(async () => (await conditionsIn(world)).includes('False RouteCreated'), 'one of ours has its route')
  // Some periods go by.
  await delay(1500)
  t.same(await versions(), before)
  t.same(routesIn(world), ['10.244.1.0/24 10.0.0.11'])
  t.same(
    (await world.events()).filter(({ involvedObject }) => String(involvedObject.name) in others),
    [],
  )
})
