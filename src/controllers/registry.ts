import type { ControllerName } from '../config/types.ts'
import type { NodeProjection } from '../events/projection.ts'
import { parseSubject } from '../events/subject.ts'
import type { Trigger, WorkKind } from '../queue/types.ts'
import type { Cluster } from './cluster.ts'
import { tellOfWaits } from './lasting-waits.ts'
import { reconcileNode } from './node/controller.ts'
import { tellFailure } from './node/failure.ts'
import { sweepAddresses } from './node/sweep.ts'
import { reconcileLifecycle } from './node-lifecycle/controller.ts'
import { readNode } from './nodes.ts'
import type { Reconcile, ReconcileRequest, ReconcileResult } from './reconcile.ts'
import { reconcileAll } from './resync/controller.ts'
import { reconcileRoutes } from './route/controller.ts'
import { reconcileService } from './service/controller.ts'
import { reconcileTargets } from './targets/controller.ts'

/** What each kind of work does for a cluster. Controllers that are switched off leave their work undone, and say nothing. */
export function controllersOf(cluster: Cluster): Record<WorkKind, Reconcile> {
  const on = (name: ControllerName) => cluster.framework.controllers.has(name)
  const when = (
    name: ControllerName,
    reconcile: (cluster: Cluster, request: ReconcileRequest) => Promise<ReconcileResult>,
  ) => (on(name) ? (request: ReconcileRequest) => reconcile(cluster, request) : async () => ({}))
  // Standing work that ends without a next time is asserted anew at once, again and again.
  const addresses =
    on('cloud-node-controller') || on('cloud-node-lifecycle-controller')
      ? (request: ReconcileRequest) => sweepAddresses(cluster, request)
      : async () => ({ requeueAfterMs: cluster.resyncPeriodMs })
  return {
    node: tellOfWaits(cluster, (request) => reconcileNodeAndLife(cluster, request)),
    service: tellOfWaits(cluster, when('service-lb-controller', reconcileService)),
    targets: tellOfWaits(cluster, when('service-lb-controller', reconcileTargets)),
    route: tellOfWaits(cluster, when('node-route-controller', reconcileRoutes)),
    addresses,
    resync: (request) => reconcileAll(cluster, request),
  }
}

/** The work of a cluster that comes again by itself, and is asserted anew whenever Redis has lost it. */
export const STANDING_WORK: readonly Trigger[] = [
  { kind: 'addresses', key: 'Cluster/addresses', cause: 'standing', urgency: 'background' },
  { kind: 'resync', key: 'Cluster/resync', cause: 'standing', urgency: 'background' },
]

/** Both controllers of a Node share its key: they never run beside each other, and the second sees what the first did. */
async function reconcileNodeAndLife(cluster: Cluster, request: ReconcileRequest): Promise<ReconcileResult> {
  const ref = parseSubject(request.key)
  if (ref?.kind !== 'Node') return {}
  const { controllers } = cluster.framework
  const known = await readNode(cluster, ref.name, request.call)
  if (!known) return {}
  let node: NodeProjection | undefined = known
  let failure: unknown
  if (controllers.has('cloud-node-controller')) {
    try {
      node = (await reconcileNode(cluster, known, request.call))?.node
    } catch (error) {
      failure = error
      tellFailure(cluster, known, error)
    }
  }
  if (node && controllers.has('cloud-node-lifecycle-controller'))
    try {
      const result = await reconcileLifecycle(cluster, node, request.call)
      if (failure === undefined) return result
    } catch (error) {
      tellFailure(cluster, node, error)
      throw error
    }
  if (failure !== undefined) throw failure
  return {}
}
