import ipaddr from 'ipaddr.js'
import type { AddressFamily } from '../../config/types.ts'
import { EXTERNAL_IPV6, type NodeProjection } from '../../events/projection.ts'
import type { NodeAddress } from '../../kubernetes/objects.ts'
import type { Instance, Note } from '../provider.ts'
import type { RobotServer } from '../robot/model.ts'
import type { Server } from './model.ts'
import { cloudProviderId, robotProviderId } from './provider-id.ts'

export interface InstanceOptions {
  addressFamily: AddressFamily
  zoneLabelEnabled: boolean
  /** Id of the configured network, whose addresses are internal. */
  network?: number
}

const PROVIDED_BY = 'instance.hetzner.cloud/provided-by'

/** The datacenters that servers had before Hetzner gave them up; nodes and volumes know them as zones. */
const ZONES: Readonly<Record<string, string>> = {
  nbg1: 'nbg1-dc3',
  hel1: 'hel1-dc2',
  fsn1: 'fsn1-dc14',
  ash: 'ash-dc1',
  hil: 'hil-dc1',
  sin: 'sin-dc1',
}

export function cloudInstance(
  server: Server,
  node: NodeProjection,
  options: InstanceOptions,
): { instance: Instance; notes: Note[] } {
  const { location, serverType } = server
  const derived = server.ipv6 === undefined ? undefined : firstHost(server.ipv6)
  const { ipv6, fault, notes } = externalIpv6(node, derived, options)
  const instance: Instance = {
    providerId: cloudProviderId(server.id),
    name: server.name,
    addresses: cloudAddresses(server, ipv6, options),
    ...(fault ? { fault } : {}),
    ...(serverType ? { instanceType: serverType } : {}),
    ...(location ? { region: location } : {}),
    ...(location && options.zoneLabelEnabled ? { zone: ZONES[location] ?? location } : {}),
    additionalLabels: { [PROVIDED_BY]: 'cloud' },
    off: server.status === 'off',
  }
  return { instance, notes }
}

export function robotInstance(
  server: RobotServer,
  node: NodeProjection,
  options: InstanceOptions & { forwardInternalIps: boolean },
): { instance: Instance; notes: Note[] } {
  const derived = server.ipv6Net ? `${server.ipv6Net}1` : undefined
  const { ipv6, fault, notes: said } = externalIpv6(node, derived, options)
  const { addresses, notes } = robotAddresses(server, ipv6, node, options)
  const zone = server.dc.toLowerCase()
  const region = zone.split('-')[0]
  return {
    instance: {
      providerId: robotProviderId(server.number),
      name: server.name,
      addresses,
      ...(fault ? { fault } : {}),
      ...(server.product ? { instanceType: server.product } : {}),
      ...(region ? { region } : {}),
      ...(zone ? { zone } : {}),
      additionalLabels: { [PROVIDED_BY]: 'robot' },
    },
    notes: [...said, ...notes],
  }
}

/** The IPv6 address that the node lists, if any: the one that its annotation names, before the first of the subnet. */
function externalIpv6(
  { name, annotations = {} }: NodeProjection,
  derived: string | undefined,
  { addressFamily }: InstanceOptions,
): { ipv6?: string; fault?: Instance['fault']; notes: Note[] } {
  const named = annotations[EXTERNAL_IPV6]
  if (addressFamily === 'ipv4') {
    if (named === undefined) return { notes: [] }
    const message = `annotation ${EXTERNAL_IPV6} of node ${name} is not looked at while HCLOUD_INSTANCES_ADDRESS_FAMILY is ipv4: set that to dualstack or ipv6, or take the annotation away`
    return { notes: [{ type: 'Warning', reason: 'IgnoredExternalIPv6', message, node: name }] }
  }
  if (named === undefined) return { ...(derived === undefined ? {} : { ipv6: derived }), notes: [] }
  if (isGlobalIpv6(named)) return { ipv6: ipaddr.IPv6.parse(named).toRFC5952String(), notes: [] }
  const message = `annotation ${EXTERNAL_IPV6} "${named}" is no global unicast IPv6 address: write one of the machine's, such as 2001:db8:1234::5, or take the annotation away`
  return { fault: { reason: 'InvalidExternalIPv6', message }, notes: [] }
}

/** Neither unspecified, of this machine or link, nor of a group or an IPv4 address in other clothes. */
function isGlobalIpv6(text: string): boolean {
  if (text.includes('%') || !ipaddr.IPv6.isValid(text)) return false
  return !['unspecified', 'loopback', 'linkLocal', 'multicast', 'ipv4Mapped'].includes(ipaddr.IPv6.parse(text).range())
}

function cloudAddresses(
  server: Server,
  ipv6: string | undefined,
  { addressFamily, network }: InstanceOptions,
): NodeAddress[] {
  return [
    { type: 'Hostname', address: server.name },
    ...(addressFamily !== 'ipv6' && server.ipv4 ? [{ type: 'ExternalIP', address: server.ipv4 }] : []),
    ...(ipv6 ? [{ type: 'ExternalIP', address: ipv6 }] : []),
    ...server.privateNets
      .filter((net) => net.network === network && net.ip !== '')
      .map(({ ip }) => ({ type: 'InternalIP', address: ip })),
  ]
}

function robotAddresses(
  server: RobotServer,
  ipv6: string | undefined,
  node: NodeProjection,
  { addressFamily, forwardInternalIps }: InstanceOptions & { forwardInternalIps: boolean },
): { addresses: NodeAddress[]; notes: Note[] } {
  const addresses: NodeAddress[] = [{ type: 'Hostname', address: server.name }]
  const notes: Note[] = []
  if (ipv6) addresses.push({ type: 'ExternalIP', address: ipv6 })
  if (addressFamily !== 'ipv6' && server.ip) addresses.push({ type: 'ExternalIP', address: server.ip })
  if (!forwardInternalIps) return { addresses, notes }
  for (const { type, address } of node.addresses) {
    if (type !== 'InternalIP') continue
    const isIpv4 = ipaddr.IPv4.isValidFourPartDecimal(address)
    const wrong =
      (isIpv4 && addressFamily === 'ipv6') || (!isIpv4 && addressFamily === 'ipv4')
        ? `is not of the family ${addressFamily} (HCLOUD_INSTANCES_ADDRESS_FAMILY)`
        : addresses.some((known) => known.address === address)
          ? 'is already listed as another address of the server'
          : undefined
    if (wrong === undefined) addresses.push({ type, address })
    else
      notes.push({
        type: 'Warning',
        reason: 'MisconfiguredInternalIP',
        message: `InternalIP ${address} of node ${node.name} ${wrong}, so it is left out`,
        node: node.name,
      })
  }
  return { addresses, notes }
}

/** `2001:db8:1234::/64` has `2001:db8:1234::1` as its first host. */
function firstHost(network: string): string | undefined {
  const address = network.replace(/\/\d+$/, '')
  if (!ipaddr.IPv6.isValid(address)) return undefined
  const bytes = ipaddr.IPv6.parse(address).toByteArray()
  bytes[15] = (bytes[15] ?? 0) | 1
  return (ipaddr.fromByteArray(bytes) as ipaddr.IPv6).toRFC5952String()
}
