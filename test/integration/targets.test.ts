import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { KubeNode } from '../../src/kubernetes/objects.ts'
import { NODES } from '../../src/kubernetes/resources.ts'
import { random } from '../chaos/random.ts'
import { cherryCalls, prepareBurst, wrongIn } from './cherry-burst.ts'
import { eventually, isInitialised, nodeManifest, startWorld, type World } from './world.ts'

const EXCLUDED = 'node.kubernetes.io/exclude-from-external-load-balancers'
const SELECTOR = 'load-balancer.hetzner.cloud/node-selector'
/** `ROUNDS=100` for a long run; `SEED` repeats one. Long enough for what a change asks for to be done before the next comes. */
const ROUNDS = Number(process.env.ROUNDS ?? 4)
const SPREAD_MS = Number(process.env.SPREAD_MS ?? 1500)

const edit = (world: World, name: string, body: object) =>
  world.api.patch(NODES, { name }, { type: 'merge', body }, world.call)
const setReady = (world: World, name: string, status: 'True' | 'False') =>
  world.api.patch(
    NODES,
    { name },
    { type: 'strategic', subresource: 'status', body: { status: { conditions: [{ type: 'Ready', status }] } } },
    world.call,
  )

t.setTimeout(120_000 + ROUNDS * 20_000)

const targetsOf = async (world: World) =>
  (await world.account()).load_balancers.flatMap(({ targets }) => targets.flatMap(({ server }) => server?.id ?? []))

const targetsAre = (world: World, ids: readonly number[], what: string) => {
  const wanted = `${[...ids].sort((a, b) => a - b)}`
  let present = ''
  return eventually(
    async () => {
      present = `${(await targetsOf(world)).sort((a, b) => a - b)}`
      return present === wanted
    },
    what,
    30_000,
  ).catch((error) => {
    throw new Error(`${error.message}: ${present} in place of ${wanted}`)
  })
}

t.test(
  'of up to twenty nodes that join at once all are targets, in whatever order they come to be what they are',
  async (t) => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    t.comment(`seed ${seed}`)
    const dice = random(seed)
    const world = await startWorld({ kubernetes: 'simulator', hcloud: { action_ms: 20, rate_limit: 1_000_000 } })
    t.teardown(() => world.stop())
    world.start('all', { env: { HCLOUD_LOAD_BALANCERS_TYPE: 'lb21', HCLOUD_SERVER_CACHE_MAX_AGE: '1s' } })
    await world.addService('web', { annotations: { [SELECTOR]: 'pool=web' } })
    await eventually(
      async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length,
      'web has an address',
    )

    /** What makes a node a target comes by itself, as kubelets, autoscalers and people write it; each piece at a time of its own. */
    async function join(name: string, id: number): Promise<void> {
      const { node, status } = nodeManifest(name)
      const later: (() => Promise<unknown>)[] = [
        () => edit(world, name, { metadata: { labels: { pool: 'web' } } }),
        () => world.api.patch(NODES, { name }, { type: 'merge', subresource: 'status', body: { status } }, world.call),
      ]
      const whose = dice.pick(['windlass', 'kubelet', 'somebody'])
      if (whose !== 'windlass') node.spec.taints = []
      if (whose === 'kubelet') node.spec.providerID = `hcloud://${id}`
      if (whose === 'somebody') later.push(() => edit(world, name, { spec: { providerID: `hcloud://${id}` } }))
      if (dice.between(0, 1) < 0.3) {
        Object.assign(node.metadata.labels, { [EXCLUDED]: '' })
        later.push(() => edit(world, name, { metadata: { labels: { [EXCLUDED]: null } } }))
      }
      await delay(dice.between(0, SPREAD_MS))
      world.hcloud.control.seed({ servers: [{ id, name }] })
      await world.api.create(NODES, node, world.call)
      await Promise.all(
        dice.shuffle(later).map(async (write) => {
          await delay(dice.between(0, SPREAD_MS))
          await write()
        }),
      )
    }

    for (let round = 1; round <= ROUNDS; round++) {
      // Of a few, nobody else's change makes up for one that was missed.
      const count = round % 4 === 1 ? 20 : dice.pick([1, 2, 3])
      const ids = Array.from({ length: count }, (_, i) => round * 100 + i)
      await Promise.all(ids.map((id) => join(`w${id}`, id)))
      await targetsAre(world, ids, `round ${round} of seed ${seed}: all are targets`)
      await Promise.all(ids.map((id) => world.api.delete(NODES, { name: `w${id}` }, world.call)))
      await targetsAre(world, [], `round ${round} of seed ${seed}: none is left of nodes that went`)
      world.hcloud.control.mutate({ servers: ids.map((id) => ({ id, delete: true })) })
    }
    t.pass(`${ROUNDS} rounds`)
  },
)

