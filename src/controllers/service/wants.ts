import type { ServiceProjection } from '../../events/projection.ts'

/** Keeps a Service until its load balancer is gone. */
export const CLEANUP_FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

type Facts = Pick<ServiceProjection, 'type' | 'loadBalancerClass' | 'finalizers' | 'deleting'>

/** A class of any name means: somebody else's. */
export const wantsLoadBalancer = (service: Facts) =>
  service.type === 'LoadBalancer' && service.loadBalancerClass === undefined && !service.deleting

/** Ours to clean up: a Service of another class keeps its finalizer for whoever set it. */
export const needsCleanup = (service: Facts) =>
  service.finalizers.includes(CLEANUP_FINALIZER) &&
  service.loadBalancerClass === undefined &&
  (service.deleting || service.type !== 'LoadBalancer')
