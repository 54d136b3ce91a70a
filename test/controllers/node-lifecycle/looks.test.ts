import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { areMany, lookAgainMs } from '../../../src/controllers/node-lifecycle/looks.ts'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld, type World } from '../../integration/world.ts'

t.test('a node that stays not ready is looked at less and less often', async (t) => {
  const looks: [forMs: number, againMs: number][] = [
    [0, 5000],
    [40_000, 5000],
    [120_000, 12_000],
    [600_000, 60_000],
    [86_400_000, 60_000],
    [-5000, 5000],
    [Number.NaN, 5000],
  ]
  for (const [forMs, againMs] of looks) t.equal(lookAgainMs(5000, forMs), againMs, String(forMs))
})

t.test('many are those of the last minute and a half, each counted once', async (t) => {
  let nowMs = 0
  const cluster = { state: {} as never, nowMs: () => nowMs }
  t.same(
    ['a', 'b', 'a', 'c', 'd'].map((uid) => areMany(cluster, uid)),
    [false, false, false, false, true],
  )
  nowMs = 100_000
  t.equal(areMany(cluster, 'a'), false)
  t.equal(areMany({ ...cluster, state: {} as never }, 'b'), false, 'each cluster has its own')
})

async function notReady(world: World, count: number): Promise<Record<string, number>> {
  const names = Array.from({ length: count }, (_, i) => `w${i + 1}`)
  for (const name of names) {
    const body = { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }
    await world.api.patch(NODES, { name }, { type: 'strategic', subresource: 'status', body }, world.call)
  }
  await delay(1500)
  const before = { ...world.hcloud.control.counters().calls }
  await delay(4000)
  const now = world.hcloud.control.counters().calls
  return Object.fromEntries(Object.entries(now).map(([label, calls]) => [label, calls - (before[label] ?? 0)]))
}

for (const count of [1, 12])
  t.test(
    `${count} nodes that stay not ready cost the account little, and what becomes of their machines is noticed`,
    async (t) => {
      const world = await startWorld({ kubernetes: 'simulator' })
      t.teardown(() => world.stop())
      const names = Array.from({ length: count + 1 }, (_, i) => `w${i + 1}`)
      world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
      for (const name of names) await world.addNode(name)
      world.start('all', {
        args: ['--node-monitor-period=250ms'],
        env: { HCLOUD_SERVER_CACHE_MAX_AGE: '1s' },
      })
      await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
      const { 'GET /servers': lists = 0, 'GET /servers/{id}': single = 0 } = await notReady(world, count)
      // Sixteen periods: no more than a request each, however many nodes.
      t.ok(lists + single <= 18, `${lists} lists and ${single} single servers`)

      world.hcloud.control.mutate({ servers: [{ name: 'w1', set: { status: 'off' } }] })
      const node = async (name: string) => (await world.nodes()).find(({ metadata }) => metadata.name === name)
      await eventually(
        async () =>
          (await node('w1'))?.spec?.taints?.some(({ key }) => key.endsWith('cloudprovider.kubernetes.io/shutdown')),
        'one that is switched off gets its taint',
      )
      world.hcloud.control.mutate({ servers: [{ name: 'w1', delete: true }] })
      await eventually(async () => (await node('w1')) === undefined, 'and the Node of one that is gone goes')
      t.equal((await world.nodes()).length, count)
    },
  )