t.test('a node that is to go leaves the targets while it still runs, and no listener is without any', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const ids = [1, 2, 3, 4]
  world.hcloud.control.seed({ servers: ids.map((id) => ({ id, name: `w${id}` })) })
  world.start('all')
  for (const id of ids) await world.addNode(`w${id}`)
  await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
  await world.addService('web')
  await targetsAre(world, ids, 'all nodes are targets')
  const ways: [string, (name: string) => Promise<unknown>][] = [
    ['has the label that excludes it', (name) => edit(world, name, { metadata: { labels: { [EXCLUDED]: 'true' } } })],
    [
      'has the taint of the autoscaler',
      (name) =>
        edit(world, name, {
          spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', value: '1790000000', effect: 'NoSchedule' }] },
        }),
    ],
    [
      'is being deleted, and kept by a finalizer',
      async (name) => {
        await edit(world, name, { metadata: { finalizers: ['example.com/drain'] } })
        await world.api.delete(NODES, { name }, world.call)
      },
    ],
  ]
  for (const [i, [what, drain]] of ways.entries()) {
    await drain(`w${i + 1}`)
    await targetsAre(world, ids.slice(i + 1), `one that ${what} is no target any more`)
    const node = (await world.nodes()).find(({ metadata }) => metadata.name === `w${i + 1}`)
    t.equal(readyOf(node), 'True', `${what}: it is ready until then`)
    world.hcloud.control.mutate({ servers: [{ id: i + 1, set: { status: 'off' } }] })
  }
  t.same(world.hcloud.control.trafficGaps(), [])
})

const readyOf = (node: KubeNode | undefined) => node?.status?.conditions?.find((one) => one.type === 'Ready')?.status

/** Nodes whose readiness comes and goes, and what that made Windlass write at the cloud and in the cluster. */
async function flap(
  world: World,
  names: readonly string[],
  writes: () => number,
): Promise<{ cloud: number; nodes: string[] }> {
  const versions = new Map<string, string>()
  const before = writes()
  for (let i = 0; i < 6; i++)
    for (const name of names) {
      const patched = await setReady(world, name, i % 2 === 0 ? 'False' : 'True')
      versions.set(name, patched?.metadata.resourceVersion ?? '')
      await delay(60)
    }
  // What the last flap asks for has been looked at.
  await delay(1500)
  const nodes = await world.nodes()
  return {
    cloud: writes() - before,
    nodes: nodes
      .filter(({ metadata }) => versions.get(metadata.name) !== metadata.resourceVersion)
      .map(({ metadata }) => metadata.name),
  }
}

const written = (calls: Record<string, number>) =>
  Object.entries(calls).reduce((sum, [label, count]) => sum + (label.startsWith('GET ') ? 0 : count), 0)

t.test('nodes whose readiness comes and goes make nobody write anything', async (t) => {
  const args = ['--node-monitor-period=200ms']
  await t.test('at Hetzner', async (t) => {
    const world = await open(t, ['hcloud'])
    const names = ['w1', 'w2', 'w3']
    world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
    world.start('all', { args })
    for (const name of names) await world.addNode(name)
    await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
    await world.addService('web')
    await targetsAre(world, [1, 2, 3], 'all are targets')
    await delay(1000)
    t.same(await flap(world, names, () => written(world.hcloud.control.counters().calls)), { cloud: 0, nodes: [] })
    t.same((await targetsOf(world)).sort(), [1, 2, 3])
  })
  await t.test('at Cherry Servers', async (t) => {
    const world = await open(t, ['cherry'])
    const burst = await prepareBurst(world, { nodes: 3, services: 1 })
    world.start('all', { args })
    for (const name of burst.nodes) await world.addNode(name)
    await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
    await world.addService('service-1')
    await eventually(async () => (await wrongIn(world, burst)).length === 0, 'all is announced')
    await delay(2500)
    const writes = () => written(world.cherry.control.counters().calls)
    t.same(await flap(world, burst.nodes, writes), { cloud: 0, nodes: [] }, cherryCalls(world).byEndpoint)
    t.same(await wrongIn(world, burst), [])
  })
})

async function open(t: Test, clouds: readonly ('hcloud' | 'cherry')[]): Promise<World> {
  const world = await startWorld({ kubernetes: 'simulator', clouds })
  t.teardown(() => world.stop())
  return world
}
