import type { LoadBalancerPlan } from '../../cloud/provider.ts'
import { type ErrorKind, kindOf, messageOf, soonestRetry, WindlassError } from '../../errors.ts'

export const recordName = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`

export const summaryOf = (plan: LoadBalancerPlan) => plan.changes.map(({ summary }) => summary).join('; ')

/** Waiting for the cloud, or handing over, is no failure that a user should read of. */
export const isReportable = (error: unknown) => ['transient', 'permanent'].includes(kindOf(error))

/** One error for several faults: it comes again as soon as any of them may pass by itself. */
export function combined(faults: readonly Error[]): Error {
  const kinds = new Set(faults.map(kindOf))
  const first = faults[0]
  if (faults.length === 1 && first) return first
  const order: ErrorKind[] = ['aborted', 'transient', 'throttled', 'permanent']
  const kind = order.find((one) => kinds.has(one)) ?? 'transient'
  return new WindlassError(kind, faults.map(messageOf).join('; '), soonestRetry(faults))
}
