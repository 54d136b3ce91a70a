import { holds, ipv4Number, isPrivateAddress, parseRange } from '../cidr.ts'
import { type Cloud, subnetOf } from '../cloud.ts'
import { ApiError, invalidField, notFound } from '../errors.ts'
import type { Attachment, LoadBalancer, Network, Target } from '../model.ts'

export interface AttachBody {
  network: number
  ip?: string
  ip_range?: string
}

export function findNetwork(cloud: Cloud, id: number): Network {
  const network = cloud.networks.find((candidate) => candidate.id === id)
  if (!network) throw notFound('network', id)
  return network
}

/** The attachment that the request gets, or the API's reason against it. */
export function chooseAttachment(cloud: Cloud, lb: LoadBalancer, body: AttachBody): Attachment {
  const network = findNetwork(cloud, body.network)
  const range = body.ip_range === undefined ? undefined : parseRange(body.ip_range)
  if (body.ip_range !== undefined && !range) throw invalidField('ip_range', 'must be a CIDR')
  const address = body.ip === undefined ? undefined : ipv4Number(body.ip)
  if (body.ip !== undefined && address === undefined) throw invalidField('ip', 'must be an IPv4 address')
  if (range && address !== undefined && !holds(range, address)) throw invalidField('ip', 'is not in ip_range')
  if (lb.private_net.length > 0) {
    throw new ApiError('load_balancer_already_attached', 'load balancer is already attached to a network')
  }
  const usable = network.subnets.filter(
    (subnet) =>
      subnet.type !== 'vswitch' &&
      subnet.network_zone === lb.location.network_zone &&
      (body.ip_range === undefined || subnet.ip_range === body.ip_range),
  )
  if (usable.length === 0) throw noSubnet()
  if (body.ip !== undefined) {
    const subnet = subnetOf(network, body.ip)
    if (!subnet || !usable.includes(subnet) || !cloud.isFreeAddress(network, body.ip)) {
      throw new ApiError('ip_not_available', `${body.ip} is not available in the network`)
    }
    return { network: network.id, ip: body.ip, requested: true, subnet: subnet.ip_range }
  }
  for (const subnet of usable) {
    const ip = cloud.freeAddress(network, subnet)
    if (ip) return { network: network.id, ip, requested: false, subnet: subnet.ip_range }
  }
  throw noSubnet()
}

/** Without the network all private targets are gone. */
export function isPrivateTarget(target: Target): boolean {
  return target.type === 'ip' ? isPrivateAddress(target.ip.ip) : target.use_private_ip
}

function noSubnet(): ApiError {
  return new ApiError('no_subnet_available', 'no subnet or address is available in the network')
}
