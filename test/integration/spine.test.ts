import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld, type World } from './world.ts'

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

/** Each role in a process of its own, as a production install has them. */
async function startRoles(world: World, workers = 2) {
  const server = world.start('server')
  const { host, port } = await server.logged('the server listens')
  const forwarder = world.start('forwarder', { env: { WINDLASS_SERVER_URL: `http://${host}:${port}` } })
  return { server, forwarder, workers: Array.from({ length: workers }, () => world.start('worker')) }
}

const initialised = (world: World, count: number) =>
  eventually(async () => {
    const nodes = await world.nodes()
    return nodes.filter(isInitialised).length === count && nodes
  }, `${count} nodes are initialised`)

const ingressOf = (world: World, name: string) =>
  eventually(async () => {
    const service = (await world.services()).find(({ metadata }) => metadata.name === name)
    return service?.status?.loadBalancer?.ingress?.length ? service : undefined
  }, `Service ${name} has an address`)

const targetsOf = async (world: World) => {
  const { load_balancers, servers } = await world.account()
  const names = new Map(servers.map(({ id, name }) => [id, name]))
  return load_balancers.map(({ targets }) => targets.map((target) => names.get(target.server?.id ?? 0)).sort())
}

t.test('from a change in the cluster to a patched object, each role in a process of its own', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  await world.hcloud.control.seed({
    servers: [
      { id: 1, name: 'w1' },
      { id: 2, name: 'w2' },
      { id: 3, name: 'w3' },
    ],
  })
  const roles = await startRoles(world)
  await world.addNode('w1')
  await world.addNode('w2')

  await t.test('a node that joins is initialised in one write, then gets its addresses', async (t) => {
    const [node] = await initialised(world, 2)
    t.match(node, {
      metadata: {
        labels: {
          'node.kubernetes.io/instance-type': 'cx22',
          'topology.kubernetes.io/region': 'fsn1',
          'topology.kubernetes.io/zone': 'fsn1-dc14',
          'instance.hetzner.cloud/provided-by': 'cloud',
        },
      },
      spec: { providerID: 'hcloud://1' },
    })
    t.same(node?.status?.addresses, [
      { type: 'Hostname', address: 'w1' },
      { type: 'ExternalIP', address: '198.51.100.1' },
    ])
    await eventually(
      async () =>
        (await world.events()).some((event) => event.reason === 'Synced' && event.involvedObject.name === 'w1'),
      'an Event says so',
    )
  })

  await t.test('a Service gets a load balancer by one call, with the nodes as targets', async (t) => {
    // Else it may be the look at everything, which begins with the workers, that finds the Service before its event does.
    const begun = () =>
      roles.workers.flatMap((one) => one.lines()).some(({ msg }) => msg === 'enqueued everything once more')
    await eventually(async () => begun(), 'the workers have looked at everything')
    await world.addService('web')
    const service = await ingressOf(world, 'web')
    t.same(service.metadata.finalizers, [FINALIZER])
    t.match(service.status?.loadBalancer?.ingress, [
      { ip: /^\d/, ipMode: 'VIP' },
      { ip: /:/, ipMode: 'VIP' },
    ])
    t.same(await targetsOf(world), [['w1', 'w2']])
    const { calls } = await world.hcloud.control.counters()
    t.equal(calls['POST /load_balancers'], 1)
    const changes = Object.keys(calls).filter((call) => !call.startsWith('GET '))
    t.same(changes, ['POST /load_balancers'], 'that one call has everything in it')
  })

  await t.test('the way of a change can be followed by one trace id', async (t) => {
    // On a busy machine the change may be told more than once: as a change, and in a list.
    const told = roles.forwarder.lines().filter(({ subject, traceId }) => subject === 'Service/default/web' && traceId)
    t.ok(told.length > 0, 'the forwarder names it')
    const inTrace = (lines: Record<string, unknown>[], traceId: unknown) =>
      lines.filter((line) => line.traceId === traceId)
    const followed = told.map(({ traceId }) => {
      const server = inTrace(roles.server.lines(), traceId)
      const worker = inTrace(
        roles.workers.flatMap((one) => one.lines()),
        traceId,
      )
      return {
        'the server names the job': server.some(({ jobId }) => jobId),
        'the worker names the call to the cloud': worker.some(({ request }) => request === 'POST /load_balancers'),
        'and the patches': worker.some(({ what }) => String(what).includes('patch Service default/web')),
      }
    })
    const whole = followed.find((found) => Object.values(found).every(Boolean))
    t.ok(whole, `one of them is followed to its end: ${JSON.stringify(followed)}`)
  })

  await t.test('no log says a field twice in one line, and each line of the forwarder names its cluster', async (t) => {
    const again = (line: string) => line.startsWith('{') && JSON.stringify(JSON.parse(line)) !== line
    for (const role of [roles.forwarder, roles.server, ...roles.workers]) {
      const whole = role.output().split('\n').slice(0, -1)
      t.same(whole.filter(again), [], role.command)
    }
    const about = roles.forwarder.lines().filter(({ subject }) => subject)
    t.ok(about.length > 0 && about.every(({ cluster }) => cluster === 'default'))
  })

  await t.test('a node that joins later becomes a target, one that is excluded leaves', async (t) => {
    await world.addNode('w3')
    await eventually(async () => (await targetsOf(world))[0]?.length === 3, 'w3 is a target')
    const labels = { 'node.kubernetes.io/exclude-from-external-load-balancers': 'true' }
    await world.api.patch(NODES, { name: 'w1' }, { type: 'merge', body: { metadata: { labels } } }, world.call)
    await eventually(async () => (await targetsOf(world))[0]?.join() === 'w2,w3', 'w1 is no target')
    t.pass()
  })

  await t.test('a port that changes changes its listener, and the address stays', async (t) => {
    const before = await ingressOf(world, 'web')
    await world.api.patch(
      SERVICES,
      { namespace: 'default', name: 'web' },
      { type: 'json', body: [{ op: 'replace', path: '/spec/ports/0/port', value: 8080 }] },
      world.call,
    )
    await eventually(async () => {
      const { load_balancers } = await world.account()
      const ports = load_balancers[0]?.services.map(({ listen_port }) => listen_port)
      return ports?.sort().join() === '443,8080'
    }, 'the listener follows')
    t.same((await ingressOf(world, 'web')).status, before.status)
  })

  await t.test('a restart with nothing to do writes nothing', async (t) => {
    const quiet = async () => {
      const { calls } = await world.hcloud.control.counters()
      const writes = Object.entries(calls).filter(([call]) => !call.startsWith('GET '))
      const versions = [...(await world.nodes()), ...(await world.services())].map(
        (one) => one.metadata.resourceVersion,
      )
      return { writes, versions }
    }
    const before = await quiet()
    for (const one of [roles.forwarder, ...roles.workers, roles.server]) await one.end()
    const again = await startRoles(world)
    await eventually(
      async () => again.forwarder.lines().some(({ msg }) => String(msg).startsWith('Listed')),
      'the forwarder has listed',
    )
    const idle = world.start('worker', { args: ['--until-idle'] })
    t.equal(await idle.exited, 0)
    t.same(await quiet(), before)
  })

  await t.test('a Service that is deleted takes its load balancer with it', async (t) => {
    await world.api.delete(SERVICES, { namespace: 'default', name: 'web' }, world.call)
    await eventually(async () => (await world.services()).length === 0, 'the Service is gone')
    t.same((await world.account()).load_balancers, [])
  })
})

