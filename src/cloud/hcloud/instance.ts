import ipaddr from 'ipaddr.js'
import type { AddressFamily } from '../../config/types.ts'
import type { NodeProjection } from '../../events/projection.ts'
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

export function cloudInstance(server: Server, options: InstanceOptions): Instance {
  const { location, serverType } = server
  return {
    providerId: cloudProviderId(server.id),
    name: server.name,
    addresses: cloudAddresses(server, options),
    ...(serverType ? { instanceType: serverType } : {}),
    ...(location ? { region: location } : {}),
    ...(location && options.zoneLabelEnabled ? { zone: ZONES[location] ?? location } : {}),
    additionalLabels: { [PROVIDED_BY]: 'cloud' },
    off: server.status === 'off',
  }
}

export function robotInstance(
  server: RobotServer,
  node: NodeProjection,
  options: InstanceOptions & { forwardInternalIps: boolean },
): { instance: Instance; notes: Note[] } {
  const { addresses, notes } = robotAddresses(server, node, options)
  const zone = server.dc.toLowerCase()
  const region = zone.split('-')[0]
  return {
    instance: {
      providerId: robotProviderId(server.number),
      name: server.name,
      addresses,
      ...(server.product ? { instanceType: server.product } : {}),
      ...(region ? { region } : {}),
      ...(zone ? { zone } : {}),
      additionalLabels: { [PROVIDED_BY]: 'robot' },
    },
    notes,
  }
}

function cloudAddresses(server: Server, { addressFamily, network }: InstanceOptions): NodeAddress[] {
  const ipv6 = server.ipv6 === undefined ? undefined : firstHost(server.ipv6)
  return [
    { type: 'Hostname', address: server.name },
    ...(addressFamily !== 'ipv6' && server.ipv4 ? [{ type: 'ExternalIP', address: server.ipv4 }] : []),
    ...(addressFamily !== 'ipv4' && ipv6 ? [{ type: 'ExternalIP', address: ipv6 }] : []),
    ...server.privateNets
      .filter((net) => net.network === network && net.ip !== '')
      .map(({ ip }) => ({ type: 'InternalIP', address: ip })),
  ]
}

function robotAddresses(
  server: RobotServer,
  node: NodeProjection,
  { addressFamily, forwardInternalIps }: InstanceOptions & { forwardInternalIps: boolean },
): { addresses: NodeAddress[]; notes: Note[] } {
  const addresses: NodeAddress[] = [{ type: 'Hostname', address: server.name }]
  const notes: Note[] = []
  if (addressFamily !== 'ipv4' && server.ipv6Net) addresses.push({ type: 'ExternalIP', address: `${server.ipv6Net}1` })
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
