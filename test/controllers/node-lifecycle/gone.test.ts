import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { random } from '../../chaos/random.ts'
import { eventually, isInitialised, startWorld } from '../../integration/world.ts'

/** `ROUNDS=100` for a long run; `SEED` repeats one. */
const ROUNDS = Number(process.env.ROUNDS ?? 6)
const PERIOD_MS = 300

t.setTimeout(60_000 + ROUNDS * 10_000)

t.test('a Node goes after its server, whichever is noticed first, and none goes without', async (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  t.comment(`seed ${seed}`)
  const dice = random(seed)
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const { control } = world.hcloud
  control.seed({ servers: ['kept', 'silent'].map((name, i) => ({ id: i + 1, name })) })
  for (const name of ['kept', 'silent']) await world.addNode(name)
  world.start('all', {
    args: [`--node-monitor-period=${PERIOD_MS}ms`],
    env: { HCLOUD_SERVER_CACHE_MAX_AGE: '500ms' },
  })
  const setReady = (name: string, status: string) =>
    world.api.patch(
      NODES,
      { name },
      { type: 'strategic', subresource: 'status', body: { status: { conditions: [{ type: 'Ready', status }] } } },
      world.call,
    )
  const names = async () => (await world.nodes()).map(({ metadata }) => metadata.name).sort()
  const initialised = () => eventually(async () => (await world.nodes()).every(isInitialised), 'all are initialised')
  await initialised()
  // Its kubelet is silent, and its server is there.
  await setReady('silent', 'Unknown')

  for (let round = 1; round <= ROUNDS; round++) {
    const name = `w${round}`
    control.seed({ servers: [{ id: 100 + round, name }] })
    await world.addNode(name)
    await initialised()
    const steps = [
      async () => control.mutate({ servers: [{ name, delete: true }] }),
      async () => void (await setReady(name, dice.pick(['False', 'Unknown']))),
    ]
    for (const step of dice.shuffle(steps)) {
      await delay(dice.between(0, 2 * PERIOD_MS))
      await step()
    }
    const what = `round ${round} of seed ${seed}: the Node is gone`
    await eventually(async () => !(await names()).includes(name), what, 15_000)
    // More than some within ten minutes would be held.
    for (const key of (await world.redis.command('KEYS', '*:deletions*')) as string[])
      await world.redis.command('DEL', key)
  }
  t.same(await names(), ['kept', 'silent'])
})
