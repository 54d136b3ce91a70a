import ipaddr from 'ipaddr.js'
import type { Call } from '../../../call.ts'
import type { LoadBalancer, Network } from '../model.ts'
import type { ConfiguredNetwork } from '../network.ts'
import { PREFIX } from './annotations.ts'
import type { Desired } from './desire.ts'

/** What is wrong with the place in the network that is asked for, as far as it would be used: looked at before anything is detached. */
export async function checkAttachment(
  wanted: Desired['attachment'],
  observed: LoadBalancer | undefined,
  network: ConfiguredNetwork,
  networkId: number | undefined,
  call: Call,
): Promise<string[]> {
  if (networkId === undefined || (wanted.ip === undefined && wanted.ipRange === undefined)) return []
  const attached = observed?.privateNets.find((net) => net.network === networkId)
  if (attached && (wanted.ip === undefined || attached.ip === wanted.ip)) return []
  const faults = attachmentFaults(wanted, await network.known(call))
  // A subnet may have been added since.
  return faults.length === 0 ? [] : attachmentFaults(wanted, await network.read(call))
}

/** Pure. */
export function attachmentFaults({ ip, ipRange }: Desired['attachment'], network: Network): string[] {
  const faults: string[] = []
  const subnets = network.subnets.join(', ') || 'none'
  if (ipRange !== undefined && !network.subnets.includes(ipRange))
    faults.push(
      `annotation ${PREFIX}private-subnet-ip-range: network "${network.name}" has no subnet ${ipRange}, its subnets are ${subnets}`,
    )
  else if (ip !== undefined && !(ipRange === undefined ? network.subnets : [ipRange]).some((range) => holds(range, ip)))
    faults.push(
      `annotation ${PREFIX}private-ipv4: ${ip} is in no subnet that may be used of network "${network.name}": ${ipRange ?? subnets}`,
    )
  return faults
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
