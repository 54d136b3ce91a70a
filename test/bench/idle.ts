import { setTimeout as delay } from 'node:timers/promises'
import { eventually, isInitialised, type KubernetesFlavour, startWorld } from '../integration/world.ts'
import { callsSince, cpuSecondsOf, LATENCY, memoryOf, runsOf } from './measure.ts'
import { type Figures, megabytes } from './report.ts'

const NODES = 200
const SERVICES = 50
/** Times faster than by default, so that an hour need not be waited for. */
const FASTER = 60
const RESYNC_S = 600
const ADDRESSES_S = 300
const MINUTES = 20

/** A cluster in which nothing happens: what it costs its account to be looked after. */
export async function benchIdle({ kubernetes }: { kubernetes: KubernetesFlavour }): Promise<Figures> {
  const world = await startWorld({ kubernetes, hcloud: { action_ms: 50, max_load_balancers: SERVICES } })
  try {
    const names = Array.from({ length: NODES }, (_, i) => `node-${i}`)
    world.hcloud.control.fault(LATENCY)
    world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
    for (const name of names) await world.addNode(name)
    const all = world.start('all', {
      args: [`--node-status-update-frequency=${ADDRESSES_S / FASTER}s`],
      env: { WINDLASS_RESYNC_PERIOD: `${RESYNC_S / FASTER}s` },
    })
    await eventually(
      async () => (await world.nodes()).filter(isInitialised).length === NODES,
      'all nodes are initialised',
    )
    await Promise.all(Array.from({ length: SERVICES }, (_, i) => world.addService(`service-${i}`)))
    const served = async () => (await world.services()).every(({ status }) => status?.loadBalancer?.ingress?.length)
    await eventually(served, 'every Service has its address', 120_000)
    // Until what the last changes made known has been looked at.
    await delay(3000)

    const before = { ...world.hcloud.control.counters().calls }
    const versions = await versionsOf(world)
    const pid = all.child.pid ?? 0
    const cpu = cpuSecondsOf(pid)
    await delay((MINUTES * 60_000) / FASTER)
    const calls = callsSince(world, before)
    const written = (await versionsOf(world)).filter((version, i) => version !== versions[i]).length
    const perHour = (calls.total * 60) / MINUTES
    return {
      title: `${NODES} nodes and ${SERVICES} Services, nothing happens, ${kubernetes}, periods ${FASTER} times shorter`,
      rows: [
        { what: 'cloud calls an hour', value: perHour.toFixed(0), replaced: 'allowed: 3600', aim: '360' },
        { what: 'objects of the cluster that were written', value: String(written), aim: '0' },
        { what: 'CPU of Windlass', value: `${(((cpuSecondsOf(pid) - cpu) / MINUTES / 60) * 100).toFixed(2)} %` },
        { what: 'memory of all roles', value: megabytes(memoryOf(pid).nowBytes) },
      ],
      limit: `calls in ${MINUTES} minutes: ${calls.byEndpoint}\n  runs since the start: ${runsOf(all)}`,
    }
  } finally {
    await world.stop()
  }
}

const versionsOf = async (world: Awaited<ReturnType<typeof startWorld>>) =>
  [...(await world.nodes()), ...(await world.services())].map(({ metadata }) => metadata.resourceVersion)
