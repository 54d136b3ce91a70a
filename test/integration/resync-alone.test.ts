import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

t.test('without any event, the look at everything brings all about and takes all down', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const names = ['w1', 'w2', 'w3']
  world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
  await world.addNode('w1')
  await world.addService('web')
  // Nobody watches the cluster: there is neither forwarder nor server.
  world.start('worker', { env: { WINDLASS_RESYNC_PERIOD: '1s' } })
  const at = { namespace: 'default', name: 'web' }
  const initialised = (count: number) =>
    eventually(
      async () => (await world.nodes()).filter(isInitialised).length === count,
      `${count} nodes are initialised`,
    )
  const balancerIs = (wanted: { targets: number[]; ports: number[] }, why: string) =>
    eventually(async () => {
      const [balancer] = (await world.account()).load_balancers
      const targets = balancer?.targets.flatMap(({ server }) => server?.id ?? []).sort()
      const ports = balancer?.services.map(({ listen_port }) => listen_port).sort()
      return JSON.stringify({ targets, ports }) === JSON.stringify(wanted)
    }, why)

  await initialised(1)
  await balancerIs({ targets: [1], ports: [443, 80] }, 'there is a load balancer')
  await eventually(
    async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length,
    'the Service has an address',
  )
  await world.addNode('w2')
  await initialised(2)
  await balancerIs({ targets: [1, 2], ports: [443, 80] }, 'a node that joins becomes a target')
  const port = { type: 'json', body: [{ op: 'replace', path: '/spec/ports/0/port', value: 8080 }] } as const
  await world.api.patch(SERVICES, at, port, world.call)
  await balancerIs({ targets: [1, 2], ports: [443, 8080] }, 'a port that changes is followed')
  await world.api.delete(NODES, { name: 'w1' }, world.call)
  await balancerIs({ targets: [2], ports: [443, 8080] }, 'a node that goes is none any more')
  await world.api.delete(SERVICES, at, world.call)
  await eventually(async () => (await world.services()).length === 0, 'a Service that goes is let go')
  t.same((await world.account()).load_balancers, [])
})

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
