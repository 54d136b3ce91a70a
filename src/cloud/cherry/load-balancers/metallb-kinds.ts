import type { KubeObject } from '../../../kubernetes/objects.ts'
import type { ObjectKind, ObjectQuery } from '../../provider.ts'

const kind = (version: string, name: string, plural: string): ObjectKind => ({
  group: 'metallb.io',
  version,
  kind: name,
  plural,
  namespaced: true,
})

export const POOL = kind('v1beta1', 'IPAddressPool', 'ipaddresspools')
export const ADVERTISEMENT = kind('v1beta1', 'BGPAdvertisement', 'bgpadvertisements')
/** The stored version. The older one demands values in every expression of a selector. */
export const PEER = kind('v1beta2', 'BGPPeer', 'bgppeers')

/** Inherited by the replaced controller from a cloud of long ago, and by us from it. What lacks it is somebody else's. */
export const OUR_LABELS = { 'cloud-provider': 'equinix-metal' } as const
const SELECTOR = 'cloud-provider=equinix-metal'

/**
 * A Service's pool is made before anything names the Service, and goes last. Reading in the opposite order, whatever is seen to name a
 * Service without a pool is a left-over.
 */
export const metallbQueries = (namespace: string): ObjectQuery[] =>
  [PEER, ADVERTISEMENT, POOL].map((one) => ({ kind: one, namespace, labelSelector: SELECTOR }))

export interface Observed {
  peers: readonly KubeObject[]
  advertisements: readonly KubeObject[]
  pools: readonly KubeObject[]
}

export interface ServiceName {
  namespace: string
  name: string
}

export const specOf = (object: KubeObject) => (object.spec ?? {}) as Record<string, unknown>

/** Preconditions of a patch that was decided on this version of the object. */
export const seen = ({ metadata: { uid, resourceVersion } }: KubeObject) => ({ uid, resourceVersion })

export const same = (a: unknown, b: unknown): boolean => stable(a) === stable(b)

function stable(value: unknown): string | undefined {
  return JSON.stringify(value, (_key, part: unknown) =>
    part && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}
