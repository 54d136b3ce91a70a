import type { NodeProjection } from '../../events/projection.ts'

const EXCLUDED = 'node.kubernetes.io/exclude-from-external-load-balancers'
const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler'
const FALSE = new Set(['false', '0', 'f', 'F', 'FALSE', 'False'])

/**
 * The nodes that may be targets, by the framework's rules, in order of their names. Readiness is left to the load balancer's health checks:
 * a kubelet that restarts must not reconfigure every load balancer.
 */
export function eligibleNodes(nodes: readonly NodeProjection[]): NodeProjection[] {
  return nodes.filter(isEligible).sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

function isEligible(node: NodeProjection): boolean {
  const excluded = node.labels[EXCLUDED]
  return (
    !node.deleting &&
    (excluded === undefined || FALSE.has(excluded)) &&
    !node.taints.some(({ key }) => key === TO_BE_DELETED)
  )
}
