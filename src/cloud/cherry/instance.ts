import ipaddr from 'ipaddr.js'
import type { NodeAddress } from '../../kubernetes/objects.ts'
import type { Instance, Note } from '../provider.ts'
import type { Server } from './model.ts'
import { providerIdOf } from './provider-id.ts'

/** As the API says of a server that is switched off. */
const OFF = 'inactive'

const TYPES: Readonly<Record<string, { type: string; spoken: string }>> = {
  'primary-ip': { type: 'ExternalIP', spoken: 'public' },
  'private-ip': { type: 'InternalIP', spoken: 'private' },
}

/**
 * A machine of either class of address will do: a server without a public or a private one is initialised with what it has, and an answer
 * without one takes none from a node.
 */
export function instanceOf(server: Server): { instance: Instance; notes: Note[] } {
  const addresses: NodeAddress[] = [
    { type: 'Hostname', address: server.hostname },
    ...addressesOf(server, 'primary-ip'),
    ...addressesOf(server, 'private-ip'),
  ]
  const missing = Object.values(TYPES).filter(({ type }) => !addresses.some((one) => one.type === type))
  return {
    instance: {
      providerId: providerIdOf(server.id),
      name: server.hostname,
      addresses: missing.length === 2 ? [] : addresses,
      silentOn: missing.map(({ type }) => type),
      ...(server.plan ? { instanceType: server.plan } : {}),
      ...(server.region ? { region: server.region } : {}),
      additionalLabels: {},
      off: server.state === OFF,
    },
    notes: (server.addresses ? missing : []).map(({ spoken }) => ({
      type: 'Warning',
      reason: 'AddressMissing',
      message: `Server ${server.id} has no ${spoken} IPv4 address, so the node gets none, and keeps the one that it has`,
    })),
  }
}

export const isOff = (server: Server) => server.state === OFF

/** Where a server's BGP sessions come from. */
export const publicIpOf = (server: Server) => addressesOf(server, 'primary-ip')[0]?.address

/** In the API's order. Floating IPs and subnets come and go with load, and are no addresses of the machine. */
function addressesOf(server: Server, type: string): NodeAddress[] {
  return (server.addresses ?? [])
    .filter((one) => one.type === type && ipaddr.IPv4.isValidFourPartDecimal(one.address))
    .map(({ address }) => ({ type: TYPES[type]?.type ?? '', address }))
}
