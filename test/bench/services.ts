import { eventually, isInitialised, type KubernetesFlavour, startWorld } from '../integration/world.ts'
import { callsSince, cpuSecondsOf, LATENCY, loopDelayOf, memoryOf, runsOf } from './measure.ts'
import { type Figures, megabytes, seconds } from './report.ts'

const NODES = 20

/** Services of two ports that appear at once in a cluster of 20 nodes, until the last one has its address and all its targets. */
export async function benchServices({
  kubernetes,
  count,
}: {
  kubernetes: KubernetesFlavour
  count: number
}): Promise<Figures> {
  const world = await startWorld({ kubernetes, hcloud: { action_ms: 500, max_load_balancers: count } })
  try {
    const nodes = Array.from({ length: NODES }, (_, i) => `node-${i}`)
    world.hcloud.control.fault(LATENCY)
    world.hcloud.control.seed({ servers: nodes.map((name, i) => ({ id: i + 1, name })) })
    for (const name of nodes) await world.addNode(name, { images: 30 })
    const all = world.start('all')
    await eventually(
      async () => (await world.nodes()).filter(isInitialised).length === NODES,
      'all nodes are initialised',
    )

    const before = { ...world.hcloud.control.counters().calls }
    const begun = performance.now()
    await Promise.all(Array.from({ length: count }, (_, i) => world.addService(`service-${i}`)))
    const created = performance.now()
    const settled = async () => {
      const services = await world.services()
      const { load_balancers } = await world.account()
      return (
        services.every(({ status }) => status?.loadBalancer?.ingress?.length) &&
        load_balancers.length === count &&
        load_balancers.every(({ targets }) => targets.length === NODES)
      )
    }
    await eventually(settled, 'every Service has its load balancer', 300_000)
    const ended = performance.now()
    const heldUpMs = await loopDelayOf(all)
    const pid = all.child.pid ?? 0
    const calls = callsSince(world, before)
    return {
      title: `${count} Services with 2 ports on ${NODES} nodes, ${kubernetes}, all roles in one process`,
      rows: [
        {
          what: 'from the first create to the last address',
          value: seconds(ended - begun),
          replaced: '530 s, tuned 57 s',
          aim: '3.5 s',
        },
        { what: 'of that, creating the Services', value: seconds(created - begun) },
        { what: 'cloud calls per Service', value: (calls.total / count).toFixed(2), replaced: '51', aim: '4' },
        { what: 'event loop held up, 99 of 100 moments', value: `${Math.round(heldUpMs)} ms`, aim: '200 ms' },
        { what: 'CPU of Windlass', value: `${cpuSecondsOf(pid).toFixed(1)} s` },
        {
          what: 'memory of all roles, peak',
          value: megabytes(memoryOf(pid).peakBytes),
          replaced: '82 MB',
          aim: '220 MB',
        },
      ],
      limit: `calls: ${calls.byEndpoint}\n  runs: ${runsOf(all)}`,
    }
  } finally {
    await world.stop()
  }
}
