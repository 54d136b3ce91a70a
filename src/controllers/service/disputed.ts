import type { Call } from '../../call.ts'
import type { LoadBalancerIngress, ServiceProjection } from '../../events/projection.ts'
import { fingerprint } from '../../events/projection.ts'
import type { ServiceRecord } from '../../state/service-record.ts'
import type { Cluster } from '../cluster.ts'
import { readNodes } from '../nodes.ts'
import { standoffsOf } from '../standoff.ts'
import { eligibleNodes } from './eligible.ts'
import { nodesFor, type Place } from './placement.ts'
import { sameIngress } from './status.ts'

/** All that a Service asks for; what others make of its status is not it. */
const asked = (service: ServiceProjection) => `status of ${fingerprint({ ...service, ingress: [] })}`

/** What is to be written into the status: what is right, or what is there while somebody else undoes the former each time. */
export function statusToWrite(
  cluster: Cluster,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
  right: LoadBalancerIngress[],
): { ingress: LoadBalancerIngress[]; isDisputed: boolean } {
  if (sameIngress(service.ingress, right)) return { ingress: right, isDisputed: false }
  const standoffs = standoffsOf(cluster)
  const [what, text] = [asked(service), JSON.stringify(right)]
  // It was no load balancer for a while, and its status was ours to clear.
  if (!record) standoffs.forget(what)
  if (standoffs.heldMs(what, cluster.resyncPeriodMs, text) > 0) return { ingress: service.ingress, isDisputed: false }
  return { ingress: right, isDisputed: standoffs.writes(what, text, service.resourceVersion) }
}

/** The status was written: what is seen before that does not show that anybody undid it. */
export function statusWritten(
  cluster: Cluster,
  service: ServiceProjection,
  { resourceVersion }: ServiceProjection,
): void {
  standoffsOf(cluster).wrote(asked(service), resourceVersion)
}

/**
 * For how long yet a Service is left alone of which nothing is new but that somebody else has undone its status once more: neither what it
 * asks for, nor its targets. The cloud is not asked for that.
 */
export async function standsOff(
  cluster: Cluster,
  { loadBalancers }: Place,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
  call: Call,
): Promise<number> {
  const heldMs = standoffsOf(cluster).heldMs(asked(service), cluster.resyncPeriodMs)
  if (heldMs <= 0 || record === undefined) return 0
  const { nodes } = await readNodes(cluster, call)
  const key = loadBalancers.targetsKey(service, eligibleNodes(nodesFor(cluster, loadBalancers, nodes)))
  return key === record.targetsKey ? heldMs : 0
}

export const disputed = (right: readonly LoadBalancerIngress[]) =>
  `Somebody else takes ${right.map(({ ip, hostname }) => ip ?? hostname).join(', ')} out of the status each time; it is left for a while now. Is another load balancer implementation, such as MetalLB, at work for this Service? Make the Service anew with a class, or tell the other one which are its own`
