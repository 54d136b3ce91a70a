import t, { type Test } from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld, type World } from './world.ts'

const PREFIX = 'load-balancer.hetzner.cloud/'
const at = (name: string) => ({ namespace: 'default', name })

async function open(t: Test, servers: object[], hcloud: object = {}): Promise<World> {
  const world = await startWorld({ hcloud })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers })
  return world
}

const server = (id: number, more: object = {}) => ({ id, name: `w${id}`, ...more })

const initialised = (world: World, count: number) =>
  eventually(async () => {
    const nodes = await world.nodes()
    return nodes.length === count && nodes.every(isInitialised)
  }, `${count} nodes are initialised`)

const serviceOf = async (world: World, name = 'web') =>
  (await world.services()).find(({ metadata }) => metadata.name === name)

const addressed = (world: World, name = 'web') =>
  eventually(
    async () => ((await serviceOf(world, name))?.status?.loadBalancer?.ingress?.length ?? 0) > 0,
    `${name} has an address`,
  )

const targetsAre = (world: World, ids: number[], what: string) =>
  eventually(async () => {
    const { load_balancers } = await world.account()
    const found = load_balancers[0]?.targets.flatMap((target) => target.server?.id ?? []).sort()
    return `${found}` === `${ids}`
  }, what)

const warned = async (world: World, reason: string) =>
  (await world.events()).some((event) => event.reason === reason && event.involvedObject.kind === 'Service')

const patch = (world: World, name: string, body: object) =>
  world.api.patch(SERVICES, at(name), { type: 'merge', body }, world.call)

t.test('a node that can be no target keeps none of those that come later away', async (t) => {
  const world = await open(t, [server(1), server(2, { public_net: { ipv4: null } }), server(3)])
  world.start('all')
  await world.addNode('w1')
  await world.addNode('w2')
  await initialised(world, 2)
  await world.addService('web')
  await addressed(world)
  await eventually(() => warned(world, 'SyncLoadBalancerFailed'), 'one target is refused, and that is said')
  t.notOk(await warned(world, 'UpdateLoadBalancerFailed'), 'no node has changed')
  await world.addNode('w3')
  await targetsAre(world, [1, 3], 'the new node is a target')
  await eventually(() => warned(world, 'UpdateLoadBalancerFailed'), 'that all of them are not is said again')
  await world.api.delete(NODES, { name: 'w3' }, world.call)
  await targetsAre(world, [1], 'and it goes')
})

t.test(
  'a new target that the cloud refuses once is told as such, and not as a load balancer out of order',
  async (t) => {
    const world = await open(t, [server(1), server(2)])
    world.start('all')
    await world.addNode('w1')
    await initialised(world, 1)
    await world.addService('web')
    await addressed(world)
    const match = 'POST /load_balancers/{id}/actions/add_target'
    world.hcloud.control.fault({ match, kind: 'error', code: 'server_error', times: 1 })
    await world.addNode('w2')
    await eventually(() => warned(world, 'UpdateLoadBalancerFailed'), 'the refusal is said')
    await targetsAre(world, [1, 2], 'the node is a target all the same')
    t.notOk(await warned(world, 'SyncLoadBalancerFailed'))

    world.hcloud.control.fault({
      match: 'POST /load_balancers/{id}/actions/remove_target',
      kind: 'error',
      code: 'server_error',
      times: -1,
    })
    await world.api.delete(NODES, { name: 'w2' }, world.call)
    await eventually(() => warned(world, 'SyncLoadBalancerFailed'), 'that it stays out of order is said')
  },
)

t.test('with annotations that can not be, targets still follow the nodes', async (t) => {
  const world = await open(t, [server(1), server(2), server(3)])
  world.start('all')
  await world.addNode('w1')
  await world.addNode('w2')
  await initialised(world, 2)
  await world.addService('web')
  await addressed(world)
  await patch(world, 'web', { metadata: { annotations: { [`${PREFIX}protocol`]: 'quic' } } })
  await eventually(() => warned(world, 'SyncLoadBalancerFailed'), 'the annotation is refused')
  await world.addNode('w3')
  await targetsAre(world, [1, 2, 3], 'a node that joins is a target')
  await world.api.delete(NODES, { name: 'w3' }, world.call)
  // The node set is again that of the last good run.
  await targetsAre(world, [1, 2], 'and none any more when it goes')
})

