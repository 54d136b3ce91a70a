import { setTimeout as delay } from 'node:timers/promises'
import { beginBurst, cherryCalls, prepareBurst, untrueIn, wrongIn } from '../integration/cherry-burst.ts'
import { type KubernetesFlavour, startWorld } from '../integration/world.ts'
import { cpuSecondsOf, LATENCY_AT_CHERRY, memoryOf, runsOf } from './measure.ts'
import { type Figures, megabytes, seconds } from './report.ts'

const NODES = 10
const SERVICES = 5
const LIMIT_MS = 120_000
/** So long after the last call nothing of it echoes any more. */
const QUIET_MS = 4000

/**
 * Nodes and Services that appear at once at Cherry Servers, until all of it is right: nodes, BGP of project and servers, floating IPs,
 * statuses, and MetalLB's objects. Says what is wrong at the end, or was told and not so on the way.
 */
export async function benchCherry({
  kubernetes,
  perSecond,
}: {
  kubernetes: KubernetesFlavour
  /** What the API takes; 0 for no limit. */
  perSecond: number
}): Promise<Figures> {
  const world = await startWorld({ kubernetes, clouds: ['cherry'], cherry: { requests_per_second: perSecond } })
  try {
    const burst = await prepareBurst(world, { nodes: NODES, services: SERVICES })
    world.cherry.control.fault(LATENCY_AT_CHERRY)
    const all = world.start('all')
    await all.logged('the server listens')

    const begun = performance.now()
    await beginBurst(world, burst)
    const untrue = new Set<string>()
    let wrong = await wrongIn(world, burst)
    while (wrong.length > 0 && performance.now() - begun < LIMIT_MS) {
      for (const one of await untrueIn(world)) untrue.add(one)
      await delay(50)
      wrong = await wrongIn(world, burst)
    }
    const ended = performance.now()
    const untilRight = cherryCalls(world)
    let before: number
    do {
      before = cherryCalls(world).total
      await delay(QUIET_MS)
    } while (cherryCalls(world).total !== before)
    const { total, refused, byEndpoint } = cherryCalls(world)
    wrong = await wrongIn(world, burst)
    for (const one of await untrueIn(world)) untrue.add(one)

    const pid = all.child.pid ?? 0
    const limited = perSecond > 0
    const limit = limited ? `the API takes ${perSecond} requests a second` : 'the API takes all'
    return {
      title: `${NODES} nodes and ${SERVICES} Services at Cherry Servers, ${limit}, ${kubernetes}, all roles in one process`,
      rows: [
        {
          what: 'until everything is right',
          value: seconds(ended - begun),
          ...(limited ? { replaced: 'not in 114 s' } : {}),
        },
        {
          what: 'cloud calls until then',
          value: String(untilRight.total),
          replaced: limited ? '220' : '237',
          aim: '25',
        },
        { what: 'and for the echoes', value: String(total - untilRight.total), aim: '0' },
        { what: 'of all calls refused', value: String(refused), ...(limited ? { replaced: '172' } : {}), aim: '0' },
        { what: 'CPU of Windlass', value: `${cpuSecondsOf(pid).toFixed(1)} s` },
        { what: 'memory of all roles, peak', value: megabytes(memoryOf(pid).peakBytes) },
      ],
      limit: `calls: ${byEndpoint}\n  runs: ${runsOf(all)}`,
      wrong: [...wrong, ...[...untrue].map((one) => `on the way: ${one}`)],
    }
  } finally {
    await world.stop()
  }
}
