import type { Call } from '../../call.ts'
import type { Cluster } from '../../controllers/cluster.ts'
import { findOrphans } from '../../controllers/resync/orphans.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { looked, ok, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'left behind'

/** What was made at a cloud for Services that are no more. What may be another cluster's is none of our business. */
export async function checkOrphans(cluster: Cluster, nodes: readonly NodeProjection[], call: Call): Promise<Finding[]> {
  return await looked(AREA, 'See what was found about cluster and cloud', async () => {
    const findings: Finding[] = []
    const found = await findOrphans(cluster, nodes, call)
    for (const [cloud, orphans] of found) {
      if (orphans instanceof Error) {
        findings.push(
          warning(AREA, `Of ${cloud} it is not known: ${orphans.message}`, 'See what was found about the cloud'),
        )
        continue
      }
      for (const { what, howToRemove, ofThisCluster } of orphans)
        if (ofThisCluster)
          findings.push(
            warning(
              AREA,
              `The ${what} was made for a Service of this cluster that is no more, and is paid for`,
              `Once you are sure that nobody uses it: ${howToRemove}`,
            ),
          )
    }
    const having = cluster.clouds.filter(({ loadBalancers }) => loadBalancers)
    return findings.length > 0 || having.length === 0
      ? findings
      : [ok(AREA, 'All that was made for Services of this cluster belongs to one that is there')]
  })
}
