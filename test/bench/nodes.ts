import { setTimeout as delay } from 'node:timers/promises'
import { isInitialised, type KubernetesFlavour, startWorld } from '../integration/world.ts'
import { callsSince, cpuSecondsOf, LATENCY, loopDelayOf, memoryOf, runsOf } from './measure.ts'
import { type Figures, megabytes, seconds } from './report.ts'

/** Container images that a node lists: what makes real node objects big. */
const IMAGES = 30

/** Nodes that join at once, until the last one is initialised and has its addresses. */
export async function benchNodes({
  kubernetes,
  count,
}: {
  kubernetes: KubernetesFlavour
  count: number
}): Promise<Figures> {
  const world = await startWorld({ kubernetes, hcloud: { action_ms: 500 } })
  try {
    const names = Array.from({ length: count }, (_, i) => `node-${String(i).padStart(4, '0')}`)
    world.hcloud.control.fault(LATENCY)
    world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
    // The nodes stand before anything is started: what is measured is Windlass, not the speed at which objects can be created.
    await inParts(names, 20, (name) => world.addNode(name, { images: IMAGES }))

    const gate = world.hcloud.control.counters().calls
    const begun = performance.now()
    const all = world.start('all')
    await all.logged('the server listens')
    const ready = performance.now()
    const before = { ...gate }
    while (await world.anyNodeWithout('node.kubernetes.io/instance-type')) await delay(50)
    while ((await world.nodes()).filter(isInitialised).length < count) await delay(20)
    const ended = performance.now()
    const heldUpMs = await loopDelayOf(all)
    const pid = all.child.pid ?? 0
    const { peakBytes, nowBytes } = memoryOf(pid)
    const calls = callsSince(world, before)
    return {
      title: `${count} nodes with ${IMAGES} images each join, ${kubernetes}, all roles in one process`,
      rows: [
        {
          what: 'from ready to the last node',
          value: seconds(ended - ready),
          replaced: '74 s, tuned 3.1 s',
          aim: '3.1 s',
        },
        { what: 'from the start of the process', value: seconds(ended - begun) },
        { what: 'cloud calls', value: String(calls.total), replaced: '11', aim: '13' },
        { what: 'event loop held up, 99 of 100 moments', value: `${Math.round(heldUpMs)} ms`, aim: '200 ms' },
        { what: 'CPU of Windlass', value: `${cpuSecondsOf(pid).toFixed(1)} s` },
        { what: 'memory of all roles, peak', value: megabytes(peakBytes), replaced: '82 MB', aim: '220 MB' },
        { what: 'memory of all roles at the end', value: megabytes(nowBytes) },
      ],
      limit: `calls: ${calls.byEndpoint}\n  runs: ${runsOf(all)}`,
    }
  } finally {
    await world.stop()
  }
}

async function inParts<T>(items: readonly T[], size: number, work: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += size) await Promise.all(items.slice(i, i + size).map(work))
}
