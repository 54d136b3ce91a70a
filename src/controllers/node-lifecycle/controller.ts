import type { Call } from '../../call.ts'
import type { CloudProvider } from '../../cloud/provider.ts'
import { messageOf } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { nodeTaints } from '../../kubernetes/patches.ts'
import { NODES } from '../../kubernetes/resources.ts'
import { type Cluster, COMPONENT, nodeObject, recordNotes } from '../cluster.ts'
import { findMachine } from '../node/lookup.ts'
import { readFreshNode, readFreshNodes } from '../nodes.ts'
import type { ReconcileResult } from '../reconcile.ts'
import { decideDeletion } from './decide.ts'

/** Says to the scheduler and to volume controllers that the machine is off. */
export const SHUTDOWN_TAINT = { key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' } as const

/** How long a node is left alone whose absence only a human can settle. */
const HOLD_MS = 10 * 60_000

/**
 * The life of a node whose initialisation is done: off at the cloud → shutdown taint, gone from the cloud → the Node is deleted, but
 * only on proof (see `decide.ts`). A Ready node costs no call, and is never deleted.
 */
export async function reconcileLifecycle(
  cluster: Cluster,
  known: NodeProjection,
  call: Call,
): Promise<ReconcileResult> {
  if (known.ready === 'True') {
    if (hasShutdownTaint(known)) await setShutdownTaint(cluster, known, false, call)
    return {}
  }
  const again = { requeueAfterMs: cluster.framework.nodeMonitorPeriodMs }
  const node = await readFreshNode(cluster, known.name, call)
  if (!node || node.deleting || node.ready === 'True') return {}
  // Who it is can't be told without a provider id, and so never that it is gone.
  if (node.providerId === undefined) return again
  const lookup = await findMachine(cluster.clouds, node, call, { fresh: true })
  if (lookup.kind === 'foreign') return {}
  recordNotes(cluster, nodeObject(node), lookup.notes)
  if (lookup.kind === 'ambiguous') return again
  if (lookup.kind === 'not-found') return await missing(cluster, node, node.providerId, lookup.searched, call)
  await cluster.state.sightings.seen([node.providerId], lookup.cloud.credentialId(node.providerId))
  if (!hasShutdownTaint(node) && (await lookup.cloud.instances.isOff(lookup.instance, call)))
    await setShutdownTaint(cluster, node, true, call)
  return again
}

async function missing(
  cluster: Cluster,
  node: NodeProjection,
  providerId: string,
  searched: string,
  call: Call,
): Promise<ReconcileResult> {
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
  const log = call.log.child({ object: `Node/${node.name}`, providerId })
  if (verdict.kind === 'wait') return { requeueAfterMs: Math.max(verdict.forMs, monitorPeriodMs) }
  if (verdict.kind === 'hold') return hold(cluster, node, `${searched}, but ${verdict.why}`)
  const nodes = await cluster.state.nodes.all()
  const nodeCount = nodes.complete ? nodes.nodes.length : (await readFreshNodes(cluster, call)).length
  const { allowed, used, limit } = await cluster.state.allowDeletion(node.uid, nodeCount)
  if (!allowed)
    return hold(
      cluster,
      node,
      `${used} nodes of this cluster were deleted within ten minutes, and ${limit} are the limit. If the machines are gone for good, delete the Node yourself; otherwise look at the cloud project and its token`,
    )
  return await deleteNode(cluster, node, call, log)
}

async function deleteNode(
  cluster: Cluster,
  node: NodeProjection,
  call: Call,
  log: Call['log'],
): Promise<ReconcileResult> {
  const event = { object: nodeObject(node), component: COMPONENT.lifecycle }
  cluster.recorder.record({
    ...event,
    type: 'Normal',
    reason: 'DeletingNode',
    message: `Deleting node ${node.name}: its machine no longer exists at the cloud`,
  })
  try {
    // Bound to what was decided on: a kubelet that reported since, or a namesake that registered, stays.
    const { uid, resourceVersion } = node
    await cluster.kubernetes.delete(NODES, { name: node.name }, call, { preconditions: { uid, resourceVersion } })
  } catch (error) {
    cluster.recorder.record({
      ...event,
      type: 'Warning',
      reason: 'DeletingNodeFailed',
      message: `Node ${node.name} could not be deleted: ${messageOf(error)}`,
    })
    throw error
  }
  log.warn('deleted a node whose machine is gone')
  return {}
}

function hold(cluster: Cluster, node: NodeProjection, why: string): ReconcileResult {
  cluster.recorder.record({
    object: nodeObject(node),
    type: 'Warning',
    reason: 'NodeDeletionHeld',
    message: `Node ${node.name} is not ready and its machine is not found, yet it is kept: ${why}`,
    component: COMPONENT.lifecycle,
  })
  return { requeueAfterMs: HOLD_MS }
}

/** The witness of promise 5: does this credential see any other machine of this cluster, now? */
async function seesOthers(cluster: Cluster, cloud: CloudProvider, node: NodeProjection, call: Call): Promise<boolean> {
  const visible = await cloud.instances.listProviderIds(call, { fresh: true })
  const nodes = await readFreshNodes(cluster, call)
  return nodes.some(({ providerId }) => providerId && providerId !== node.providerId && visible.has(providerId))
}

async function setShutdownTaint(cluster: Cluster, node: NodeProjection, on: boolean, call: Call): Promise<void> {
  const others = node.taints.filter((taint) => !isShutdownTaint(taint))
  const { uid, resourceVersion } = node
  const taints = on ? [...others, { ...SHUTDOWN_TAINT }] : others
  await cluster.kubernetes.patch(NODES, { name: node.name }, nodeTaints({ taints, uid, resourceVersion }), call)
  call.log.info({ object: `Node/${node.name}`, off: on }, 'set the shutdown taint by the power of the machine')
}

const isShutdownTaint = ({ key, effect }: { key: string; effect: string }) =>
  key === SHUTDOWN_TAINT.key && effect === SHUTDOWN_TAINT.effect

const hasShutdownTaint = (node: NodeProjection) => node.taints.some(isShutdownTaint)
