import ipaddr from 'ipaddr.js'
import { parseCidr } from '../../config/grammar.ts'
import { permanent, transient, WindlassError } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import type { Note } from '../provider.ts'
import type { CloudServerId, Network, Server } from './model.ts'
import { parseProviderId } from './provider-id.ts'

export type RouteChange =
  | { kind: 'add-route'; summary: string; destination: string; gateway: string; node: string }
  /** `node` is there when the route makes place for one of that node. */
  | { kind: 'delete-route'; summary: string; destination: string; gateway: string; node?: string }

export interface PlannedRoutes {
  changes: RouteChange[]
  notes: Note[]
  /** Nodes that need nothing. */
  routed: Set<string>
  /** Nodes that will have all their routes when the changes are done. */
  changing: Set<string>
  /** Nodes that can't have all their routes now. */
  failed: Map<string, WindlassError>
  /** Nodes with a pod CIDR outside the cluster's ranges. */
  outside: Set<string>
  /** Nodes that have no pod CIDR, while a route of the cluster's ranges leads to them. */
  unassigned: Set<string>
  /** A route of a node that is there is taken away, by what the list of servers says. */
  withdraws: boolean
}

/**
 * Pure. One route for each IPv4 pod CIDR, to the address of the node's server in the network. Routes outside the cluster's ranges are
 * other people's, and none is made there: nothing would take it away when its node goes, until the network is full. Inside, what belongs
 * to no node goes, and what leads nowhere since its node's server has left the network.
 */
export function planRoutes(
  nodes: readonly NodeProjection[],
  cidrs: readonly string[],
  network: Network,
  servers: readonly Server[],
): PlannedRoutes {
  const clusterCidrs = cidrs.flatMap((cidr) => networkOf(cidr) ?? [])
  const serverOf = searchIn(servers)
  const present = new Map(network.routes.map((route) => [networkOf(route.destination) ?? route.destination, route]))
  const ours = network.routes.filter(({ destination }) => {
    const known = networkOf(destination) ?? destination
    return clusterCidrs.some((cidr) => touches(known, cidr))
  })
  const led = new Set(ours.map(({ gateway }) => gateway))
  const expected = new Set<string>()
  const planned: PlannedRoutes = {
    changes: [],
    notes: [],
    routed: new Set(),
    changing: new Set(),
    failed: new Map(),
    outside: new Set(),
    unassigned: new Set(),
    withdraws: false,
  }
  const additions: RouteChange[] = []
  for (const node of [...nodes].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const destinations = node.podCidrs.flatMap((cidr) => networkOf(cidr) ?? [])
    if (node.podCidrs.length > 0 && destinations.length === 0) {
      planned.routed.add(node.name)
      continue
    }
    if (isSomebodyElses(node)) {
      // How its pods are reached is its own business; so is a route that somebody made to them.
      for (const destination of destinations) expected.add(destination)
      continue
    }
    const gateway = gatewayOf(node, serverOf(node), network)
    if (destinations.length === 0) {
      if (typeof gateway === 'string' && led.has(gateway)) planned.unassigned.add(node.name)
      continue
    }
    // A CIDR of a node that is there is not taken away while its server can't be seen.
    const leadsNowhere = gateway instanceof Error && gateway.code === NOT_ATTACHED
    if (!leadsNowhere) for (const destination of destinations) expected.add(destination)
    if (gateway instanceof Error) {
      if (leadsNowhere) planned.withdraws ||= destinations.some((destination) => present.has(destination))
      planned.failed.set(node.name, gateway)
      continue
    }
    let complete = true
    for (const destination of destinations) {
      const route = present.get(destination)
      const outside = !clusterCidrs.some((cidr) => within(destination, cidr))
      if (outside) {
        planned.outside.add(node.name)
        planned.notes.push(outsideNote(node.name, destination, cidrs))
      }
      if (route?.gateway === gateway) continue
      if (outside && !clusterCidrs.some((cidr) => touches(destination, cidr))) {
        planned.failed.set(node.name, outsideFault(node.name, destination))
        continue
      }
      if (!isInternalOf(node, gateway)) {
        planned.failed.set(node.name, notYetListed(node.name, gateway))
        continue
      }
      complete = false
      if (route)
        additions.push({
          kind: 'delete-route',
          summary: `delete route ${destination} via ${route.gateway}`,
          ...route,
          node: node.name,
        })
      additions.push({
        kind: 'add-route',
        summary: `add route ${destination} via ${gateway} for node ${node.name}`,
        destination,
        gateway,
        node: node.name,
      })
    }
    if (!complete) planned.changing.add(node.name)
    else if (!planned.failed.has(node.name)) planned.routed.add(node.name)
  }
  const stale = ours.filter(({ destination }) => !expected.has(networkOf(destination) ?? destination))
  planned.changes = [
    ...stale.map(
      (route): RouteChange => ({
        kind: 'delete-route',
        summary: `delete route ${route.destination} via ${route.gateway}, which leads to no node`,
        ...route,
      }),
    ),
    ...additions,
  ]
  return planned
}

