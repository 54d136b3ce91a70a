import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { SERVICES } from '../../src/kubernetes/resources.ts'
import { beginBurst, cherryCalls, cherryState, prepareBurst, untrueIn, wrongIn } from './cherry-burst.ts'
import { eventually, startWorld, type WindlassProcess, type World } from './world.ts'

const QUIET_MS = 2500

/** Echoes of what was written have come back, and what they ask for was done. */
async function atRest(world: World): Promise<void> {
  let before: number
  do {
    before = cherryCalls(world).total
    await delay(QUIET_MS)
  } while (cherryCalls(world).total !== before)
}

const right = (world: World, burst: Parameters<typeof wrongIn>[1]) =>
  eventually(async () => (await wrongIn(world, burst)).length === 0, 'all is right').catch(async (error) => {
    throw new Error(`${error.message}: ${(await wrongIn(world, burst)).join('; ')}`)
  })

const runsOf = (process: WindlassProcess, key: string) =>
  process.lines().filter((line) => line.msg === 'run ended' && line.key === key).length

const named = async (world: World, name: string) =>
  (await world.services()).find(({ metadata }) => metadata.name === name)

t.test('ten nodes and five Services at once take at most 25 calls, and none is refused at 4 a second', async (t) => {
  const world = await startWorld({ clouds: ['cherry'], cherry: { requests_per_second: 4 } })
  t.teardown(() => world.stop())
  const burst = await prepareBurst(world, { nodes: 10, services: 5 })
  const all = world.start('all')
  await all.logged('the server listens')
  await beginBurst(world, burst)
  await right(world, burst)
  await atRest(world)
  const { total, refused, byEndpoint } = cherryCalls(world)
  t.comment(byEndpoint)
  t.ok(total <= 25, `${total} calls: ${byEndpoint}`)
  t.equal(refused, 0)
  t.same(await wrongIn(world, burst), [])
  t.same(await untrueIn(world), [])

  await t.test(
    'a node that joins later costs its own call, and no other look at the addresses than the sharing of one',
    async (t) => {
      await world.cherry.control.seed({ servers: [{ id: 383600, hostname: 'late', tags: { team: 'blue' } }] })
      const { calls } = world.cherry.control.counters()
      const before = { ...calls }
      await world.addNode('late')
      await right(world, { ...burst, nodes: [...burst.nodes, 'late'] })
      await atRest(world)
      const more = (endpoint: string) => (calls[endpoint] ?? 0) - (before[endpoint] ?? 0)
      t.equal(more('PUT /servers/{id}'), 1)
      t.equal(more('POST /projects/{id}/ips'), 0)
      t.ok(more('GET /projects/{id}/ips') <= 2, `${more('GET /projects/{id}/ips')} lists for five Services`)
    },
  )
})

t.test('a Service on a cluster at rest is worked on once: what the run writes asks for no other', async (t) => {
  const world = await startWorld({ clouds: ['cherry'] })
  t.teardown(() => world.stop())
  const burst = await prepareBurst(world, { nodes: 1, services: 1 })
  const all = world.start('all')
  await world.addNode('worker-1')
  await eventually(async () => !(await world.anyNodeWithout('node.kubernetes.io/instance-type')), 'the node is ready')
  await atRest(world)
  await world.addService('service-1')
  await right(world, burst)
  await atRest(world)
  t.equal(runsOf(all, 'Service/default/service-1'), 1)

  await t.test(
    'one that stops to be a load balancer shows no address any more before that is given back',
    async (t) => {
      world.cherry.control.fault({ match: 'DELETE /ips/{id}', kind: 'error', code: 503, times: -1 })
      const change = { type: 'merge', body: { spec: { type: 'ClusterIP' } } } as const
      await world.api.patch(SERVICES, { namespace: 'default', name: 'service-1' }, change, world.call)
      await eventually(
        async () => world.cherry.control.counters().rejected['DELETE /ips/{id} 503 (fault)'],
        'it was tried to give it back',
      )
      const service = await named(world, 'service-1')
      t.same(service?.status?.loadBalancer?.ingress ?? [], [])
      t.notOk(service?.metadata.annotations?.['metallb.io/loadBalancerIPs'])
      t.ok(service?.metadata.finalizers?.length, 'and waits for that')
      t.equal(cherryState(world).ips.filter(({ type }) => type === 'floating-ip').length, 1)
      world.cherry.control.fault('clear')
      await eventually(async () => !(await named(world, 'service-1'))?.metadata.finalizers?.length, 'it is let go')
      t.equal(cherryState(world).ips.filter(({ type }) => type === 'floating-ip').length, 0)
    },
  )
})

t.test('a node that joins while the first run of a Service is at work takes part', async (t) => {
  const world = await startWorld({ clouds: ['cherry'] })
  t.teardown(() => world.stop())
  const burst = await prepareBurst(world, { nodes: 2, services: 1 })
  const all = world.start('all')
  await world.addNode('worker-1')
  await eventually(async () => !(await world.anyNodeWithout('node.kubernetes.io/instance-type')), 'the node is ready')
  // The run has read the nodes, and waits for its address.
  world.cherry.control.fault({ match: 'POST /projects/{id}/ips', kind: 'delay-before', delay: 2500, times: 1 })
  await world.addService('service-1')
  await eventually(async () => world.cherry.control.counters().calls['POST /projects/{id}/ips'], 'it is at work')
  await world.addNode('worker-2')
  await eventually(
    async () => all.lines().filter(({ msg, kind }) => msg === 'run ended' && kind === 'targets').length >= 2,
    'the nodes were compared while there was no record',
  )
  t.equal(runsOf(all, 'Service/default/service-1'), 0)
  await right(world, burst)
  t.pass()
})
