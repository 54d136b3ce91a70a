import t from 'tap'
import { SERVICES } from '../../src/kubernetes/resources.ts'
import { cherryState } from './cherry-burst.ts'
import { eventually, startWorld, type World } from './world.ts'

const floating = (world: World) => cherryState(world).ips.filter(({ type }) => type === 'floating-ip')

async function serviceOf(world: World) {
  const [service] = await world.services()
  return { finalizers: service?.metadata.finalizers ?? [], ingress: service?.status?.loadBalancer?.ingress ?? [] }
}

t.test('an opted-out Service shows no address that was given back, though Redis has forgotten it', async (t) => {
  const world = await startWorld({ clouds: ['cherry'] })
  t.teardown(() => world.stop())
  await world.cherry.control.seed({ servers: [{ id: 383530, hostname: 'w1' }] })
  const first = world.start('all')
  await world.addNode('w1')
  await world.addService('web')
  await eventually(async () => (await serviceOf(world)).ingress.length === 1, 'it has an address')
  await first.end()
  await world.redis.flush()
  const body = { metadata: { annotations: { 'cherryservers.com/loadbalancer-managed': 'false' } } }
  await world.api.patch(SERVICES, { namespace: 'default', name: 'web' }, { type: 'merge', body }, world.call)
  world.start('all')
  await eventually(async () => (await serviceOf(world)).finalizers.length === 0, 'it is let go')
  t.same(floating(world), [])
  t.same((await serviceOf(world)).ingress, [])

  const others = [{ ip: '192.0.2.7', ipMode: 'VIP' }]
  const status = { status: { loadBalancer: { ingress: others } } }
  const patch = { type: 'merge', subresource: 'status', body: status } as const
  await world.api.patch(SERVICES, { namespace: 'default', name: 'web' }, patch, world.call)
  const finalizers = { metadata: { finalizers: ['service.kubernetes.io/load-balancer-cleanup'] } }
  const name = { namespace: 'default', name: 'web' }
  await world.api.patch(SERVICES, name, { type: 'merge', body: finalizers }, world.call)
  await eventually(async () => (await serviceOf(world)).finalizers.length === 0, 'it is let go again')
  t.match((await serviceOf(world)).ingress, others, 'what somebody else wrote stays')
})
