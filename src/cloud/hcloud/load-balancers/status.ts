import type { LoadBalancerIngress } from '../../../events/projection.ts'
import type { LoadBalancer } from '../model.ts'
import type { Desired } from './desire.ts'

/** Pure. The entries of `status.loadBalancer.ingress`, in order. */
export function ingressOf(lb: LoadBalancer, wanted: Desired['ingress']): LoadBalancerIngress[] {
  if (wanted.hostname !== undefined) return [{ hostname: wanted.hostname }]
  const { publicNet, privateNets } = lb
  const addresses = [
    ...(publicNet.enabled ? [publicNet.ipv4, wanted.ipv6 ? publicNet.ipv6 : undefined] : []),
    ...(wanted.privateAddresses ? privateNets.map(({ ip }) => ip) : []),
  ]
  return addresses.flatMap((ip) => (ip ? [{ ip, ipMode: wanted.ipMode }] : []))
}
