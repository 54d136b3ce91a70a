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

export interface AddressAnnotations {
  /** Where a user may name addresses, the first non-empty wins, and after them the field of the spec. */
  read: readonly string[]
  /** Where ours is written. */
  write: string
}

export function addressAnnotations(balancer: CherryLoadBalancer): AddressAnnotations {
  switch (balancer.kind) {
    case 'kube-vip':
      return one('kube-vip.io/loadbalancerIPs')
    case 'metallb':
      return {
        read: ['metallb.io/loadBalancerIPs', 'metallb.universe.tf/loadBalancerIPs'],
        write: 'metallb.io/loadBalancerIPs',
      }
    case 'empty':
      return one(balancer.ipAnnotation ?? 'cherryservers.com/loadBalancerIPs')
  }
}

const one = (key: string): AddressAnnotations => ({ read: [key], write: key })

/** Exactly `false`, as the replaced controller reads it. */
export const isDeclined = ({ annotations }: Pick<ServiceProjection, 'annotations'>) => annotations[MANAGED] === 'false'

export interface Note {
  uid: string
  address: string
}

export function readNote(annotations: Readonly<Record<string, string>>): Note | undefined {
  const [uid, address, ...rest] = (annotations[ADDRESS_NOTE] ?? '').split(' ')
  return uid && address && rest.length === 0 ? { uid, address } : undefined
}

export const writeNote = ({ uid, address }: Note) => `${uid} ${address}`

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

/** What the Service's annotations shall be once it has its address; only what differs. */
export function annotationsFor(
  service: Pick<ServiceProjection, 'uid' | 'annotations' | 'loadBalancerIp'>,
  keys: AddressAnnotations,
  address: string | undefined,
): Record<string, string | null> {
  const { uid, annotations, loadBalancerIp } = service
  const note = readNote(annotations)
  const wanted: Record<string, string | null> = {}
  for (const key of keys.read) {
    const present = annotations[key]
    if (present === undefined || key === keys.write) continue
    if (present !== address && present === note?.address) wanted[key] = null
  }
  const present = annotations[keys.write]
  if (address === undefined) {
    if (present !== undefined && present === note?.address) wanted[keys.write] = null
    if (annotations[ADDRESS_NOTE] !== undefined) wanted[ADDRESS_NOTE] = null
    return wanted
  }
  // Releases long ago wrote the field or the older annotation. MetalLB refuses a Service that has both field and annotation.
  const saidElsewhere =
    loadBalancerIp === address || keys.read.some((key) => key !== keys.write && annotations[key] === address)
  if (!saidElsewhere && present !== address) wanted[keys.write] = address
  if (saidElsewhere && present !== address && present !== undefined && present === note?.address)
    wanted[keys.write] = null
  const text = writeNote({ uid, address })
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
