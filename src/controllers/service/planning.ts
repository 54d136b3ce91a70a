import type { Call } from '../../call.ts'
import type { LoadBalancerPlan, LoadBalancers, ServiceIdentity } from '../../cloud/provider.ts'
import type { NodeProjection, ServiceProjection } from '../../events/projection.ts'
import type { Cluster } from '../cluster.ts'
import { readFreshNodes, readNodes } from '../nodes.ts'
import { foreignProject, showsOurMachines } from '../own-project.ts'
import { eligibleNodes } from './eligible.ts'
import { nodesFor } from './placement.ts'

/** Asked for by the Service itself, or made by one of the clouds for its own work. */
export function isLeftAlone(
  cluster: Cluster,
  loadBalancers: LoadBalancers | undefined,
  service: Pick<ServiceProjection, 'namespace' | 'name' | 'annotations'>,
): boolean {
  return loadBalancers?.declines?.(service) === true || isKeptOff(cluster, service)
}

export const isKeptOff = (
  { clouds }: Pick<Cluster, 'clouds'>,
  service: Pick<ServiceProjection, 'namespace' | 'name'>,
) => clouds.some((cloud) => cloud.keepsOff?.(service))

/**
 * A plan from the nodes as events told them. If it takes something away, it is made again from a fresh list: a projection may miss a
 * node, and must not cost one its traffic.
 */
export async function planWithNodes(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceProjection,
  call: Call,
): Promise<{ plan: LoadBalancerPlan; nodes: NodeProjection[] }> {
  const { fresh, nodes } = loadBalancers.inCluster
    ? { fresh: true, nodes: await readFreshNodes(cluster, call) }
    : await readNodes(cluster, call)
  const eligible = (all: readonly NodeProjection[]) => eligibleNodes(nodesFor(cluster, loadBalancers, all))
  const known = eligible(nodes)
  const plan = await loadBalancers.plan(service, known, call)
  if (plan.unmarked && plan.changes.length > 0)
    await requireOwnProject(cluster, loadBalancers, 'A load balancer would be made or adopted', nodes, call)
  if (fresh || !plan.changes.some(({ withdraws }) => withdraws)) return { plan, nodes: known }
  const present = eligible(await readFreshNodes(cluster, call))
  return { plan: await loadBalancers.plan(service, present, call), nodes: present }
}

/** What deletion takes. That there is nothing to delete counts only where the credential would show it. */
export async function planDeletion(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceIdentity,
  call: Call,
): Promise<LoadBalancerPlan> {
  const plan = await loadBalancers.planDeletion(service, call)
  if (plan.unmarked) {
    const { nodes } = await readNodes(cluster, call)
    await requireOwnProject(cluster, loadBalancers, 'No load balancer of this Service is found', nodes, call)
  }
  return plan
}

async function requireOwnProject(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  what: string,
  nodes: readonly NodeProjection[],
  call: Call,
): Promise<void> {
  const cloud = cluster.clouds.find((one) => one.loadBalancers === loadBalancers)
  if (cloud && (await showsOurMachines(cluster, cloud, nodes, call)) === 'no') throw foreignProject(cloud, what)
}
