import { kindOf, messageOf, WindlassError } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { type Cluster, COMPONENT, nodeObject } from '../cluster.ts'
import { isUninitialised } from './plan.ts'

/** Codes of failures that have an Event of their own by then: the reason of that Event. */
const TOLD: ReadonlySet<string> = new Set([
  'InstanceNotFound',
  'InstanceLookupFailed',
  'AddressMissing',
  'ProvidedNodeIPNotFound',
  'InvalidExternalIPv6',
])

/**
 * Why a run for a node failed, said on the node. What passes by itself is only told of a node that waits for its initialisation: an
 * outage of a cloud is not to be told on all nodes of a cluster. A right that is missing does not pass.
 */
export function tellFailure(cluster: Cluster, node: NodeProjection, error: unknown): void {
  const code = error instanceof WindlassError ? error.code : undefined
  if (code !== undefined && (TOLD.has(code) || code === 'Conflict')) return
  const kind = kindOf(error)
  const waits = isUninitialised(node)
  if (kind !== 'permanent' && !(kind === 'transient' && (waits || code === 'Forbidden'))) return
  cluster.recorder.record({
    object: nodeObject(node),
    type: 'Warning',
    reason: 'SyncNodeFailed',
    message: `Node ${node.name} ${waits ? "can't be initialised" : 'is not kept in step with its machine'}: ${messageOf(error)}`,
    component: COMPONENT.node,
  })
}
