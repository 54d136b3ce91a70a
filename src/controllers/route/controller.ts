import type { Call } from '../../call.ts'
import type { CloudProvider, RoutePlan, Routes, RoutesApplied } from '../../cloud/provider.ts'
import {
  type ErrorKind,
  kindOf,
  messageOf,
  soonestRetry,
  throttled,
  transient,
  type WindlassError,
} from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { nodeCondition } from '../../kubernetes/patches.ts'
import { NODES } from '../../kubernetes/resources.ts'
import { type Cluster, COMPONENT, countChanges, nodeObject, recordNotes } from '../cluster.ts'
import { isUninitialised } from '../node/plan.ts'
import { readFreshNodes } from '../nodes.ts'
import { foreignProject, showsOurMachines } from '../own-project.ts'
import type { ReconcileRequest, ReconcileResult } from '../reconcile.ts'

const CREATED = { status: 'False', reason: 'RouteCreated', message: 'All pod CIDRs of this node are routed' }
const MISSING = { status: 'True', reason: 'NoRouteCreated', message: 'A pod CIDR of this node is not routed' }

/**
 * Pod routes of a cluster's network, and the condition NetworkUnavailable that keeps pods off a node until its routes are there.
 * One run at a time covers the whole network, which also takes one change at a time only.
 */
export async function reconcileRoutes(cluster: Cluster, { call }: ReconcileRequest): Promise<ReconcileResult> {
  const { routeReconciliationPeriodMs } = cluster.framework
  const kept = routesOf(cluster)
  if (!kept) return {}
  const { cloud, routes } = kept
  cluster.metrics?.increment('route_controller_route_sync_total', 1)
  // A route is taken away for what the list does not name, so the list is fresh.
  const nodes = await readFreshNodes(cluster, call)
  const byName = new Map(nodes.map((node) => [node.name, node]))
  const plan = await planNetwork(cluster, cloud, routes, nodes, call)
  measure(cluster, plan)
  const applied = await routes.apply(plan, call)
  const { failed, leftOver, notes } = applied
  if (failed.size === 0) countChanges(cluster, 'route', plan.changes)
  for (const note of [...plan.notes, ...notes])
    if (note.node !== undefined) {
      const node = byName.get(note.node)
      if (node) recordNotes(cluster, nodeObject(node), [note], byName)
    }
  const conflicts = await Promise.allSettled(
    nodes.map((node) => setNetworkCondition(cluster, cloud, node, applied, call)),
  )
  const faults = [
    ...failed.values(),
    ...leftOver,
    ...conflicts.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : [])),
  ]
  const again = comeBack(faults, cluster.nowMs() + (routeReconciliationPeriodMs ?? Number.POSITIVE_INFINITY))
  if (again) throw again
  return routeReconciliationPeriodMs === undefined ? {} : { requeueAfterMs: routeReconciliationPeriodMs }
}

function measure({ id: cluster, metrics }: Cluster, { outside, use }: RoutePlan): void {
  metrics?.set('windlass_nodes_outside_cluster_cidr', outside.length, { cluster })
  if (!use) return
  metrics?.set('windlass_network_routes', use.routes, { cluster })
  metrics?.set('windlass_network_routes_limit', use.limit, { cluster })
}

/** For what may pass by itself; undefined when nothing of it does. Other nodes' routes are looked at in their time whatever fails of one. */
function comeBack(faults: readonly unknown[], byMs: number): WindlassError | undefined {
  const of = (kind: ErrorKind) => faults.filter((fault) => kindOf(fault) === kind)
  const why = `The routes of the network are not in order: ${faults.map(messageOf).join('; ')}`
  if (of('transient').length > 0) return transient(why, { retryByMs: byMs })
  const { retryAtMs, userRetryAtMs } = soonestRetry(of('throttled'))
  return retryAtMs === undefined ? undefined : throttled(why, retryAtMs, { userRetryAtMs })
}

/** The cloud that keeps this cluster's routes. Where pod addresses come from has to be known: else no route is ours, and no node lacks one. */
export function routesOf({ clouds, framework }: Pick<Cluster, 'clouds' | 'framework'>) {
  const cloud = clouds.find((one) => one.routes)
  const routes = cloud?.routes
  const on = framework.configureCloudRoutes && framework.clusterCidrs.length > 0
  return on && routes ? { cloud, routes } : undefined
}

/** In a namesake network of another project every route of its cluster would look stale: nothing is planned without a machine of ours. */
export async function planNetwork(
  cluster: Cluster,
  cloud: CloudProvider,
  routes: Routes,
  nodes: readonly NodeProjection[],
  call: Call,
): Promise<RoutePlan> {
  const plan = await routes.plan(nodes, cluster.framework.clusterCidrs, call)
  if (plan.changes.length > 0 && (await showsOurMachines(cluster, cloud, nodes, call)) !== 'yes')
    throw foreignProject(cloud, 'The routes of the network')
  return plan
}

/**
 * What the condition NetworkUnavailable of a node has to become; undefined when it is so, or none of ours. A node without pod CIDRs keeps
 * what it has, unless a route of before led to it; and so does one of another cloud, or of nobody, whatever its pods are reached by.
 */
export function wantedNetworkCondition(
  cloud: Pick<CloudProvider, 'owns'>,
  node: NodeProjection,
  { routed, unassigned }: Pick<RoutesApplied, 'routed' | 'unassigned'>,
) {
  if (node.providerId !== undefined && !cloud.owns(node.providerId)) return undefined
  if (node.podCidrs.length === 0 && !unassigned.has(node.name)) return undefined
  const wanted = routed.has(node.name) ? CREATED : MISSING
  const present = node.networkUnavailable
  return present?.status === wanted.status && present.reason === wanted.reason ? undefined : wanted
}

async function setNetworkCondition(
  cluster: Cluster,
  cloud: CloudProvider,
  node: NodeProjection,
  applied: RoutesApplied,
  call: Call,
): Promise<void> {
  const failure = applied.failed.get(node.name)
  // That a node has no provider id or address yet is told when its initialisation fails; waiting for the network is no failure.
  if (failure && kindOf(failure) !== 'throttled' && !isUninitialised(node))
    cluster.recorder.record({
      object: nodeObject(node),
      type: 'Warning',
      reason: 'FailedToCreateRoute',
      message: `Pod traffic to node ${node.name} is not routed: ${messageOf(failure)}`,
      component: COMPONENT.route,
    })
  const wanted = wantedNetworkCondition(cloud, node, applied)
  if (!wanted) return
  const now = new Date(cluster.nowMs()).toISOString()
  const condition = { type: 'NetworkUnavailable', ...wanted, lastHeartbeatTime: now, lastTransitionTime: now }
  // Conditions merge by their type, and this one has no other writer: no precondition.
  await cluster.kubernetes.patch(NODES, { name: node.name }, nodeCondition(node, condition), call)
}
