import ipaddr from 'ipaddr.js'
import type { Instance } from '../../cloud/provider.ts'
import type { NodeAddress } from '../../kubernetes/objects.ts'

export type AddressOutcome = { addresses: NodeAddress[] } | { fault: string }

/**
 * The addresses that a node shall list, in order: the cloud's, the node's own host name where the cloud has none, and those that kubelet
 * was told by `--node-ip` before all others of their type.
 * An empty answer of the cloud leaves the node as it is: a list never shrinks to nothing on one odd answer.
 */
export function desiredAddresses(
  fromCloud: readonly NodeAddress[],
  present: readonly NodeAddress[],
  providedNodeIp: string | undefined,
): AddressOutcome {
  if (fromCloud.length === 0) return { addresses: [...present] }
  const named = fromCloud.some(({ type }) => type === 'Hostname')
  const all = named ? [...fromCloud] : [...fromCloud, ...present.filter(({ type }) => type === 'Hostname')]
  return providedNodeIp === undefined ? { addresses: all } : preferProvided(all, providedNodeIp)
}

/** The cloud's addresses with those of the node's on whose type the cloud says nothing. */
export function withSilent(
  { addresses, silentOn = [] }: Pick<Instance, 'addresses' | 'silentOn'>,
  present: readonly NodeAddress[],
): NodeAddress[] {
  const kept = present.filter(({ type }) => silentOn.includes(type))
  if (addresses.length === 0 || kept.length === 0) return [...addresses]
  return [...addresses, ...kept].sort((a, b) => TYPES.indexOf(a.type) - TYPES.indexOf(b.type))
}

const TYPES = ['Hostname', 'ExternalIP', 'InternalIP']

export function sameAddresses(a: readonly NodeAddress[], b: readonly NodeAddress[]): boolean {
  return a.length === b.length && a.every((one, i) => one.type === b[i]?.type && one.address === b[i]?.address)
}

function preferProvided(all: readonly NodeAddress[], provided: string): AddressOutcome {
  const given = parseProvided(provided)
  if ('fault' in given) return given
  const first: NodeAddress[] = []
  const claimed = new Set<string>()
  for (const ip of given.ips) {
    const matching = all.filter(({ address }) => parseIp(address)?.toNormalizedString() === ip)
    if (matching.length === 0)
      return {
        fault: `kubelet's --node-ip ${ip} is none of the addresses that the cloud has for this machine (${all.map(({ type, address }) => `${type} ${address}`).join(', ')})`,
      }
    for (const one of matching) {
      first.push(one)
      claimed.add(one.type)
    }
  }
  return { addresses: [...first, ...all.filter(({ type }) => !claimed.has(type))] }
}

/** One address, or two of different families separated by a comma, as kubelet writes them into the annotation. */
function parseProvided(text: string): { ips: string[] } | { fault: string } {
  const ips = text.split(',').map(parseIp)
  const good = ips.filter((ip) => ip !== undefined)
  const bad = (why: string) => ({ fault: `kubelet's --node-ip ${JSON.stringify(text)} ${why}` })
  if (good.length !== ips.length) return bad('is not an IP address or a pair of them')
  if (good.length > 2) return bad('has more than two addresses')
  if (good.length === 2) {
    if (good[0]?.kind() === good[1]?.kind()) return bad('has two addresses of one family')
    if (good.some((ip) => ip.range() === 'unspecified')) return bad('has an unspecified address in a pair')
  }
  return { ips: good.map((ip) => ip.toNormalizedString()) }
}

/** Octets with leading zeros are decimal, and an IPv4 address written as IPv6 is that IPv4 address, as kubelet reads them. */
function parseIp(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    const octets = text.split('.').map((octet) => Number.parseInt(octet, 10))
    return octets.every((octet) => octet <= 255) ? new ipaddr.IPv4(octets) : undefined
  }
  if (!text.includes(':') || !ipaddr.IPv6.isValid(text)) return undefined
  const ip = ipaddr.IPv6.parse(text)
  return ip.isIPv4MappedAddress() ? ip.toIPv4Address() : ip
}