const isSomebodyElses = ({ providerId }: NodeProjection) =>
  providerId !== undefined && parseProviderId(providerId).kind === 'foreign'

const outsideNote = (node: string, destination: string, cidrs: readonly string[]): Note => ({
  type: 'Warning',
  reason: 'ClusterCIDRMisconfigured',
  message: `pod CIDR ${destination} of node ${node} is outside the cluster CIDR ${cidrs.join(', ')}: set --cluster-cidr to the range that pod CIDRs are taken from`,
  node,
})

const outsideFault = (node: string, destination: string) =>
  permanent(
    `node ${node} gets no route to ${destination}, which is outside the cluster CIDR: nothing would ever take it away. Set --cluster-cidr to the range that pod CIDRs are taken from`,
    { code: 'outside_cluster_cidr' },
  )

const NOT_ATTACHED = 'not_attached'

/** The server of a node, by its provider id, or by its name if it has none; an error that says what is missing. */
function searchIn(servers: readonly Server[]): (node: NodeProjection) => Server | WindlassError {
  const byId = new Map<CloudServerId, Server>(servers.map((server) => [server.id, server]))
  const byName = new Map<string, Server>(servers.map((server) => [server.name, server]))
  return ({ name, providerId }) => {
    if (providerId === undefined)
      return byName.get(name) ?? transient(`node ${name} gets no route: it has no provider id, and no server its name`)
    const parsed = parseProviderId(providerId)
    if (parsed.kind !== 'cloud')
      return permanent(`node ${name} (${providerId}) gets no route: routes are only supported for cloud servers`)
    return byId.get(parsed.id) ?? transient(`node ${name} gets no route: server ${parsed.id} is not found`)
  }
}

/** The address of a node's server in the network; an error that says what is missing. */
function gatewayOf({ name }: NodeProjection, server: Server | WindlassError, network: Network): string | WindlassError {
  if (server instanceof WindlassError) return server
  const gateway = server.privateNets.find((net) => net.network === network.id)?.ip
  if (!gateway)
    return transient(`node ${name} gets no route: server ${server.name} is not attached to network ${network.name}`, {
      code: NOT_ATTACHED,
    })
  return gateway
}

/** A route that is there already stays while the node has no addresses yet. */
const isInternalOf = ({ addresses }: NodeProjection, gateway: string) =>
  addresses.some(({ type, address }) => type === 'InternalIP' && address === gateway)

const notYetListed = (node: string, gateway: string) =>
  transient(`node ${node} gets no route yet: ${gateway} is not among its addresses`)

/** IPv4 only; host bits cleared. */
function networkOf(cidr: string): string | undefined {
  const parsed = parseCidr(cidr)
  return 'value' in parsed && parsed.value.family === 'ipv4' ? parsed.value.network : undefined
}

function within(inner: string, outer: string): boolean {
  const [address, prefix] = ipaddr.IPv4.parseCIDR(inner)
  const [network, outerPrefix] = ipaddr.IPv4.parseCIDR(outer)
  return prefix >= outerPrefix && address.match(network, outerPrefix)
}

/** The first or the last address of a range lies in another. */
function touches(range: string, cidr: string): boolean {
  if (networkOf(range) === undefined) return false
  const [network, prefix] = ipaddr.IPv4.parseCIDR(cidr)
  return [ipaddr.IPv4.networkAddressFromCIDR(range), ipaddr.IPv4.broadcastAddressFromCIDR(range)].some((address) =>
    address.match(network, prefix),
  )
}
