import type { Call } from '../../call.ts'
import { kindOf, messageOf } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { isConflict } from '../../kubernetes/answer.ts'
import { nodeTaints } from '../../kubernetes/patches.ts'
import { NODES } from '../../kubernetes/resources.ts'
import { type Cluster, COMPONENT, countChanges, nodeObject, recordNotes } from '../cluster.ts'
import type { ReconcileResult } from '../reconcile.ts'
import { isShutdownTaint, observeLife, SHUTDOWN_TAINT } from './life.ts'

/**
 * The life of a node whose initialisation is done: off at the cloud → shutdown taint, gone from the cloud → the Node is deleted, but
 * only on proof (see `decide.ts`). A Ready node costs no call, and is never deleted.
 */
export async function reconcileLifecycle(
  cluster: Cluster,
  known: NodeProjection,
  call: Call,
): Promise<ReconcileResult> {
  const { step, notes } = await observeLife(cluster, known, call)
  recordNotes(cluster, nodeObject(known), notes)
  switch (step.kind) {
    case 'rest':
      return {}
    case 'wait':
      return { requeueAfterMs: step.forMs }
    case 'hold':
      holdOn(cluster, known, step.why, call)
      return { requeueAfterMs: step.forMs }
    case 'set-shutdown':
      await setShutdownTaint(cluster, step.node, step.off, call)
      return step.againMs === undefined ? {} : { requeueAfterMs: step.againMs }
    case 'delete':
      return await deleteNode(cluster, step.node, call)
  }
}

async function deleteNode(cluster: Cluster, node: NodeProjection, call: Call): Promise<ReconcileResult> {
  const say = (type: 'Normal' | 'Warning', reason: string, message: string) =>
    cluster.recorder.record({ object: nodeObject(node), component: COMPONENT.lifecycle, type, reason, message })
  const deleting = () =>
    say('Normal', 'DeletingNode', `Deleting node ${node.name}: its machine no longer exists at the cloud`)
  try {
    // Bound to what was decided on: a kubelet that reported since, or a namesake that registered, stays.
    const { uid, resourceVersion } = node
    await cluster.kubernetes.delete(NODES, { name: node.name }, call, { preconditions: { uid, resourceVersion } })
  } catch (error) {
    // A Node that changed meanwhile is decided on anew, and a run that was stopped is taken up by another: neither has failed.
    if (isConflict(error) || !['transient', 'permanent'].includes(kindOf(error))) throw error
    deleting()
    say('Warning', 'DeletingNodeFailed', `Node ${node.name} could not be deleted: ${messageOf(error)}`)
    throw error
  }
  deleting()
  countChanges(cluster, 'lifecycle', [{ kind: 'delete-node' }])
  cluster.metrics?.increment('windlass_node_deletions_total', 1, { cluster: cluster.id })
  call.log.warn({ object: `Node/${node.name}`, providerId: node.providerId }, 'deleted a node whose machine is gone')
  return {}
}

function holdOn(cluster: Cluster, node: NodeProjection, why: string, call: Call): void {
  call.log.warn(
    { object: `Node/${node.name}`, providerId: node.providerId, why },
    'keeps a node whose machine is not found',
  )
  cluster.recorder.record({
    object: nodeObject(node),
    type: 'Warning',
    reason: 'NodeDeletionHeld',
    message: `Node ${node.name} is not ready and its machine is not found, yet it is kept: ${why}`,
    component: COMPONENT.lifecycle,
  })
}

async function setShutdownTaint(cluster: Cluster, node: NodeProjection, on: boolean, call: Call): Promise<void> {
  const others = node.taints.filter((taint) => !isShutdownTaint(taint))
  const { uid, resourceVersion } = node
  const taints = on ? [...others, { ...SHUTDOWN_TAINT }] : others
  await cluster.kubernetes.patch(NODES, { name: node.name }, nodeTaints({ taints, uid, resourceVersion }), call)
  countChanges(cluster, 'lifecycle', [{ kind: 'set-shutdown-taint' }])
  call.log.info({ object: `Node/${node.name}`, off: on }, 'set the shutdown taint by the power of the machine')
}
