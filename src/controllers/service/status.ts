import type { LoadBalancerIngress } from '../../events/projection.ts'

/** Compared as an ordered list, field by field; an absent list is an empty one. */
export function sameIngress(a: readonly LoadBalancerIngress[], b: readonly LoadBalancerIngress[]): boolean {
  return (
    a.length === b.length &&
    a.every((one, i) => one.ip === b[i]?.ip && one.hostname === b[i]?.hostname && one.ipMode === b[i]?.ipMode)
  )
}
