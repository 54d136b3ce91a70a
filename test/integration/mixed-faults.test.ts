import t from 'tap'
import {
  addressOf,
  announced,
  balancers,
  CHERRY_CLASS,
  floatingIps,
  HETZNER_CLASS,
  nodesReady,
  patchService,
  serviceNamed,
  startMixedWorld,
} from './mixed-world.ts'
import { eventually, startWorld, type World } from './world.ts'

const down = {
  hcloud: {
    error: (world: World) => world.hcloud.control.fault([{ path: '.*', kind: 'http', status: 503, times: -1 }]),
    silence: (world: World) => world.hcloud.control.fault([{ path: '.*', kind: 'timeout', times: -1 }]),
    up: (world: World) => world.hcloud.control.fault({ clear: true }),
  },
  cherry: {
    error: (world: World) => world.cherry.control.fault({ path: '.*', kind: 'http', code: 503, times: -1 }),
    silence: (world: World) => world.cherry.control.fault({ path: '.*', kind: 'timeout', times: -1 }),
    up: (world: World) => world.cherry.control.fault('clear'),
  },
}

t.test('while Cherry is out of order, nodes and Services of Hetzner are served', async (t) => {
  const world = await startMixedWorld()
  t.teardown(() => world.stop())
  world.start('all')
  await Promise.all(['h1', 'c1'].map((name) => world.addNode(name)))
  await nodesReady(world, ['h1', 'c1'])
  await world.addService('at-cherry', { loadBalancerClass: CHERRY_CLASS })
  const address = await addressOf(world, 'at-cherry')

  await t.test('which answers with errors', async (t) => {
    down.cherry.error(world)
    await world.addNode('h2')
    await nodesReady(world, ['h2'])
    await world.addService('one')
    await addressOf(world, 'one')
    await eventually(async () => (await balancers(world)).every(({ targets }) => targets.join() === 'h1,h2'), 'targets')
    await world.addNode('c2')
    await patchService(world, 'at-cherry', { sessionAffinity: 'ClientIP' })
    t.equal(await addressOf(world, 'at-cherry'), address, 'what Cherry has stays')
    down.cherry.up(world)
    await nodesReady(world, ['c2'])
    await eventually(async () => (await announced(world)).nodes.join() === 'c1,c2', 'and goes on when it is back')
  })

  await t.test('which says nothing at all', async (t) => {
    await world.hcloud.control.seed({ servers: [{ id: 3, name: 'h3' }] })
    down.cherry.silence(world)
    await world.addNode('h3')
    await nodesReady(world, ['h3'])
    await world.addService('two', { loadBalancerClass: HETZNER_CLASS })
    await addressOf(world, 'two')
    await eventually(
      async () => (await balancers(world)).every(({ targets }) => targets.join() === 'h1,h2,h3'),
      'all are targets',
    )
    t.equal(floatingIps(world).length, 1)
    down.cherry.up(world)
  })
})

t.test('while Hetzner is out of order, nodes and Services of Cherry are served', async (t) => {
  const world = await startMixedWorld()
  t.teardown(() => world.stop())
  world.start('all')
  await Promise.all(['h1', 'c1'].map((name) => world.addNode(name)))
  await nodesReady(world, ['h1', 'c1'])
  await world.addService('at-hetzner')
  const address = await addressOf(world, 'at-hetzner')
  await down.hcloud.error(world)
  await world.addNode('c2')
  await nodesReady(world, ['c2'])
  await world.addService('one', { loadBalancerClass: CHERRY_CLASS })
  await addressOf(world, 'one')
  await eventually(async () => (await announced(world)).nodes.join() === 'c1,c2', 'both nodes announce it')
  await world.addNode('h2')
  t.equal(await addressOf(world, 'at-hetzner'), address)
  await down.hcloud.up(world)
  await nodesReady(world, ['h2'])
  await eventually(async () => (await balancers(world)).every(({ targets }) => targets.join() === 'h1,h2'), 'targets')
})

