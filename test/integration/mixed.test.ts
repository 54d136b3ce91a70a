import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import {
  addressOf,
  announced,
  balancers,
  CHERRY_CLASS,
  floatingIps,
  HETZNER_CLASS,
  nodesReady,
  patchService,
  SERVICE_UID,
  serviceNamed,
  setReady,
  speakers,
  startMixedWorld,
} from './mixed-world.ts'
import { eventually, isInitialised } from './world.ts'

t.test('one cluster at Hetzner and at Cherry', async (t) => {
  const world = await startMixedWorld()
  t.teardown(() => world.stop())
  const nodes = ['h1', 'h2', 'c1', 'c2']
  const all = world.start('all')
  await Promise.all([...nodes, 'stranger'].map((name) => world.addNode(name)))
  await nodesReady(world, nodes)
  const plan = async (...subjects: string[]) => {
    const process = world.start('plan', { args: subjects })
    return { code: await process.exited, output: process.output() }
  }

  await t.test('each node is initialised by its own cloud', async (t) => {
    const byName = new Map((await world.nodes()).map((node) => [node.metadata.name, node]))
    t.match(byName.get('h1'), {
      metadata: {
        labels: {
          'node.kubernetes.io/instance-type': 'cx22',
          'topology.kubernetes.io/region': 'fsn1',
          'instance.hetzner.cloud/provided-by': 'cloud',
        },
      },
      spec: { providerID: 'hcloud://1' },
      status: {
        addresses: [
          { type: 'Hostname', address: 'h1' },
          { type: 'ExternalIP', address: '198.51.100.1' },
        ],
      },
    })
    const atCherry = byName.get('c1')
    t.match(atCherry, {
      metadata: {
        labels: {
          'node.kubernetes.io/instance-type': 'e5_1620v4',
          'topology.kubernetes.io/region': 'LT-Siauliai',
          'instance.hetzner.cloud/provided-by': undefined,
        },
      },
      spec: { providerID: 'cherryservers://383530' },
      status: {
        addresses: [
          { type: 'Hostname', address: 'c1' },
          { type: 'ExternalIP', address: '5.199.160.1' },
          { type: 'InternalIP', address: '10.168.0.1' },
        ],
      },
    })
  })

  await t.test('a node that neither knows stays as it is, with one Event that names both', async (t) => {
    const about = async () =>
      (await world.events()).filter(
        ({ involvedObject, reason }) => involvedObject.name === 'stranger' && reason === 'InstanceNotFound',
      )
    const events = await eventually(async () => (await about()).length > 0 && (await about()), 'there is an Event')
    t.equal(events.length, 1)
    t.match(events[0]?.message, /Hetzner/)
    t.match(events[0]?.message, /Cherry/)
    const stranger = (await world.nodes()).find(({ metadata }) => metadata.name === 'stranger')
    t.notOk(stranger && isInitialised(stranger))
    t.notOk(stranger?.spec?.providerID)
  })

  await t.test('Services of both classes are served, and one without a class at Hetzner', async (t) => {
    const annotations = { 'load-balancer.hetzner.cloud/algorithm-type': 'round_robin' }
    await world.addService('plain', { annotations })
    await world.addService('at-hetzner', { loadBalancerClass: HETZNER_CLASS })
    await world.addService('at-cherry', { loadBalancerClass: CHERRY_CLASS })
    const foreign = await world.addService('foreign', { loadBalancerClass: 'example.com/other' })
    const address = await addressOf(world, 'at-cherry')
    for (const name of ['plain', 'at-hetzner']) await addressOf(world, name)
    t.same(
      floatingIps(world).map((one) => one.address),
      [address],
    )
    const uids = await Promise.all(
      ['plain', 'at-hetzner'].map(async (name) => (await serviceNamed(world, name))?.metadata.uid),
    )
    t.same((await balancers(world)).map(({ uid }) => uid).sort(), uids.sort())
    t.equal((await serviceNamed(world, 'foreign'))?.metadata.resourceVersion, foreign.metadata.resourceVersion)
  })

  await t.test('each has the nodes of its own cloud, and nobody wonders about the others', async (t) => {
    for (const { targets } of await balancers(world)) t.same(targets, ['h1', 'h2'])
    t.same(speakers(world), ['c1', 'c2'])
    t.same(await announced(world), { pools: ['default.at-cherry'], nodes: ['c1', 'c2'] })
    const reasons = new Set((await world.events()).map(({ reason }) => reason))
    t.notOk(reasons.has('UnknownProviderIDPrefix'))
    t.notOk(reasons.has('NoBgpSpeaker'))
  })

  await t.test('a plan of all of it is empty, and shows what is missing at either cloud', async (t) => {
    await world.api.delete(NODES, { name: 'stranger' }, world.call)
    const settled = await plan()
    t.equal(settled.code, 0, settled.output)
    const uid = (await serviceNamed(world, 'plain'))?.metadata.uid
    const balancer = (await world.account()).load_balancers.find(({ labels }) => labels[SERVICE_UID] === uid)
    await world.hcloud.control.mutate({
      load_balancers: [{ id: balancer?.id, set: { algorithm: 'least_connections' } }],
    })
    await world.cherry.control.mutate({ servers: [{ hostname: 'c2', bgp: false }] })
    const { code, output } = await plan()
    t.equal(code, 2, output)
    t.match(output, /algorithm/)
    t.match(output, /switch BGP on for the server of node c2/)
    const one = await plan('Service/default/at-cherry')
    t.notMatch(one.output, /algorithm/)
    await world.cherry.control.fault({ path: '.*', kind: 'http', code: 500, times: -1 })
    const other = await plan('Service/default/plain')
    await world.cherry.control.fault('clear')
    t.equal(other.code, 2, 'the trouble of one cloud is none of a Service at the other')
    t.match(other.output, /algorithm[\s\S]*warning: .*at cherryservers .*could not be told/)
    t.notMatch(other.output, /wrong:/)
  })

  await t.test('Kubernetes lets nobody change a class as long as the type stays', async (t) => {
    await t.rejects(patchService(world, 'at-cherry', { loadBalancerClass: HETZNER_CLASS }), /may not change once set/)
    await t.rejects(patchService(world, 'plain', { loadBalancerClass: CHERRY_CLASS }), /may not change once set/)
  })

  await t.test('a Service that moves from Cherry to Hetzner leaves nothing at Cherry', async (t) => {
    const former = await addressOf(world, 'at-cherry')
    await patchService(world, 'at-cherry', { type: 'ClusterIP' })
    const wiped = (await serviceNamed(world, 'at-cherry'))?.spec
    t.equal(wiped?.loadBalancerClass, undefined, 'the change of type wipes the class')
    await patchService(world, 'at-cherry', { type: 'LoadBalancer', loadBalancerClass: HETZNER_CLASS })
    const { uid } = (await serviceNamed(world, 'at-cherry'))?.metadata ?? {}
    await eventually(async () => (await balancers(world)).some((one) => one.uid === uid), 'it is at Hetzner')
    await eventually(async () => floatingIps(world).length === 0, 'its floating IP is given back')
    await eventually(async () => (await announced(world)).pools.length === 0, 'MetalLB knows it no more')
    await eventually(async () => (await addressOf(world, 'at-cherry')) !== former, 'it shows another address')
    const { annotations = {} } = (await serviceNamed(world, 'at-cherry'))?.metadata ?? {}
    t.same(Object.keys(annotations), [])
  })

  await t.test('and one that moves from Hetzner to Cherry leaves nothing at Hetzner', async (t) => {
    const { uid } = (await serviceNamed(world, 'at-hetzner'))?.metadata ?? {}
    await patchService(world, 'at-hetzner', { type: 'ClusterIP' })
    await patchService(world, 'at-hetzner', { type: 'LoadBalancer', loadBalancerClass: CHERRY_CLASS })
    await eventually(async () => floatingIps(world).length === 1, 'it is at Cherry')
    await eventually(async () => !(await balancers(world)).some((one) => one.uid === uid), 'its load balancer is gone')
    await eventually(async () => {
      const [floating] = floatingIps(world)
      return (await addressOf(world, 'at-hetzner')) === floating?.address
    }, 'it shows its floating IP')
    t.same((await announced(world)).pools, ['default.at-hetzner'])
  })

  await t.test('a Service without a class stays where it is when others are to go elsewhere', async (t) => {
    const before = await addressOf(world, 'plain')
    await all.end()
    const again = world.start('all', { env: { WINDLASS_DEFAULT_LOAD_BALANCER: 'cherryservers' } })
    await world.addService('newer')
    const address = await addressOf(world, 'newer')
    t.ok(floatingIps(world).some((one) => one.address === address))
    await patchService(world, 'plain', { sessionAffinity: 'ClientIP' })
    await eventually(
      async () => again.lines().some(({ msg, key }) => msg === 'run ended' && key === 'Service/default/plain'),
      'it was looked at',
    )
    t.equal(await addressOf(world, 'plain'), before)
    const uid = (await serviceNamed(world, 'plain'))?.metadata.uid
    t.ok((await balancers(world)).some((one) => one.uid === uid))
  })

  await t.test('also when nothing is remembered of it', async (t) => {
    const before = await addressOf(world, 'plain')
    await world.redis.flush()
    const third = await addressOf(world, 'newer')
    for (const name of ['plain', 'newer']) await patchService(world, name, { sessionAffinity: 'None' })
    await eventually(async () => {
      const records = (await world.redis.command('hkeys', '{windlass}:v1:state:default:service-records')) as string[]
      return ['default/plain', 'default/newer'].every((name) => records.includes(name))
    }, 'both were served again')
    t.equal(await addressOf(world, 'plain'), before)
    t.equal(await addressOf(world, 'newer'), third)
    t.equal(floatingIps(world).length, 2)
  })

  await t.test('a server that is deleted at Cherry takes its own Node along, and no other', async (t) => {
    await world.cherry.control.mutate({ servers: [{ hostname: 'c2', $delete: true }] })
    await setReady(world, 'c2', 'False')
    await eventually(async () => !(await world.nodes()).some(({ metadata }) => metadata.name === 'c2'), 'c2 is gone')
    t.same((await world.nodes()).map(({ metadata }) => metadata.name).sort(), ['c1', 'h1', 'h2'])
    await eventually(async () => (await announced(world)).nodes.join() === 'c1', 'and announces nothing any more')
  })

  await t.test('Services that go take everything with them, at both clouds', async (t) => {
    for (const { metadata } of await world.services())
      await world.api.delete(SERVICES, { namespace: 'default', name: metadata.name }, world.call)
    await eventually(async () => (await world.services()).length === 0, 'all Services are gone')
    t.same(await balancers(world), [])
    t.same(floatingIps(world), [])
    t.same((await announced(world)).pools, [])
  })
})
