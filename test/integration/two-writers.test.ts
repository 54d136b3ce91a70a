import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld, type World } from './world.ts'

const HOLD_MS = 6000

async function open(t: Test): Promise<World> {
  const world = await startWorld({ kubernetes: 'simulator', hcloud: { action_ms: 0 } })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [1, 2, 3].map((id) => ({ id, name: `w${id}` })) })
  for (const id of [1, 2]) await world.addNode(`w${id}`)
  world.start('all', {
    args: [`--node-status-update-frequency=${HOLD_MS}ms`],
    env: { WINDLASS_RESYNC_PERIOD: `${HOLD_MS}ms`, HCLOUD_SERVER_CACHE_MAX_AGE: '300ms' },
  })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the nodes are initialised')
  return world
}

/** Somebody who writes again and again what he thinks right; ends with how often he had to. */
function writer(t: Test, write: () => Promise<boolean>): { readonly writes: number; stop(): void } {
  let over = false
  let writes = 0
  const done = (async () => {
    while (!over) {
      if (await write()) writes++
      await delay(20)
    }
  })()
  t.teardown(() => {
    over = true
    return done
  })
  return {
    get writes() {
      return writes
    },
    stop() {
      over = true
    },
  }
}

const told = (world: World, reason: string) =>
  eventually(async () => (await world.events()).find((event) => event.reason === reason), `an Event ${reason}`)

t.test(
  'two who write the status of one Service do not go on for ever, and all else of it is looked after',
  async (t) => {
    const world = await open(t)
    await world.addService('web', { ports: [{ name: 'http', port: 80 }] })
    const shown = async () => ((await world.services())[0]?.status?.loadBalancer?.ingress?.length ?? 0) > 0
    await eventually(shown, 'the Service has its address')
    const at = { namespace: 'default', name: 'web' }
    const balancer = async () => (await world.account()).load_balancers[0]
    const before = world.hcloud.control.activity().requests
    const other = writer(t, async () => {
      if (!(await shown())) return false
      await delay(300)
      const body = { status: { loadBalancer: { ingress: null } } }
      await world.api.patch(SERVICES, at, { type: 'merge', subresource: 'status', body }, world.call)
      return true
    })
    t.match(await told(world, 'StatusDisputed'), {
      type: 'Warning',
      message: /MetalLB/,
      involvedObject: { name: 'web' },
    })
    await delay(2500)
    t.ok(other.writes <= 4, `${other.writes} writes of the other`)
    const requests = world.hcloud.control.activity().requests - before
    t.ok(requests <= 8, `${requests} requests to the cloud`)

    await world.addNode('w3')
    await eventually(async () => (await balancer())?.targets.length === 3, 'a node that joins is a target')
    const body = { spec: { ports: [{ name: 'http', port: 8080, protocol: 'TCP' }] } }
    await world.api.patch(SERVICES, at, { type: 'merge', body }, world.call)
    await eventually(
      async () => (await balancer())?.services[0]?.listen_port === 8080,
      'and a port changes its listener',
    )
    other.stop()
    await eventually(shown, 'once the other is gone, the Service has its address again')
  },
)

t.test('a Service that stops to be a load balancer again and again is nobody else’s work', async (t) => {
  const world = await open(t)
  const at = { namespace: 'default', name: 'web' }
  await world.addService('web', {
    ports: [{ name: 'http', port: 80 }],
    annotations: { 'load-balancer.hetzner.cloud/hostname': 'web.example.com' },
  })
  const shown = async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.[0]?.hostname
  for (let i = 0; i < 4; i++) {
    await eventually(async () => (await shown()) === 'web.example.com', `it has its name, time ${i + 1}`)
    await become('ClusterIP')
    await eventually(async () => !(await world.services())[0]?.metadata.finalizers?.length, 'it is let go')
    t.equal(await shown(), undefined)
    await become('LoadBalancer')
  }
  await eventually(async () => (await shown()) === 'web.example.com', 'it has its name in the end')
  t.notOk((await world.events()).some(({ reason }) => reason === 'StatusDisputed'))

  async function become(type: string) {
    await world.api.patch(SERVICES, at, { type: 'merge', body: { spec: { type } } }, world.call)
  }
})

t.test('nor two who write the addresses of one node', async (t) => {
  const world = await open(t)
  const addressesOf = async () =>
    (await world.nodes())
      .find(({ metadata }) => metadata.name === 'w1')
      ?.status?.addresses?.map(({ address }) => address)
  const right = `${await addressesOf()}`
  const other = writer(t, async () => {
    if (`${await addressesOf()}` !== right) return false
    await delay(300)
    const addresses = [
      { type: 'InternalIP', address: '192.168.0.1' },
      { type: 'Hostname', address: 'w1' },
    ]
    const body = { status: { addresses } }
    await world.api.patch(NODES, { name: 'w1' }, { type: 'merge', subresource: 'status', body }, world.call)
    return true
  })
  t.match(await told(world, 'AddressesDisputed'), { type: 'Warning', involvedObject: { name: 'w1' } })
  await delay(2500)
  t.ok(other.writes <= 5, `${other.writes} writes of the other`)
  other.stop()
  await eventually(
    async () => `${await addressesOf()}` === right,
    'once the other is gone, the node has its addresses again',
  )
})
