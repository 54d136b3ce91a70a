import type { Call } from '../../call.ts'
import type { CloudProvider, Note } from '../../cloud/provider.ts'
import type { NodeProjection } from '../../events/projection.ts'
import type { Cluster } from '../cluster.ts'
import { findMachine } from '../node/lookup.ts'
import { isUninitialised } from '../node/plan.ts'
import { readFreshNode, readFreshNodes } from '../nodes.ts'
import { decideDeletion } from './decide.ts'

/** Says to the scheduler and to volume controllers that the machine is off. */
export const SHUTDOWN_TAINT = { key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' } as const

/** Label by which a human says that machines are gone: on one Node it ends the hold on deletions of all. */
const MACHINE_GONE = 'windlass.dev/machine-gone'

/** How long a node is left alone whose absence only a human can settle. */
const HOLD_MS = 10 * 60_000

/** What the life of a node's machine asks for now. */
export type LifeStep =
  /** Nothing, and no look before the node changes. */
  | { kind: 'rest' }
  /** Nothing yet; look again after this time. */
  | { kind: 'wait'; forMs: number }
  /** The machine is missing, but the Node is kept. */
  | { kind: 'hold'; forMs: number; why: string }
  | { kind: 'set-shutdown'; off: boolean; node: NodeProjection; againMs?: number }
  | { kind: 'delete'; node: NodeProjection }

export interface Life {
  step: LifeStep
  notes: readonly Note[]
}

/** Observes and decides, and writes nothing but what was seen: `windlass plan` asks it too. A Ready node costs no call. */
export async function observeLife(cluster: Cluster, known: NodeProjection, call: Call): Promise<Life> {
  if (known.ready === 'True') {
    const step = hasShutdownTaint(known) ? ({ kind: 'set-shutdown', off: false, node: known } as const) : REST
    return { step, notes: [] }
  }
  const againMs = cluster.framework.nodeMonitorPeriodMs
  const node = await readFreshNode(cluster, known.name, call)
  if (!node || node.ready === 'True') return { step: REST, notes: [] }
  const again = { kind: 'wait', forMs: againMs } as const
  const { providerId } = node
  // Its initialisation finds out who it is, and until then its other taint keeps pods away.
  if (providerId === undefined && isUninitialised(node)) return { step: again, notes: [] }
  const lookup = await findMachine(cluster.clouds, node, call, { fresh: providerId !== undefined })
  if (lookup.kind === 'foreign') return { step: REST, notes: [] }
  const { notes } = lookup
  if (lookup.kind === 'ambiguous') return { step: again, notes }
  if (lookup.kind === 'not-found') {
    if (node.deleting) return { step: REST, notes }
    // Without a provider id it may be another machine, so it can't be told that it is gone.
    if (providerId === undefined) return { step: again, notes }
    return { step: await missing(cluster, node, providerId, lookup.searched, call), notes }
  }
  if (providerId !== undefined)
    await cluster.state.sightings.seen([providerId], lookup.cloud.credentialId(providerId), 0)
  const turnedOff = !hasShutdownTaint(node) && (await lookup.cloud.instances.isOff(lookup.instance, call))
  return { step: turnedOff ? { kind: 'set-shutdown', off: true, node, againMs } : again, notes }
}

async function missing(
  cluster: Cluster,
  node: NodeProjection,
  providerId: string,
  searched: string,
  call: Call,
): Promise<LifeStep> {
  const { nodeMonitorPeriodMs: monitorPeriodMs } = cluster.framework
  const { firstAtMs: firstNotFoundMs } = await cluster.state.sightings.notFound(providerId)
  const cloud = cluster.clouds.find((one) => one.owns(providerId))
  const sighting = await cluster.state.sightings.lastSeen(providerId)
  const sighted = sighting !== undefined && sighting.credentialId === cloud?.credentialId(providerId)
  const verdict = decideDeletion({
    nowMs: cluster.nowMs(),
    nodeCreatedMs: Date.parse(node.creationTimestamp),
    firstNotFoundMs,
    monitorPeriodMs,
    sighted,
    seesOthers: !sighted && cloud !== undefined && (await seesOthers(cluster, cloud, node, call)),
  })
  if (verdict.kind === 'wait') return { kind: 'wait', forMs: Math.max(verdict.forMs, monitorPeriodMs) }
  if (verdict.kind === 'hold') return { kind: 'hold', forMs: HOLD_MS, why: `${searched}, but ${verdict.why}` }
  if (node.labels[MACHINE_GONE] === 'true') {
    // That Node goes whatever the budget, and takes nothing from it: of several with the word at once, the first would use it up.
    await cluster.state.releaseDeletions()
    return { kind: 'delete', node }
  }
  const nodes = await cluster.state.nodes.all()
  const nodeCount = nodes.complete ? nodes.nodes.length : (await readFreshNodes(cluster, call)).length
  const { allowed, used, limit } = await cluster.state.allowDeletion(node.uid, nodeCount)
  if (allowed) return { kind: 'delete', node }
  return {
    kind: 'hold',
    forMs: HOLD_MS,
    why: `${used} nodes of this cluster were deleted within ten minutes, and ${limit} are the limit. If the machines are gone for good, say so by label ${MACHINE_GONE}=true on this Node; otherwise look at the cloud project and its token`,
  }
}

/** The witness of promise 5: does this credential see any other machine of this cluster, now? */
async function seesOthers(cluster: Cluster, cloud: CloudProvider, node: NodeProjection, call: Call): Promise<boolean> {
  const visible = await cloud.instances.listProviderIds(call, { fresh: true })
  const nodes = await readFreshNodes(cluster, call)
  return nodes.some(({ providerId }) => providerId && providerId !== node.providerId && visible.has(providerId))
}

export const isShutdownTaint = ({ key, effect }: { key: string; effect: string }) =>
  key === SHUTDOWN_TAINT.key && effect === SHUTDOWN_TAINT.effect

const hasShutdownTaint = (node: NodeProjection) => node.taints.some(isShutdownTaint)

const REST = { kind: 'rest' } as const
