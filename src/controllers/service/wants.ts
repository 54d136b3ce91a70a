import type { Placing } from '../../config/types.ts'
import type { ServiceProjection } from '../../events/projection.ts'

/** Keeps a Service until its load balancer is gone. */
export const CLEANUP_FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

type Facts = Pick<ServiceProjection, 'type' | 'loadBalancerClass' | 'finalizers' | 'deleting'>

/** A class that is none of ours means: somebody else's. */
export const isOfOurClass = ({ loadBalancerClass: name }: Pick<Facts, 'loadBalancerClass'>, { classes }: Placing) =>
  name === undefined || Object.hasOwn(classes, name)

export const wantsLoadBalancer = (service: Facts, placing: Placing) =>
  service.type === 'LoadBalancer' && isOfOurClass(service, placing) && !service.deleting

/** Ours to clean up: a Service of another class keeps its finalizer for whoever set it. */
export const needsCleanup = (service: Facts, placing: Placing) =>
  service.finalizers.includes(CLEANUP_FINALIZER) &&
  isOfOurClass(service, placing) &&
  (service.deleting || service.type !== 'LoadBalancer')
