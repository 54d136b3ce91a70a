import { createHash } from 'node:crypto'
import type { Address } from '../model.ts'

/** The durable link from a Service to its address, byte for byte as the replaced controller writes and looks for it. */
const USAGE = 'cloud-provider-cherry-auto'

/** Beside these, and ignored by the replaced controller: whose address it is when a Service is made again under the same name. */
const UID_TAG = 'windlass-uid'

export interface Owner {
  clusterUid: string
  namespace: string
  name: string
  uid: string
}

export function tagsOf({ clusterUid, namespace, name, uid }: Owner): Record<string, string> {
  const service = createHash('sha256').update(`${namespace}/${name}`).digest('base64')
  return { cluster: clusterUid, service, usage: USAGE, [UID_TAG]: uid }
}

/** Addresses with the tags of this Service's name, in the API's order. Further tags don't matter. */
export function reservationsOf(owner: Owner, addresses: readonly Address[]): Address[] {
  const { [UID_TAG]: _, ...identity } = tagsOf(owner)
  return addresses.filter(({ tags }) => Object.entries(identity).every(([key, value]) => tags[key] === value))
}

/** Made for some Service of some cluster. */
export const isTagged = ({ tags }: Address): boolean =>
  ['usage', 'service', 'cluster'].some((key) => Object.hasOwn(tags, key))

/** Made for some Service of this cluster. */
export const isOfCluster = (clusterUid: string, { tags }: Address): boolean =>
  tags.usage === USAGE && tags.cluster === clusterUid

/** The uid of the Service that an address was made or claimed for; undefined for one of the replaced controller. */
export const uidOf = ({ tags }: Address): string | undefined => tags[UID_TAG]