t.test('a Service that goes, and that somebody else keeps, names no load balancer any more', async (t) => {
  const world = await open(t, [server(1)])
  world.start('all')
  await world.addNode('w1')
  await initialised(world, 1)
  await world.addService('web')
  await patch(world, 'web', { metadata: { finalizers: ['example.org/hold'] } })
  await addressed(world)
  await eventually(
    async () => (await serviceOf(world))?.metadata.finalizers?.length === 2,
    'both have finalizers on it',
  )
  await world.api.delete(SERVICES, at('web'), world.call)
  await eventually(async () => `${(await serviceOf(world))?.metadata.finalizers}` === 'example.org/hold', 'ours is off')
  t.same((await world.account()).load_balancers, [])
  t.same((await serviceOf(world))?.status?.loadBalancer, {})
})

t.test('what a Service left that went without its finalizer is told as not deleted, until it is', async (t) => {
  const world = await open(t, [server(1)])
  const first = world.start('all')
  await world.addNode('w1')
  await initialised(world, 1)
  await world.addService('web')
  await addressed(world)
  await first.end()
  await patch(world, 'web', { metadata: { finalizers: null } })
  await world.api.delete(SERVICES, at('web'), world.call)
  const match = 'DELETE /load_balancers/{id}'
  world.hcloud.control.fault({ match, kind: 'error', code: 'server_error', times: 2 })
  world.start('all')
  await eventually(() => warned(world, 'DeleteLoadBalancerFailed'), 'its load balancer is not')
  await eventually(async () => (await world.account()).load_balancers.length === 0, 'and then it is')
  await eventually(() => warned(world, 'DeletedLoadBalancer'), 'which is said')
})

t.test('a Service that stops to want a load balancer while one is made for it has no failure', async (t) => {
  const world = await open(t, [server(1)], { action_ms: 1500 })
  world.start('all')
  await world.addNode('w1')
  await initialised(world, 1)
  await world.addService('web')
  await eventually(async () => (await world.account()).load_balancers.length === 1, 'the load balancer is being made')
  await patch(world, 'web', { spec: { type: 'ClusterIP' } })
  await eventually(async () => {
    const service = await serviceOf(world)
    return (await world.account()).load_balancers.length === 0 && !service?.metadata.finalizers?.length
  }, 'it is gone, and the Service is free')
  t.notOk(await warned(world, 'SyncLoadBalancerFailed'))
  t.same((await serviceOf(world))?.status?.loadBalancer, {})
})

t.test('a Service that went over to another class and then went, unseen, is not held for ever', async (t) => {
  const world = await open(t, [server(1)])
  const first = world.start('all')
  await world.addNode('w1')
  await initialised(world, 1)
  await world.addService('web')
  await addressed(world)
  await first.end()
  await patch(world, 'web', { spec: { type: 'ClusterIP' } })
  await patch(world, 'web', { spec: { type: 'LoadBalancer', loadBalancerClass: 'example.com/other' } })
  await world.api.delete(SERVICES, at('web'), world.call)
  world.start('all')
  await eventually(async () => (await serviceOf(world)) === undefined, 'the Service is gone')
  t.same((await world.account()).load_balancers, [], 'and so is its load balancer')
})

t.test('a name becomes free for another Service when its owner goes', async (t) => {
  const world = await open(t, [server(1)])
  world.start('all')
  await world.addNode('w1')
  await initialised(world, 1)
  const annotations = { [`${PREFIX}name`]: 'shared' }
  await world.addService('first', { annotations })
  await addressed(world, 'first')
  await world.addService('second', { annotations })
  await eventually(() => warned(world, 'SyncLoadBalancerFailed'), 'the second is refused')
  await world.api.delete(SERVICES, at('first'), world.call)
  await addressed(world, 'second')
  t.same(
    (await world.account()).load_balancers.map(({ name }) => name),
    ['shared'],
  )
})
