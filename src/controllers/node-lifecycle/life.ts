import type { Call } from '../../call.ts'
import type { CloudProvider, Note } from '../../cloud/provider.ts'
import { type NodeProjection, projectNode } from '../../events/projection.ts'
import type { KubeNode } from '../../kubernetes/objects.ts'
import { NODES } from '../../kubernetes/resources.ts'
import type { Cluster } from '../cluster.ts'
import { findMachine, type MachineLookup } from '../node/lookup.ts'
import { isUninitialised } from '../node/plan.ts'
import { readFreshNodes } from '../nodes.ts'
import { decideDeletion } from './decide.ts'
import { areMany, lookAgainMs } from './looks.ts'

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
  const object = await cluster.kubernetes.get(NODES, { name: known.name }, call)
  const node = object && projectNode(object)
  if (!node || node.ready === 'True') return { step: REST, notes: [] }
  const againMs = lookAgainMs(cluster.framework.nodeMonitorPeriodMs, cluster.nowMs() - notReadySince(object))
  const again = { kind: 'wait', forMs: againMs } as const
  const { providerId } = node
  // Its initialisation finds out who it is, and until then its other taint keeps pods away.
  if (providerId === undefined && isUninitialised(node)) return { step: again, notes: [] }
  const fresh = providerId !== undefined && !areMany(cluster, node.uid)
  const listed = await findMachine(cluster.clouds, node, call, { fresh })
  // What a list of some seconds' age lacks may be there: only its id tells that it is gone.
  const isSure = fresh || providerId === undefined || listed.kind !== 'not-found'
  const lookup = isSure ? listed : await findMachine(cluster.clouds, node, call, { fresh: true })
  if (lookup.kind === 'foreign') return { step: REST, notes: [] }
  const { notes } = lookup
  if (lookup.kind === 'ambiguous') return { step: again, notes }
  if (lookup.kind === 'not-found') {
    if (node.deleting) return { step: REST, notes }
    // Without a provider id it may be another machine, so it can't be told that it is gone.
    if (providerId === undefined) return { step: again, notes }
    return { step: await missing(cluster, node, providerId, lookup.searched, call), notes }
  }
  const { cloud } = lookup
  if (providerId !== undefined) {
    const ageMs = fresh || !isSure ? 0 : cloud.instances.maxAgeMs(providerId)
    await cluster.state.sightings.seen([providerId], cloud.credentialId(providerId), ageMs)
  }
  const turnedOff = !hasShutdownTaint(node) && (await isOff(lookup, fresh, call))
  return { step: turnedOff ? { kind: 'set-shutdown', off: true, node, againMs } : again, notes }
}

/** What was just read of the machine tells it; that it is off is asked once more where that is some seconds old. */
async function isOff(
  { cloud, instance }: Extract<MachineLookup, { kind: 'found' }>,
  fresh: boolean,
  call: Call,
): Promise<boolean> {
  if (instance.off === false || (instance.off === true && fresh)) return instance.off
  return await cloud.instances.isOff(instance, call)
}

/** Unix milliseconds. */
function notReadySince({ metadata, status }: KubeNode): number {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return Date.parse(ready?.lastTransitionTime ?? metadata.creationTimestamp)
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
    seesOthers: cloud !== undefined && (await seesOthers(cluster, cloud, node, call)),
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
