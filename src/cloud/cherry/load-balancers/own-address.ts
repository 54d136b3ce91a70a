import { isIP } from 'node:net'
import type { CherryLoadBalancer } from '../../../config/cherry-load-balancer.ts'
import type { CherrySettings } from '../../../config/types.ts'
import { permanent } from '../../../errors.ts'
import type { ServiceProjection } from '../../../events/projection.ts'

/** Kubernetes' own field, where a user may name an address too. */
const SPEC_FIELD = 'spec.loadBalancerIP'

/**
 * Which address we wrote into the Service's annotation, and for which uid: the annotation itself looks like a user's wish, also after the
 * Service was made again from a copy.
 */
export const ADDRESS_NOTE = 'windlass.dev/cherry-address'
const MANAGED = 'cherryservers.com/loadbalancer-managed'

const METALLB = 'metallb.io/loadBalancerIPs'
const METALLB_BEFORE = 'metallb.universe.tf/loadBalancerIPs'
const KUBE_VIP = 'kube-vip.io/loadbalancerIPs'
const EMPTY = 'cherryservers.com/loadBalancerIPs'
/** Where any implementation looks that CHERRY_LOAD_BALANCER may have said before: what we wrote there is ours yet. */
const EVERY_KEY: readonly string[] = [METALLB, METALLB_BEFORE, KUBE_VIP, EMPTY]

export interface AddressAnnotations {
  /** Where a user may name addresses, the first non-empty wins, and after them the field of the spec. */
  read: readonly string[]
  /** Where ours is written. */
  write: string
}

export function addressAnnotations(balancer: CherryLoadBalancer): AddressAnnotations {
  switch (balancer.kind) {
    case 'kube-vip':
      return one(KUBE_VIP)
    case 'metallb':
      return { read: [METALLB, METALLB_BEFORE], write: METALLB }
    case 'empty':
      return one(balancer.ipAnnotation ?? EMPTY)
  }
}

const one = (key: string): AddressAnnotations => ({ read: [key], write: key })

/** Exactly `false`, as the replaced controller reads it. */
export const isDeclined = ({ annotations }: Pick<ServiceProjection, 'annotations'>) => annotations[MANAGED] === 'false'

export interface Note {
  uid: string
  address: string
  /** Annotations with the address whose keys an admin chose: no later setting tells which they were. */
  keys: readonly string[]
}

export function readNote(annotations: Readonly<Record<string, string>>): Note | undefined {
  const [uid, address, ...keys] = (annotations[ADDRESS_NOTE] ?? '').split(' ')
  return uid && address && keys.every((key) => key !== '') ? { uid, address, keys } : undefined
}

const writeNote = ({ uid, address, keys }: Note) => [uid, address, ...keys].join(' ')

export interface Wish {
  /** Annotation or field that it was read from. */
  from: string
  /** Plain addresses, one or one of each family. */
  addresses: string[]
}

/**
 * The address that a user brings along. What we wrote ourselves is none: it is the address of a reservation of this Service, or noted as
 * written by us, be it into the life of a Service that this one was copied from.
 * Throws `permanent` for what is no address.
 */
export function wishOf(
  service: Pick<ServiceProjection, 'namespace' | 'name' | 'annotations' | 'loadBalancerIp'>,
  keys: AddressAnnotations,
  reserved: readonly string[],
): Wish | undefined {
  const { annotations, loadBalancerIp = '' } = service
  const written = new Set([...reserved, readNote(annotations)?.address])
  const named = [
    ...keys.read.map((key) => ({ from: key, text: annotations[key]?.trim() ?? '' })),
    { from: SPEC_FIELD, text: loadBalancerIp.trim() },
  ].find(({ text }) => text !== '' && !written.has(text))
  if (!named) return undefined
  const addresses = [...new Set(named.text.split(',').map((part) => part.trim()))]
  // Forms that only some programs read, such as `10.1` or `010.1.1.1`, mean something else to each.
  const wrong = addresses.find((address) => isIP(address) === 0 || address.includes('%'))
  if (wrong !== undefined)
    throw permanent(
      `Service ${service.namespace}/${service.name}: ${named.from} has "${wrong}", which is no IP address; write one address, or one of each family with a comma between them.`,
      { code: 'bad_address' },
    )
  return { from: named.from, addresses }
}

/**
 * What the Service's annotations shall be once it has its address, or none of ours; only what differs. Whatever we wrote goes together with
 * the note, for whichever implementation it was: left behind it would look like a user's wish. As long as it says the address of the note
 * it stays, so that workers of two settings, while one takes over from the other, undo nothing of each other.
 * @param reserved for the Service: only we and the replaced controller write these
 */
export function annotationsFor(
  service: Pick<ServiceProjection, 'uid' | 'annotations' | 'loadBalancerIp'>,
  keys: AddressAnnotations,
  address: string | undefined,
  reserved: readonly string[],
): Record<string, string | null> {
  const { uid, annotations, loadBalancerIp } = service
  const note = readNote(annotations)
  const ours = new Set([...reserved, note?.address])
  const says = (key: string) => annotations[key]?.trim()
  const wanted: Record<string, string | null> = {}
  for (const key of new Set([...keys.read, ...EVERY_KEY, ...(note?.keys ?? [])])) {
    const said = says(key)
    if (said !== undefined && said !== address && ours.has(said)) wanted[key] = null
  }
  if (address === undefined) {
    if (annotations[ADDRESS_NOTE] !== undefined) wanted[ADDRESS_NOTE] = null
    return wanted
  }
  // Releases long ago wrote the field or the older annotation. MetalLB refuses a Service that has both field and annotation.
  const saidElsewhere =
    loadBalancerIp === address || keys.read.some((key) => key !== keys.write && annotations[key] === address)
  if (!saidElsewhere && annotations[keys.write] !== address) wanted[keys.write] = address
  const chosen = [...(note?.keys ?? []), ...(EVERY_KEY.includes(keys.write) ? [] : [keys.write])]
  const named = [...new Set(chosen)].filter((key) => wanted[key] === address || says(key) === address).sort()
  const text = writeNote({ uid, address, keys: named })
  if (annotations[ADDRESS_NOTE] !== text) wanted[ADDRESS_NOTE] = text
  return wanted
}

/** The region in which an address is made: the Service's own word comes before the setting. */
export function regionOf(
  service: Pick<ServiceProjection, 'annotations'>,
  settings: Pick<CherrySettings, 'region' | 'annotations'>,
): string | undefined {
  return service.annotations[settings.annotations.fipRegion] || settings.region || undefined
}

/** `192.0.2.7/32`, `2001:db8::7/128`. */
export const hostNetwork = (address: string) => `${address}/${isIP(address) === 6 ? 128 : 32}`
