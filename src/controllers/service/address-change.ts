import type { LoadBalancerIngress } from '../../events/projection.ts'

export interface AddressChange {
  /** Nothing but a look at the load balancer says why; where others took their place, whoever kept the old ones is cut off. */
  type: 'Normal' | 'Warning'
  message: string
}

/** Pure. Addresses that a Service published and does so no more: names, firewalls and clients may still hold them. */
export function addressChange(
  before: readonly LoadBalancerIngress[],
  after: readonly LoadBalancerIngress[],
): AddressChange | undefined {
  const [shown, now] = [publishedBy(before), publishedBy(after)]
  const gone = shown.filter((one) => !now.includes(one))
  if (gone.length === 0) return undefined
  const others = now.filter((one) => !shown.includes(one))
  if (others.length === 0)
    return { type: 'Normal', message: `${gone.join(' and ')} is no longer an address of this Service` }
  return {
    type: 'Warning',
    message: `The addresses changed from ${shown.join(', ')} to ${now.join(', ')}: what names ${gone.join(' or ')}, such as DNS records and firewalls, has to follow`,
  }
}

const publishedBy = (ingress: readonly LoadBalancerIngress[]) =>
  ingress.flatMap(({ ip, hostname }) => hostname ?? ip ?? [])