t.test('all three roles in one process need a kubeconfig, Redis and a cloud, and end on SIGTERM', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  await world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  await world.addNode('w1')
  await world.addService('web')
  const { WINDLASS_WEBHOOK_KEYS: _, ...env } = world.env
  const all = world.start('all', { env: { ...env, WINDLASS_WEBHOOK_KEYS: '' } })
  await ingressOf(world, 'web')
  await initialised(world, 1)
  all.signal('SIGTERM')
  t.equal(await all.exited, 0)
})

t.test('a refused token ends the process at first contact, and no object is touched', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  await world.addNode('w1')
  const before = (await world.nodes())[0]?.metadata.resourceVersion
  const all = world.start('all', { env: { HCLOUD_TOKEN: 'x'.repeat(64) } })
  t.not(await all.exited, 0)
  t.match(all.output(), /unauthorized|HCLOUD_TOKEN/)
  t.notMatch(all.output(), 'x'.repeat(64))
  t.equal((await world.nodes())[0]?.metadata.resourceVersion, before)
})

t.test('told to end before it has begun, a role ends at once', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  world.hcloud.control.fault({ path: '.*', kind: 'timeout', times: -1 })
  for (const command of ['worker', 'all']) {
    const windlass = world.start(command)
    await windlass.logged('Redis answers')
    windlass.signal('SIGTERM')
    t.equal(await windlass.exited, 0, command)
    t.notMatch(
      windlass.output(),
      /ending|does not answer yet/,
      'long before it would have given up waiting for the cloud',
    )
  }
})

t.test('a cloud that does not answer is waited for', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  await world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  await world.hcloud.control.fault([{ match: 'GET /locations', kind: 'http', status: 503, times: 2 }])
  await world.addNode('w1')
  world.start('all')
  await initialised(world, 1)
  t.pass()
})
