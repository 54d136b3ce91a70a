import type { Call } from '../../call.ts'
import type { Cluster } from '../../controllers/cluster.ts'
import { planNetwork, routesOf, wantedNetworkCondition } from '../../controllers/route/controller.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { blank, faultsOf } from './item.ts'
import { atCloud } from './services.ts'
import type { PlanItem } from './types.ts'

export const ROUTES_SUBJECT = 'Cluster/routes'

/** What the route controller would do now; undefined for a cluster without pod routes. */
export async function planAllRoutes(
  cluster: Cluster,
  nodes: readonly NodeProjection[],
  call: Call,
): Promise<PlanItem | undefined> {
  const kept = routesOf(cluster)
  if (!kept || !cluster.framework.controllers.has('node-route-controller')) return undefined
  const { cloud, routes } = kept
  const item = blank(ROUTES_SUBJECT)
  try {
    const plan = await planNetwork(cluster, cloud, routes, nodes, call)
    item.changes.push(...plan.changes.map(atCloud))
    item.notes.push(...plan.notes)
    // What is not yet routed gets its condition with its route.
    if (plan.changes.length > 0) return item
    const applied = await routes.apply(plan, call)
    for (const [name, error] of applied.failed)
      item.faults.push(...faultsOf(error).map((fault) => `node ${name}: ${fault}`))
    for (const node of nodes) {
      const wanted = wantedNetworkCondition(cloud, node, applied)
      if (wanted)
        item.changes.push({
          at: 'kubernetes',
          kind: 'set-condition',
          summary: `set NetworkUnavailable=${wanted.status} (${wanted.reason}) on node ${node.name}`,
        })
    }
  } catch (error) {
    item.faults.push(...faultsOf(error))
  }
  return item
}
