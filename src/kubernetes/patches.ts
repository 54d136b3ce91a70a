import type { Patch } from './api.ts'
import type { NodeAddress, NodeCondition, Taint } from './objects.ts'

/**
 * The writes of the controllers, each as the smallest patch that says what is meant. All name the uid, so that a namesake created
 * meanwhile is refused, and, where the decision came from a certain version of the object, that too (both: `Conflict`).
 */
export interface Decided {
  uid: string
  resourceVersion?: string
}

export interface Ingress {
  ip?: string
  hostname?: string
  ipMode?: string
}

/** Adds to whatever finalizers are there. Refused (`Deleting`) once the object is being deleted. Goes through `services/status`. */
export function addFinalizer({ uid }: { uid: string }, finalizer: string): Patch {
  return { type: 'strategic', subresource: 'status', body: { metadata: { uid, finalizers: [finalizer] } } }
}

/**
 * Takes one finalizer away and no other. It is tested to be where it was seen, since a merge patch of the last finalizer would
 * also wipe one that someone added meanwhile.
 */
export function removeFinalizer(
  { uid, finalizers }: { uid: string; finalizers: readonly string[] },
  finalizer: string,
): Patch {
  const index = finalizers.indexOf(finalizer)
  const path = `/metadata/finalizers/${index}`
  const removal = [
    { op: 'test', path, value: finalizer },
    { op: 'remove', path },
  ]
  return {
    type: 'json',
    subresource: 'status',
    body: [{ op: 'test', path: '/metadata/uid', value: uid }, ...(index === -1 ? [] : removal)],
  }
}

/**
 * The whole of `status.loadBalancer`, and single annotations with it. The server fills ipMode with `VIP`; saying so keeps what is stored
 * equal to what is meant.
 */
export function loadBalancerStatus(
  ingress: readonly Ingress[],
  uid: string,
  annotations: Record<string, string | null> = {},
): Patch {
  const entries = ingress.map((entry) => (entry.ip && !entry.ipMode ? { ...entry, ipMode: 'VIP' } : entry))
  return {
    type: 'merge',
    subresource: 'status',
    body: {
      metadata: { uid, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) },
      status: { loadBalancer: { ingress: entries.length > 0 ? entries : null } },
    },
  }
}

/**
 * The whole list of addresses, in this order. Not a strategic merge: there the list has `type` as its key, which keeps stale
 * entries, folds two addresses of one type into one, and even with `$patch: replace` groups the list by type.
 */
export function nodeAddresses({ addresses, ...decided }: Decided & { addresses: readonly NodeAddress[] }): Patch {
  return { type: 'merge', subresource: 'status', body: { metadata: precondition(decided), status: { addresses } } }
}

/** One condition; those of other types stay. */
export function nodeCondition({ uid }: { uid: string }, condition: NodeCondition): Patch {
  return { type: 'strategic', subresource: 'status', body: { metadata: { uid }, status: { conditions: [condition] } } }
}

/** Provider id, labels and taints in one write: no pod may land on a node that has lost its taint but not yet gained its labels. */
export function nodeInitialised({
  labels,
  providerId,
  taints,
  ...decided
}: Required<Decided> & { labels: Record<string, string>; providerId?: string; taints: readonly Taint[] }): Patch {
  return {
    type: 'merge',
    body: {
      metadata: { ...precondition(decided), ...(Object.keys(labels).length > 0 ? { labels } : {}) },
      spec: { ...(providerId ? { providerID: providerId } : {}), taints: taintList(taints) },
    },
  }
}

/** The whole list of taints, which is atomic and shared with others: never without a version. */
export function nodeTaints({ taints, ...decided }: Required<Decided> & { taints: readonly Taint[] }): Patch {
  return { type: 'merge', body: { metadata: precondition(decided), spec: { taints: taintList(taints) } } }
}

/** Single labels; null takes one away. */
export function nodeLabels({ labels, ...decided }: Decided & { labels: Record<string, string | null> }): Patch {
  return { type: 'merge', body: { metadata: { ...precondition(decided), labels } } }
}

/** Single annotations of any object; null takes one away. */
export function annotations({
  annotations,
  ...decided
}: Decided & { annotations: Record<string, string | null> }): Patch {
  return { type: 'merge', body: { metadata: { ...precondition(decided), annotations } } }
}

function precondition({ uid, resourceVersion }: Decided) {
  return resourceVersion === undefined ? { uid } : { uid, resourceVersion }
}

function taintList(taints: readonly Taint[]) {
  return taints.length > 0 ? taints : null
}
