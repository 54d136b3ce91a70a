import ipaddr from 'ipaddr.js'
import type { Call } from '../../../call.ts'
import type { LoadBalancer, Network } from '../model.ts'
import type { ConfiguredNetwork } from '../network.ts'
import type { Servers } from '../servers.ts'
import { PREFIX } from './annotations.ts'
import type { Desired } from './desire.ts'
import type { LoadBalancerReads } from './reads.ts'

export interface Surroundings {
  network: ConfiguredNetwork
  networkId: number | undefined
  servers: Servers
  reads: LoadBalancerReads
}

/** `rangeFrom` says where the subnet was written. */
export type WantedPlace = Desired['attachment'] & { rangeFrom: string }

/** What is wrong with the place in the network that is asked for, as far as it would be used: looked at before anything is detached. */
export async function checkAttachment(
  wanted: WantedPlace,
  observed: LoadBalancer | undefined,
  surroundings: Surroundings,
  call: Call,
): Promise<string[]> {
  const { network, networkId } = surroundings
  if (networkId === undefined || (wanted.ip === undefined && wanted.ipRange === undefined)) return []
  const attached = observed?.privateNets.find((net) => net.network === networkId)
  if (attached && (wanted.ip === undefined || attached.ip === wanted.ip)) return []
  const look = async (now: Network, fresh: boolean) => {
    const faults = attachmentFaults(wanted, now)
    return faults.length > 0 ? faults : await takenFaults(wanted, observed, now, surroundings, fresh, call)
  }
  const faults = await look(await network.known(call), false)
  // A subnet may have been added since, or an address given up.
  return faults.length === 0 ? [] : await look(await network.read(call), true)
}

/** Pure. */
export function attachmentFaults({ ip, ipRange, rangeFrom }: WantedPlace, network: Network): string[] {
  const faults: string[] = []
  const subnets = network.subnets.join(', ') || 'none'
  if (ipRange !== undefined && !network.subnets.includes(ipRange))
    faults.push(`${rangeFrom}: network "${network.name}" has no subnet ${ipRange}, its subnets are ${subnets}`)
  else if (ip !== undefined && !(ipRange === undefined ? network.subnets : [ipRange]).some((range) => holds(range, ip)))
    faults.push(
      `annotation ${PREFIX}private-ipv4: ${ip} is in no subnet that may be used of network "${network.name}": ${ipRange ?? subnets}`,
    )
  return faults
}

/** The API refuses an address that somebody has only once the load balancer is detached, and has lost its targets. */
async function takenFaults(
  { ip }: Desired['attachment'],
  observed: LoadBalancer | undefined,
  network: Network,
  { servers, reads }: Surroundings,
  fresh: boolean,
  call: Call,
): Promise<string[]> {
  if (ip === undefined) return []
  const has = ({ privateNets }: { privateNets: { network: number; ip: string; aliasIps?: readonly string[] }[] }) =>
    privateNets.some((net) => net.network === network.id && (net.ip === ip || net.aliasIps?.includes(ip) === true))
  const server = (await servers.list(call, { fresh })).find(has)
  const balancer = (await reads.all(call)).find((lb) => lb.id !== observed?.id && has(lb))
  const holder = server
    ? `server "${server.name}"`
    : balancer
      ? `load balancer "${balancer.name}"`
      : network.gateways.includes(ip)
        ? 'the gateway of a subnet'
        : undefined
  if (holder === undefined) return []
  return [`annotation ${PREFIX}private-ipv4: ${ip} is that of ${holder} in network "${network.name}": choose another`]
}

function holds(range: string, ip: string): boolean {
  try {
    const address = ipaddr.IPv4.parse(ip)
    const [network, prefix] = ipaddr.IPv4.parseCIDR(range)
    return address.match(network, prefix)
  } catch {
    return false
  }
}