t.test('a cloud that does not answer at the start holds up its own part only', async (t) => {
  for (const kind of ['error', 'silence'] as const)
    await t.test(kind, async (t) => {
      const world = await startMixedWorld()
      t.teardown(() => world.stop())
      down.cherry[kind](world)
      await Promise.all(['h1', 'c1'].map((name) => world.addNode(name)))
      await world.addService('plain')
      const all = world.start('all')
      const { host, port } = await all.logged('the server listens')
      await nodesReady(world, ['h1'])
      await addressOf(world, 'plain')
      const ready = await fetch(`http://${host}:${port}/readyz`)
      t.equal(ready.status, 503)
      t.match(await ready.text(), /cherry/i)
      down.cherry.up(world)
      await nodesReady(world, ['c1'])
      await eventually(async () => (await fetch(`http://${host}:${port}/readyz`)).status === 200, 'all is in order')
    })
})

t.test(
  'a credential that is refused at the start holds up its own cloud only, and two of them end the process',
  async (t) => {
    const wrong = { cherry: { CHERRY_API_KEY: 'refused' }, hcloud: { HCLOUD_TOKEN: 'w'.repeat(64) } }
    for (const [cloud, env] of Object.entries(wrong))
      await t.test(cloud, async (t) => {
        const world = await startMixedWorld()
        t.teardown(() => world.stop())
        await Promise.all(['h1', 'c1'].map((name) => world.addNode(name)))
        const all = world.start('all', { env })
        const { host, port } = await all.logged('the server listens')
        await nodesReady(world, [cloud === 'cherry' ? 'h1' : 'c1'])
        const ready = await fetch(`http://${host}:${port}/readyz`)
        t.equal(ready.status, 503)
        t.match(await ready.text(), cloud === 'cherry' ? /CHERRY_API_KEY/ : /HCLOUD_TOKEN/)
      })
    const world = await startMixedWorld()
    t.teardown(() => world.stop())
    t.equal(await world.start('all', { env: { ...wrong.cherry, ...wrong.hcloud } }).exited, 1)
  },
)

t.test('where no cloud answers, nothing is touched', async (t) => {
  const world = await startWorld({ clouds: ['hcloud', 'cherry'] })
  t.teardown(() => world.stop())
  await Promise.all([down.hcloud.error(world), down.cherry.error(world)])
  const service = await world.addService('plain')
  const all = world.start('all')
  await eventually(
    async () => all.lines().some(({ msg, key }) => msg === 'run ended' && key === 'Service/default/plain'),
    'the Service had its turn',
  )
  t.equal((await serviceNamed(world, 'plain'))?.metadata.resourceVersion, service.metadata.resourceVersion)
})

t.test(
  'a Service that moves away from a cloud that is out of order is served at once, and cleaned up later',
  async (t) => {
    const world = await startMixedWorld()
    t.teardown(() => world.stop())
    const server = world.start('server')
    const { host, port } = await server.logged('the server listens')
    world.start('forwarder', { env: { WINDLASS_SERVER_URL: `http://${host}:${port}` } })
    const worker = world.start('worker')
    await Promise.all(['h1', 'c1'].map((name) => world.addNode(name)))
    await nodesReady(world, ['h1', 'c1'])
    await world.addService('web', { loadBalancerClass: CHERRY_CLASS })
    const former = await addressOf(world, 'web')
    const uid = (await serviceNamed(world, 'web'))?.metadata.uid
    await worker.end()
    // Both changes are one by the time a worker looks.
    await patchService(world, 'web', { type: 'ClusterIP' })
    await patchService(world, 'web', { type: 'LoadBalancer', loadBalancerClass: HETZNER_CLASS })
    down.cherry.error(world)
    world.start('worker')
    await eventually(async () => (await balancers(world)).some((one) => one.uid === uid), 'it has a load balancer')
    await eventually(async () => (await addressOf(world, 'web')) !== former, 'and shows its address')
    await eventually(
      async () =>
        (await world.events()).some(({ message }) => message.includes('had at cherryservers could not be deleted')),
      'an Event says what is left',
    )
    t.equal(floatingIps(world).length, 1)

    down.cherry.up(world)
    await patchService(world, 'web', { sessionAffinity: 'ClientIP' })
    await eventually(async () => floatingIps(world).length === 0, 'the floating IP is given back')
    t.same((await announced(world)).pools, [])
    t.notOk((await serviceNamed(world, 'web'))?.metadata.annotations?.['metallb.io/loadBalancerIPs'])
  },
)
