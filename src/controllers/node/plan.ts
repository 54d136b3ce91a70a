import type { Instance } from '../../cloud/provider.ts'
import type { NodeProjection } from '../../events/projection.ts'
import type { NodeAddress, ObjectMeta, Taint } from '../../kubernetes/objects.ts'
import { desiredAddresses, sameAddresses, withSilent } from './addresses.ts'
import { initialLabels, keptLabels } from './labels.ts'

/** kubelet started with `--cloud-provider=external` sets it; it keeps pods away until the cloud's facts are on the node. */
const UNINITIALISED_TAINT = 'node.cloudprovider.kubernetes.io/uninitialized'

export type NodeChange =
  /** Provider id, labels and the removal of the taint go in one write: a pod never lands on a node that is half initialised. */
  | {
      kind: 'initialise'
      summary: string
      providerId?: string
      labels: Record<string, string>
      taints: Taint[]
    }
  | { kind: 'set-labels'; summary: string; labels: Record<string, string> }
  | { kind: 'set-addresses'; summary: string; addresses: NodeAddress[] }

export type NodePlan =
  /** `warning`: why the addresses stay as they are. */
  { changes: NodeChange[]; warning?: Instance['fault'] } | { fault: string; reason: string }

export const isUninitialised = (node: Pick<NodeProjection, 'taints'>) =>
  node.taints.some(({ key }) => key === UNINITIALISED_TAINT)

/** What a node lacks of what its machine at the cloud says. `fault`: it must stay uninitialised, and why. */
export function planNode(node: NodeProjection, instance: Instance): NodePlan {
  const initialised = !isUninitialised(node)
  if (instance.fault)
    return initialised
      ? { changes: planLabels(node), warning: instance.fault }
      : { fault: instance.fault.message, reason: instance.fault.reason }
  if (!initialised && instance.addresses.length === 0)
    return { fault: `the cloud has no address for machine ${instance.providerId} yet`, reason: 'AddressMissing' }
  const fromCloud = initialised ? withSilent(instance, node.addresses) : instance.addresses
  const wanted = desiredAddresses(fromCloud, node.addresses, node.providedNodeIp)
  if (initialised) {
    const labels = planLabels(node)
    return { changes: [...labels, ...('fault' in wanted ? [] : planAddresses(node, wanted.addresses))] }
  }
  if ('fault' in wanted) return { ...wanted, reason: 'ProvidedNodeIPNotFound' }
  const initialise: NodeChange = {
    kind: 'initialise',
    summary: `initialise as ${instance.providerId}`,
    ...(node.providerId === undefined ? { providerId: instance.providerId } : {}),
    labels: initialLabels(instance, node.labels),
    taints: node.taints.filter(({ key }) => key !== UNINITIALISED_TAINT),
  }
  return { changes: [initialise, ...planAddresses(node, wanted.addresses)] }
}

/**
 * What a node is after a change. Only one that the API server took on just this version of it tells its labels, too: with another, others
 * may have written theirs meanwhile, and nobody has looked at those.
 */
export function changedNode(
  node: NodeProjection,
  change: NodeChange,
  { resourceVersion, labels = {} }: Pick<ObjectMeta, 'resourceVersion' | 'labels'>,
): NodeProjection {
  const after = { ...node, resourceVersion }
  switch (change.kind) {
    case 'initialise':
      return { ...after, labels, providerId: change.providerId ?? node.providerId, taints: change.taints }
    case 'set-labels':
      return { ...after, labels: { ...node.labels, ...change.labels } }
    case 'set-addresses':
      return { ...after, addresses: change.addresses }
  }
}

/** Label upkeep of an initialised node: asks no cloud. */
export function planLabels(node: NodeProjection): NodeChange[] {
  const labels = keptLabels(node.labels)
  const keys = Object.keys(labels)
  return keys.length === 0 ? [] : [{ kind: 'set-labels', summary: `set labels ${keys.join(', ')}`, labels }]
}

function planAddresses(node: NodeProjection, addresses: NodeAddress[]): NodeChange[] {
  if (sameAddresses(node.addresses, addresses)) return []
  const listed = addresses.map(({ type, address }) => `${type} ${address}`).join(', ')
  return [{ kind: 'set-addresses', summary: `list addresses ${listed}`, addresses }]
}
