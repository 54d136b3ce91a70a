import type { Patch } from './api.ts'
import type { NodeAddress, NodeCondition, ObjectMeta, Taint } from './objects.ts'

/**
 * The writes of the controllers, each as the smallest patch that says what is meant. All name the uid, so that a namesake created
 * meanwhile is refused (`Conflict`), and what replaces an atomic list also names the resourceVersion it was decided on.
 */

type Identified = { metadata: Pick<ObjectMeta, 'uid'> }

/** Adds to whatever finalizers are there. Refused (`Deleting`) once the object is being deleted. Goes through `services/status`. */
export function addFinalizer({ metadata: { uid } }: Identified, finalizer: string): Patch {
  return { type: 'strategic', subresource: 'status', body: { metadata: { uid, finalizers: [finalizer] } } }
}

/**
 * Takes one finalizer away and no other. It is tested to be where it was seen, since a merge patch of the last finalizer would
 * also wipe one that someone added meanwhile. Undefined when it is not there.
 */
export function removeFinalizer(
  { metadata }: { metadata: Pick<ObjectMeta, 'uid' | 'finalizers'> },
  finalizer: string,
): Patch | undefined {
  const index = metadata.finalizers?.indexOf(finalizer) ?? -1
  if (index === -1) return undefined
  const path = `/metadata/finalizers/${index}`
  return {
    type: 'json',
    subresource: 'status',
    body: [
      { op: 'test', path: '/metadata/uid', value: metadata.uid },
      { op: 'test', path, value: finalizer },
      { op: 'remove', path },
    ],
  }
}

/** The whole of `status.loadBalancer`. The server fills ipMode with `VIP`; saying so keeps what is stored equal to what is meant. */
export function loadBalancerStatus(
  { metadata: { uid } }: Identified,
  ingress: readonly { ip?: string; hostname?: string; ipMode?: string }[],
): Patch {
  const entries = ingress.map((entry) => (entry.ip && !entry.ipMode ? { ...entry, ipMode: 'VIP' } : entry))
  return {
    type: 'merge',
    subresource: 'status',
    body: { metadata: { uid }, status: { loadBalancer: { ingress: entries.length > 0 ? entries : null } } },
  }
}

/**
 * The whole list of addresses, in this order. Not a strategic merge: there the list has `type` as its key, which keeps
 * stale entries, folds two addresses of one type into one, and even with `$patch: replace` sorts the list by type.
 */
export function nodeAddresses({ metadata: { uid } }: Identified, addresses: readonly NodeAddress[]): Patch {
  return { type: 'merge', subresource: 'status', body: { metadata: { uid }, status: { addresses } } }
}

/** One condition; those of other types stay. */
export function nodeCondition({ metadata: { uid } }: Identified, condition: NodeCondition): Patch {
  return { type: 'strategic', subresource: 'status', body: { metadata: { uid }, status: { conditions: [condition] } } }
}

/** Provider id, labels and taints in one write: no pod may land on a node that has lost its taint but not yet gained its labels. */
export function nodeInitialised(
  { metadata: { uid, resourceVersion } }: { metadata: Pick<ObjectMeta, 'uid' | 'resourceVersion'> },
  { labels, providerId, taints }: { labels: Record<string, string>; providerId?: string; taints: readonly Taint[] },
): Patch {
  return {
    type: 'merge',
    body: {
      metadata: { uid, resourceVersion, ...(Object.keys(labels).length > 0 ? { labels } : {}) },
      spec: { ...(providerId ? { providerID: providerId } : {}), taints: taintList(taints) },
    },
  }
}

/** The whole list of taints, which is atomic and shared with others. */
export function nodeTaints(
  { metadata: { uid, resourceVersion } }: { metadata: Pick<ObjectMeta, 'uid' | 'resourceVersion'> },
  taints: readonly Taint[],
): Patch {
  return { type: 'merge', body: { metadata: { uid, resourceVersion }, spec: { taints: taintList(taints) } } }
}

/** Single labels; null takes one away. */
export function labels({ metadata: { uid } }: Identified, changed: Record<string, string | null>): Patch {
  return { type: 'merge', body: { metadata: { uid, labels: changed } } }
}

/** Single annotations; null takes one away. */
export function annotations({ metadata: { uid } }: Identified, changed: Record<string, string | null>): Patch {
  return { type: 'merge', body: { metadata: { uid, annotations: changed } } }
}

function taintList(taints: readonly Taint[]) {
  return taints.length > 0 ? taints : null
}
