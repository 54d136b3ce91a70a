import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { eventually, isInitialised, startWorld, type World } from '../../integration/world.ts'

async function open(t: Test, env: Record<string, string> = {}): Promise<World> {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: ['w1', 'w2'].map((name, i) => ({ id: i + 1, name })) })
  await world.addNode('w1')
  world.start('all', { env })
  return world
}

const warned = (world: World, name: string, text: RegExp) =>
  eventually(
    async () =>
      (await world.events()).find(
        ({ type, involvedObject, message }) =>
          type === 'Warning' && involvedObject.name === name && text.test(String(message)),
      ),
    `an Event on ${name} says ${text}`,
  )

const initialised = (world: World, count: number) =>
  eventually(async () => (await world.nodes()).filter(isInitialised).length === count, `${count} nodes are initialised`)

/** Faults of the simulated API server. */
async function faults(world: World, method: 'POST' | 'DELETE', fault?: object): Promise<void> {
  const server = /server: (\S+)/.exec(readFileSync(world.kubeconfigFor('admin' as never), 'utf8'))?.[1]
  const body = fault === undefined ? {} : { body: JSON.stringify(fault) }
  await fetch(`${server}/_sim/faults`, { method, ...body })
}

t.test(
  'a right that is missing is told on Node and Service, and no restart is needed once it is granted',
  async (t) => {
    const world = await open(t)
    await initialised(world, 1)
    for (const resource of ['nodes', 'services', 'services/status'])
      await faults(world, 'POST', { match: { verb: 'patch', resource }, effect: { kind: 'status', status: 403 } })
    await world.addNode('w2')
    await world.addService('web')
    await warned(world, 'w2', /w2 can't be initialised: .*grant the verb "patch" on "nodes"/)
    await warned(world, 'web', /grant the verb "patch" on "services/)
    await faults(world, 'DELETE')
    await initialised(world, 2)
    await eventually(
      async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length,
      'the Service has an address',
    )
  },
)

t.test(
  'a cloud that answers with errors is told on a node that waits, and not on those that are initialised',
  async (t) => {
    const world = await open(t, { WINDLASS_RESYNC_PERIOD: '1s', HCLOUD_SERVER_CACHE_MODE: 'off' })
    await initialised(world, 1)
    world.hcloud.control.fault({ path: '^/servers', kind: 'http', status: 503, times: -1 })
    await world.addNode('w2')
    await warned(world, 'w2', /w2 can't be initialised: Hetzner Cloud.* 503/)
    const looks = () => Number(world.hcloud.control.counters().calls['GET /servers/{id}'] ?? 0)
    const before = looks()
    await eventually(async () => looks() > before + 2, 'the other node is looked at too')
    const upkeep = (await world.events()).filter(({ message }) => message?.includes('not kept in step'))
    t.same(upkeep, [])
    world.hcloud.control.fault({ clear: true })
    await initialised(world, 2)
  },
)

t.test('an address that kubelet was told to use and that the cloud does not know is told, and which', async (t) => {
  const world = await open(t)
  await world.addNode('w2', { annotations: { 'alpha.kubernetes.io/provided-node-ip': '10.9.9.9' } })
  const event = await warned(world, 'w2', /10\.9\.9\.9 is none of the addresses.*198\.51\.100\.2.*HCLOUD_NETWORK/)
  t.equal(event.reason, 'ProvidedNodeIPNotFound')
  t.notOk(
    (await world.events()).some(({ reason }) => reason === 'SyncNodeFailed'),
    'it is told once',
  )
})
