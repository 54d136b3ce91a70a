import { isPrivateAddress } from '../cidr.ts'
import { type Cloud, subnetOf } from '../cloud.ts'
import { ApiError, invalidField, notFound } from '../errors.ts'
import type { LoadBalancer, Target } from '../model.ts'
import * as shape from '../shape.ts'

const { boolean, id, object, oneOf, optional, required, selector, text } = shape

const named = {
  type: required(oneOf('server', 'ip', 'label_selector')),
  server: optional(object({ id: required(id) })),
  ip: optional(object({ ip: required(text({ min: 1 })) })),
  label_selector: optional(object({ selector: required(selector) })),
}

export const newTargetShape = object({ ...named, use_private_ip: optional(boolean) })
export const removedTargetShape = object(named)

export interface TargetBody {
  type: Target['type']
  server?: { id: number }
  ip?: { ip: string }
  label_selector?: { selector: string }
  use_private_ip?: boolean
}

export function toTarget(body: TargetBody): Target {
  for (const other of ['server', 'ip', 'label_selector'] as const) {
    if (other !== body.type && body[other]) throw invalidField(other, `not possible with type ${body.type}`)
  }
  const use_private_ip = body.use_private_ip ?? false
  if (body.type === 'server' && body.server) return { type: 'server', server: body.server, use_private_ip }
  if (body.type === 'label_selector' && body.label_selector) {
    return { type: 'label_selector', label_selector: body.label_selector, use_private_ip }
  }
  if (body.type === 'ip' && body.ip) {
    if (body.use_private_ip !== undefined) throw invalidField('use_private_ip', 'not possible with type ip')
    return { type: 'ip', ip: body.ip }
  }
  throw invalidField(body.type, 'missing required field')
}

export function isSame(a: Target, b: Target): boolean {
  return identity(a) === identity(b)
}

/** What the API refuses about a new target of a load balancer in its present state. */
export function assertPossible(cloud: Cloud, lb: LoadBalancer, target: Target): void {
  if (target.type === 'server' && !cloud.servers.some((server) => server.id === target.server.id)) {
    throw notFound('server', target.server.id)
  }
  if (lb.targets.some((known) => isSame(known, target))) {
    throw new ApiError('target_already_defined', 'the target is already defined')
  }
  const limit = lb.load_balancer_type.max_targets
  if (lb.targets.length >= limit) {
    throw new ApiError('resource_limit_exceeded', `${lb.load_balancer_type.name} takes at most ${limit} targets`)
  }
  if (target.type === 'ip') {
    assertOwnAddress(cloud, lb, target.ip.ip)
    return
  }
  if (target.use_private_ip && lb.private_net.length === 0) throw notAttached()
  if (!target.use_private_ip && !lb.public_net.enabled) throw publicInterfaceOff()
  if (target.type === 'server') assertServerReachable(cloud, lb, target.server.id, target.use_private_ip)
}

export function notAttached(): ApiError {
  return new ApiError('load_balancer_not_attached_to_network', 'load balancer is not attached to a network')
}

function assertServerReachable(cloud: Cloud, lb: LoadBalancer, serverId: number, privately: boolean): void {
  const server = cloud.servers.find((candidate) => candidate.id === serverId)
  if (!privately && server?.ipv4 === null) {
    throw new ApiError('missing_ipv4', `server ${serverId} has no public IPv4 address`)
  }
  const joined = server?.private_net.some((net) => lb.private_net.some((own) => own.network === net.network))
  if (privately && !joined) {
    throw new ApiError('server_not_attached_to_network', `server ${serverId} is not in the load balancer's network`)
  }
}

function assertOwnAddress(cloud: Cloud, lb: LoadBalancer, ip: string): void {
  if (!isPrivateAddress(ip)) {
    if (cloud.servers.some((server) => server.ipv4 === ip)) {
      throw new ApiError('cloud_resource_ip_not_allowed', `${ip} belongs to a cloud server`)
    }
    if (!cloud.robotServers.some((server) => server.server_ip === ip)) {
      throw new ApiError('ip_not_owned', `${ip} is not owned by the owner of the project`)
    }
    if (!lb.public_net.enabled) throw publicInterfaceOff()
    return
  }
  const networks = cloud.networks.filter((network) => lb.private_net.some((net) => net.network === network.id))
  if (networks.length === 0) throw notAttached()
  const vswitches = networks.flatMap((network) => network.subnets.filter((subnet) => subnet.type === 'vswitch'))
  if (vswitches.length === 0) {
    throw new ApiError('network_has_no_vswitch_subnet', 'the attached network has no vSwitch subnet')
  }
  if (!networks.some((network) => subnetOf(network, ip)?.type === 'vswitch')) {
    throw new ApiError('ip_not_in_vswitch_subnet', `${ip} is not in the vSwitch subnet of the attached network`)
  }
}

function publicInterfaceOff(): ApiError {
  return new ApiError(
    'load_balancer_public_interface_disabled',
    'the public interface of the load balancer is disabled',
  )
}

function identity(target: Target): string {
  if (target.type === 'server') return `server ${target.server.id}`
  return target.type === 'ip' ? `ip ${target.ip.ip}` : `label_selector ${target.label_selector.selector}`
}
