import type { Call } from '../../call.ts'
import type { Possession } from '../../cloud/provider.ts'
import { kindOf, messageOf } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { projectService } from '../../events/projection.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import type { Cluster } from '../cluster.ts'

export type Orphan = Pick<Possession, 'what' | 'howToRemove' | 'ofThisCluster'>

/**
 * What was made at a cloud for Services that are no more. It costs money, and may be somebody's last copy of an address: it is told,
 * and a human removes it. The cloud is read before the Services, so that a new Service's load balancer is never among them.
 */
export async function findOrphans(
  { clouds, kubernetes }: Pick<Cluster, 'clouds' | 'kubernetes'>,
  nodes: readonly NodeProjection[],
  call: Call,
): Promise<Map<string, Orphan[] | Error>> {
  const found = await Promise.all(
    clouds.map(async ({ name, loadBalancers }) => {
      try {
        return [name, (await loadBalancers?.possessions(nodes, call)) ?? []] as const
      } catch (error) {
        if (kindOf(error) === 'aborted') throw error
        return [name, error instanceof Error ? error : new Error(messageOf(error))] as const
      }
    }),
  )
  const services = (await kubernetes.list(SERVICES, { project: projectService }, call)).items
  return new Map(
    found.map(([cloud, all]) => [
      cloud,
      all instanceof Error ? all : all.filter((one) => !services.some((service) => one.belongsTo(service))),
    ]),
  )
}

/** Says in log and metric what is left over. What may be another cluster's is nothing to worry about. */
export async function reportOrphans(cluster: Cluster, nodes: readonly NodeProjection[], call: Call): Promise<void> {
  for (const [cloud, orphans] of await findOrphans(cluster, nodes, call)) {
    if (orphans instanceof Error) {
      call.log.warn({ cloud, reason: orphans.message }, 'could not look for what no Service has any more')
      continue
    }
    const ours = orphans.filter(({ ofThisCluster }) => ofThisCluster)
    cluster.metrics?.set('windlass_orphans', ours.length, { cluster: cluster.id, cloud })
    for (const { what, howToRemove } of ours)
      call.log.warn({ cloud, orphan: what, remedy: howToRemove }, 'no Service has it any more: remove it by hand')
  }
}
