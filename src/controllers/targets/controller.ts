import { kindOf } from '../../errors.ts'
import type { Trigger } from '../../queue/types.ts'
import type { Cluster } from '../cluster.ts'
import { readNodes } from '../nodes.ts'
import type { ReconcileRequest, ReconcileResult } from '../reconcile.ts'
import { eligibleNodes } from '../service/eligible.ts'
import { nodesFor, placesOf } from '../service/placement.ts'

/** The node set changed: asks for a run of just those Services whose targets change with it. Costs no cloud call. */
export async function reconcileTargets(cluster: Cluster, request: ReconcileRequest): Promise<ReconcileResult> {
  await cluster.state.services.beginComparison()
  const records = await cluster.state.services.all()
  if (records.size === 0) return {}
  const nodes = eligibleNodes((await readNodes(cluster, request.call)).nodes)
  const places = placesOf(cluster)
  const triggers = [...records].flatMap(([fullName, record]): Trigger[] => {
    const loadBalancers = places.find(({ cloud }) => cloud === record.cloud)?.loadBalancers
    const [namespace = '', name = ''] = fullName.split('/')
    const service = { namespace, name, annotations: record.annotations }
    if (!loadBalancers) return []
    const own = nodesFor(cluster, loadBalancers, nodes)
    if (currentKey(() => loadBalancers.targetsKey(service, own)) === record.targetsKey) return []
    return [{ kind: 'service', key: `Service/${fullName}`, cause: 'targets', urgency: 'user' }]
  })
  if (triggers.length > 0) await cluster.enqueuer.enqueue(cluster.id, triggers)
  request.call.log.info({ services: records.size, changed: triggers.length }, 'compared the targets of all services')
  return {}
}

/** A selector that doesn't parse has no targets to compare: the Service's own run has reported it. */
function currentKey(targetsKey: () => string): string | undefined {
  try {
    return targetsKey()
  } catch (error) {
    if (kindOf(error) === 'permanent') return undefined
    throw error
  }
}
