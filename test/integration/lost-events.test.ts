import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { NODES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

t.test(
  'nodes of which events have not told are put right by the look at everything, and that is counted',
  async (t) => {
    const world = await startWorld({ hcloud: { action_ms: 0 } })
    t.teardown(() => world.stop())
    world.hcloud.control.seed({ servers: [1, 2, 3].map((id) => ({ id, name: `w${id}` })) })
    for (const id of [1, 2, 3]) await world.addNode(`w${id}`)
    const all = world.start('all', { env: { WINDLASS_RESYNC_PERIOD: '2s' } })
    const { host, port } = await all.logged('the server listens')
    await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
    // All that the start makes be told, and told again, has been.
    await delay(4000)

    const find = async (part: string) => ((await world.redis.command('KEYS', `*${part}*`)) as string[]).sort()
    const bodies = (await find(':nodes')).filter((key) => !/tombstone|snapshot|complete/.test(key))
    t.comment(bodies.join(', '))
    let forgotten = 0
    for (const key of bodies)
      if ((await world.redis.command('TYPE', key)) === 'hash')
        forgotten += Number(await world.redis.command('HDEL', key, 'w2'))
    t.ok(forgotten > 0, 'Redis has lost one')
    await world.addService('web')
    const targets = async () =>
      (await world.account()).load_balancers.flatMap((one) => one.targets.map(({ server }) => server?.id)).sort()
    await eventually(async () => `${await targets()}` === '1,2,3', 'all three are targets')
    const metric = async () =>
      /^windlass_nodes_missed_total\{cluster="default"\} (\d+)$/m.exec(
        await (await fetch(`http://${host}:${port}/metrics`)).text(),
      )?.[1]
    await eventually(async () => Number(await metric()) >= 1, 'and that is counted')

    const before = await metric()
    await world.api.patch(
      NODES,
      { name: 'w1' },
      { type: 'merge', body: { metadata: { labels: { a: 'b' } } } },
      world.call,
    )
    await delay(9000)
    t.equal(await metric(), before, 'events that are told cost nothing')
  },
)
