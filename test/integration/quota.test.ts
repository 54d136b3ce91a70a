import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { eventually, isInitialised, startWorld, type World } from './world.ts'

const ROBOT = { ROBOT_ENABLED: 'true', ROBOT_USER: 'robot', ROBOT_PASSWORD: 'secret' }
/** Periods of minutes are seconds here. */
const ADDRESSES_MS = 1000
const RESYNC_MS = 2000
const CACHE_MS = 500
const WATCHED_MS = 8000

const served = async (world: World) =>
  (await world.services()).every(({ status }) => status?.loadBalancer?.ingress?.length)

const versions = async (world: World) =>
  [...(await world.nodes()), ...(await world.services())].map(({ metadata }) => metadata.resourceVersion)

/** What a cluster in which nothing happens costs its accounts, by endpoint. */
async function idle(t: Test, size: { nodes: number; services: number }): Promise<Record<string, number>> {
  const world = await startWorld({ kubernetes: 'simulator', hcloud: { action_ms: 0 } })
  t.teardown(() => world.stop())
  const names = Array.from({ length: size.nodes }, (_, i) => `w${i + 1}`)
  const { control, robotUrl } = world.hcloud
  control.seed({
    servers: names.map((name, i) => ({ id: i + 1, name })),
    robot_servers: [{ server_number: 321, server_name: 'metal' }],
  })
  for (const name of [...names, 'metal']) await world.addNode(name)
  world.start('all', {
    args: [`--node-status-update-frequency=${ADDRESSES_MS}ms`],
    env: {
      ...ROBOT,
      ROBOT_ENDPOINT: robotUrl,
      HCLOUD_LOAD_BALANCERS_TYPE: 'lb31',
      HCLOUD_SERVER_CACHE_MAX_AGE: `${CACHE_MS}ms`,
      WINDLASS_RESYNC_PERIOD: `${RESYNC_MS}ms`,
    },
  })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
  for (let i = 0; i < size.services; i++) await world.addService(`s${i}`, { ports: [{ name: 'http', port: 80 }] })
  await eventually(() => served(world), 'every Service has its address')
  // Until what the last changes made known has been looked at.
  await delay(2500)
  const before = { ...control.counters().calls }
  const logged = control.log().length
  const objects = await versions(world)
  await delay(WATCHED_MS)
  const { calls } = control.counters()
  t.same(await versions(world), objects, 'no object is written')
  // The first page of each list.
  const reads = control
    .log()
    .slice(logged)
    .filter(({ label, query }) => label === 'GET /servers' && query.includes('page=1&'))
    .map(({ at }) => Date.parse(at))
  for (const [i, at] of reads.entries())
    if (i > 0) t.ok(at - (reads[i - 1] ?? 0) >= CACHE_MS - 20, 'no list of servers is read while one is young')
  return Object.fromEntries(
    Object.entries(calls)
      .map(([label, count]) => [label, count - (before[label] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  )
}

const total = (calls: Record<string, number>) => Object.values(calls).reduce((sum, count) => sum + count, 0)

t.test('a cluster at rest costs pages of lists, however many nodes and Services it has', async (t) => {
  const [small, large] = [await idle(t, { nodes: 4, services: 2 }), await idle(t, { nodes: 70, services: 24 })]
  t.comment(JSON.stringify({ small, large }))
  for (const calls of [small, large]) {
    t.same(
      Object.keys(calls).filter((label) => !/(^| )GET /.test(label)),
      [],
      'nothing is written',
    )
    t.ok((calls['ROBOT GET /server'] ?? 0) <= 1)
  }
  // Twice the pages of servers, and a start in the middle of a period.
  t.ok(
    total(large) <= 2 * total(small) + 4,
    `${total(large)} calls for 70 nodes and 24 Services, ${total(small)} for 4 and 2`,
  )
})

t.test('sixty Services for which the account has few requests left are all served, one after the other', async (t) => {
  const count = 60
  // Ten requests a second come back.
  const hcloud = { action_ms: 0, rate_limit: 36_000, rate_remaining: 15, max_load_balancers: count }
  const world = await startWorld({ kubernetes: 'simulator', hcloud })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [1, 2].map((id) => ({ id, name: `w${id}` })) })
  for (const name of ['w1', 'w2']) await world.addNode(name)
  // Drift repair of all of them all the time, which goes behind.
  world.start('all', { env: { WINDLASS_RESYNC_PERIOD: '1s' } })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'both nodes are initialised')
  const begun = performance.now()
  await Promise.all(
    Array.from({ length: count }, (_, i) => world.addService(`s${i}`, { ports: [{ name: 'http', port: 80 }] })),
  )
  const waits = new Map<string, number>()
  await eventually(
    async () => {
      for (const { metadata, status } of await world.services())
        if (status?.loadBalancer?.ingress?.length && !waits.has(metadata.name))
          waits.set(metadata.name, performance.now() - begun)
      return waits.size === count
    },
    'every Service has its address',
    120_000,
  )
  const sorted = [...waits.values()].sort((a, b) => a - b)
  const [median = 0, longest = 0] = [sorted[count / 2], sorted.at(-1)]
  const { calls, rejected } = world.hcloud.control.counters()
  t.comment(
    `median ${Math.round(median)} ms, longest ${Math.round(longest)} ms, ${JSON.stringify({ calls, rejected })}`,
  )
  t.equal((await world.account()).load_balancers.length, count)
})
