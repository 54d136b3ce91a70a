import type { Cloud } from '../cloud.ts'
import { ApiError, invalidField, nameTaken } from '../errors.ts'
import type { Labels, LoadBalancer, LoadBalancerType, Location } from '../model.ts'
import * as shape from '../shape.ts'
import { pointer } from '../views.ts'
import { chooseAttachment } from './attachment.ts'
import { assertSound, merge, newServiceShape, type ServiceBody } from './service.ts'
import { assertPossible, newTargetShape, type TargetBody, toTarget } from './target.ts'

const { boolean, either, id, labels, list, name, object, oneOf, optional, required, text } = shape

export const createShape = object({
  name: required(name),
  load_balancer_type: required(either(text({ min: 1 }), id)),
  algorithm: optional(object({ type: required(oneOf('round_robin', 'least_connections')) })),
  location: optional(either(text({ min: 1 }), id)),
  network_zone: optional(text({ min: 1 })),
  labels: optional(labels),
  public_interface: optional(boolean),
  network: optional(id),
  services: optional(list(newServiceShape)),
  targets: optional(list(newTargetShape)),
})

export interface CreateBody {
  name: string
  load_balancer_type: string | number
  algorithm?: { type: string }
  location?: string | number
  network_zone?: string
  labels?: Labels
  public_interface?: boolean
  network?: number
  services?: ServiceBody[]
  targets?: TargetBody[]
}

/** The load balancer that the request makes; whatever a single action would refuse is refused here too. */
export function createLoadBalancer(cloud: Cloud, body: CreateBody): LoadBalancer {
  if (cloud.loadBalancers.some((lb) => lb.name === body.name)) throw nameTaken('load balancer')
  if ((body.location === undefined) === (body.network_zone === undefined)) {
    throw invalidField('location', 'exactly one of location and network_zone is needed')
  }
  const type = findType(cloud, body.load_balancer_type)
  const location = findLocation(cloud, body)
  if (cloud.loadBalancers.length >= cloud.options.max_load_balancers) {
    throw new ApiError('resource_limit_exceeded', 'load balancer limit exceeded')
  }
  const lb = blank(body.name, type, location)
  lb.labels = body.labels ?? {}
  lb.algorithm = body.algorithm ?? { type: 'round_robin' }
  lb.public_net.enabled = body.public_interface ?? true
  if (body.network_zone !== undefined) lb.by_zone = body.network_zone
  if (body.network !== undefined) lb.private_net = [chooseAttachment(cloud, lb, { network: body.network })]
  for (const item of body.services ?? []) {
    const service = merge(undefined, item)
    assertSound(cloud, type, lb.services, service, item)
    lb.services.push(service)
  }
  for (const item of body.targets ?? []) {
    const target = toTarget(item)
    assertPossible(cloud, lb, target)
    lb.targets.push(target)
  }
  const addresses = cloud.nextLoadBalancerAddresses()
  lb.public_net.ipv4 = { ip: addresses.ipv4, dns_ptr: pointer(addresses.ipv4) }
  lb.public_net.ipv6 = { ip: addresses.ipv6, dns_ptr: null }
  lb.id = cloud.nextId()
  return lb
}

export function blank(name: string, type: LoadBalancerType, location: Location): LoadBalancer {
  return {
    id: 0,
    name,
    labels: {},
    load_balancer_type: type,
    location,
    algorithm: { type: 'round_robin' },
    protection: { delete: false },
    public_net: { enabled: true, ipv4: { ip: '', dns_ptr: null }, ipv6: { ip: '', dns_ptr: null } },
    private_net: [],
    services: [],
    targets: [],
    created: new Date().toISOString(),
  }
}

/** By name or id, in text or as a number. A type that can no longer be ordered is unavailable. */
export function findType(cloud: Cloud, wanted: string | number): LoadBalancerType {
  const type = cloud.loadBalancerTypes.find((known) => known.name === wanted || String(known.id) === String(wanted))
  if (!type) throw invalidField('load_balancer_type', `'${wanted}' does not exist`)
  if (type.deprecation && Date.parse(type.deprecation.unavailable_after) <= Date.now()) {
    throw new ApiError('resource_unavailable', `load balancer type ${type.name} can no longer be ordered`)
  }
  return type
}

function findLocation(cloud: Cloud, body: CreateBody): Location {
  const found = cloud.locations.find((known) =>
    body.location === undefined
      ? known.network_zone === body.network_zone
      : known.name === body.location || String(known.id) === String(body.location),
  )
  if (found) return found
  if (body.location === undefined) throw invalidField('network_zone', `'${body.network_zone}' does not exist`)
  throw invalidField('location', `'${body.location}' does not exist`)
}
