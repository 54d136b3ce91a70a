import { holds, ipv4Number, isPrivate, overlaps, parseRange, type Range } from '../cidr.ts'
import { type Cloud, subnetOf } from '../cloud.ts'
import { ApiError, invalidField, notFound } from '../errors.ts'
import type { Network } from '../model.ts'
import { listPage } from '../query.ts'
import { begin, type Endpoint } from '../router.ts'
import { object, required, text } from '../shape.ts'
import { networkView } from '../views.ts'
import { actionEndpoints } from './actions.ts'

const maxRoutes = 100
/** Servers reach their public gateway there. */
const publicGateway = ipv4Number('172.31.1.1') ?? 0

interface Route {
  destination: string
  gateway: string
}

export const networks: Endpoint[] = [
  {
    method: 'GET',
    path: '/networks',
    query: ['name', 'label_selector', 'page', 'per_page'],
    answer: (cloud, { query }) => listPage('networks', cloud.networks, query, (network) => networkView(cloud, network)),
  },
  {
    method: 'GET',
    path: '/networks/{id}',
    answer: (cloud, { params }) => ({ status: 200, body: { network: networkView(cloud, find(cloud, params)) } }),
  },
  routeAction('add_route', (network, route) => {
    assertAddable(network, route)
    return () => network.routes.push(route)
  }),
  routeAction('delete_route', (network, route) => {
    const at = network.routes.findIndex(
      (known) => known.destination === route.destination && known.gateway === route.gateway,
    )
    if (at < 0) throw new ApiError('not_found', 'route not found')
    return () => network.routes.splice(at, 1)
  }),
  ...actionEndpoints('networks', 'network', (cloud, params) => find(cloud, params)),
]

function routeAction(command: string, plan: (network: Network, route: Route) => () => unknown): Endpoint {
  return {
    method: 'POST',
    path: `/networks/{id}/actions/${command}`,
    body: object({ destination: required(text({ min: 1 })), gateway: required(text({ min: 1 })) }),
    answer: (cloud, call) => {
      const network = find(cloud, call.params)
      const ref = { id: network.id, type: 'network' } as const
      cloud.actions.assertFree(ref)
      const { destination, gateway } = call.body as Route
      if (!parseRange(destination)) throw invalidField('destination', 'must be an IPv4 CIDR without host bits')
      if (ipv4Number(gateway) === undefined) throw invalidField('gateway', 'must be an IPv4 address')
      const effect = plan(network, { destination, gateway })
      return { status: 201, body: { action: begin(cloud, call, { command, resources: [ref], effect }) } }
    },
  }
}

function assertAddable(network: Network, route: Route): void {
  const whole = parseRange(network.ip_range) as Range
  const destination = parseRange(route.destination) as Range
  const gateway = ipv4Number(route.gateway) ?? 0
  const everything = destination.prefix === 0
  if (!everything && !isPrivate(destination)) throw invalidField('destination', 'must be a private range (RFC 1918)')
  for (const subnet of network.subnets) {
    if (!everything && overlaps(destination, parseRange(subnet.ip_range) as Range)) {
      throw invalidField('destination', `overlaps with subnet ${subnet.ip_range}`)
    }
  }
  for (const other of network.routes) {
    const range = parseRange(other.destination)
    if (range && range.prefix > 0 && !everything && overlaps(destination, range)) {
      throw invalidField('destination', `overlaps with route ${other.destination}`)
    }
    if (other.destination === route.destination) throw invalidField('destination', 'has a route already')
  }
  if (!everything && [whole.first, whole.first + 1, publicGateway].some((address) => holds(destination, address))) {
    throw invalidField('destination', 'holds a reserved address')
  }
  const subnet = subnetOf(network, route.gateway)
  if (!subnet || !holds(whole, gateway)) throw invalidField('gateway', 'is in no subnet of the network')
  if (subnet.type === 'vswitch') throw invalidField('gateway', 'is behind a vSwitch')
  if (gateway === whole.first + 1 || gateway === publicGateway || subnet.gateway === route.gateway) {
    throw invalidField('gateway', 'is reserved')
  }
  if (network.routes.length >= maxRoutes) {
    throw new ApiError('resource_limit_exceeded', `a network takes at most ${maxRoutes} routes`)
  }
}

function find(cloud: Cloud, params: Record<string, number>): Network {
  const network = cloud.networks.find((candidate) => candidate.id === params.id)
  if (!network) throw notFound('network', params.id ?? 0)
  return network
}
