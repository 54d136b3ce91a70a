import { ipv4Number, ipv4Text, parseRange } from './cidr.ts'
import type { Cloud } from './cloud.ts'
import { parseSelector } from './label-selector.ts'
import type { Certificate, LoadBalancer, Network, RobotServer, Server, Service, Target } from './model.ts'

/** The resources as the API shows them. */
export function serverView(cloud: Cloud, server: Server): Record<string, unknown> {
  const { ipv4, ipv6, private_net, ...rest } = server
  return {
    ...rest,
    public_net: {
      ipv4: ipv4 === null ? null : { id: server.id * 10 + 4, ip: ipv4, blocked: false, dns_ptr: pointer(ipv4) },
      ipv6: ipv6 === null ? null : { id: server.id * 10 + 6, ip: ipv6, blocked: false, dns_ptr: [] },
      floating_ips: [],
      firewalls: [],
    },
    private_net,
    image: null,
    iso: null,
    rescue_enabled: false,
    locked: false,
    backup_window: null,
    outgoing_traffic: 0,
    ingoing_traffic: 0,
    included_traffic: 21_990_232_555_520,
    volumes: [],
    load_balancers: cloud.loadBalancers
      .filter((lb) => lb.targets.some((target) => target.type === 'server' && target.server.id === server.id))
      .map((lb) => lb.id),
    primary_disk_size: 40,
    placement_group: null,
  }
}

export function networkView(cloud: Cloud, network: Network): Record<string, unknown> {
  return {
    ...network,
    servers: cloud.servers
      .filter((server) => server.private_net.some((net) => net.network === network.id))
      .map((server) => server.id),
    load_balancers: cloud.loadBalancers
      .filter((lb) => lb.private_net.some((net) => net.network === network.id))
      .map((lb) => lb.id),
    expose_routes_to_vswitch: false,
  }
}

export function loadBalancerView(cloud: Cloud, lb: LoadBalancer): Record<string, unknown> {
  const { by_zone: _, private_net, targets, ...rest } = lb
  return {
    ...rest,
    private_net: private_net.map(({ network, ip }) => ({ network, ip })),
    targets: targets.map((target) => targetView(cloud, lb.services, target)),
    included_traffic: 21_990_232_555_520,
    ingoing_traffic: 0,
    outgoing_traffic: 0,
  }
}

export function certificateView(cloud: Cloud, certificate: Certificate): Record<string, unknown> {
  const ready = certificate.type === 'uploaded' || certificate.status?.issuance === 'completed'
  return {
    ...certificate,
    certificate: ready ? '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n' : null,
    fingerprint: ready ? '03:c7:55:9b:2a:d1:04:17:09:f6:d0:7f:18:34:63:d4:3e:5f' : null,
    not_valid_before: ready ? certificate.created : null,
    not_valid_after: ready ? '2099-01-01T00:00:00Z' : null,
    used_by: usersOf(cloud, certificate.id).map((lb) => ({ id: lb.id, type: 'load_balancer' })),
  }
}

export function usersOf(cloud: Cloud, certificate: number): LoadBalancer[] {
  return cloud.loadBalancers.filter((lb) => lb.services.some((item) => item.http?.certificates.includes(certificate)))
}

/** Everything, with what the API does not tell, for tests. */
export function stateView(cloud: Cloud): Record<string, unknown[]> {
  return {
    locations: cloud.locations,
    load_balancer_types: cloud.loadBalancerTypes,
    servers: cloud.servers.map((server) => serverView(cloud, server)),
    networks: cloud.networks.map((network) => networkView(cloud, network)),
    load_balancers: cloud.loadBalancers.map((lb) => ({
      ...loadBalancerView(cloud, lb),
      by_zone: lb.by_zone,
      default_dns_ptr: { ipv4: pointer(lb.public_net.ipv4.ip), ipv6: null },
      private_net: lb.private_net.map(({ network, ip, requested, subnet }) => ({
        network,
        ip,
        requested_ip: requested ? ip : undefined,
        subnet,
      })),
    })),
    certificates: cloud.certificates.map((certificate) => certificateView(cloud, certificate)),
    robot_servers: cloud.robotServers,
    actions: cloud.actions.all,
  }
}

export function robotServerView(server: RobotServer): Record<string, unknown> {
  const { operating_status: _, reset: __, ...rest } = server
  return {
    ...rest,
    traffic: 'unlimited',
    paid_until: '2099-01-01',
    ip: server.server_ip === null ? null : [server.server_ip],
    subnet: server.server_ipv6_net === null ? null : [{ ip: server.server_ipv6_net, mask: '64' }],
    linked_storagebox: null,
  }
}

export function pointer(ipv4: string): string {
  return `static.${ipv4.split('.').reverse().join('.')}.clients.your-server.de`
}

/** The gateway of a subnet: its first address. */
export function gatewayOf(ipRange: string): string {
  return ipv4Text((parseRange(ipRange)?.first ?? ipv4Number('0.0.0.0') ?? 0) + 1)
}

function targetView(cloud: Cloud, services: Service[], target: Target): Record<string, unknown> {
  const health_status = services.map((item) => ({ listen_port: item.listen_port, status: 'healthy' }))
  if (target.type !== 'label_selector') return { ...target, health_status }
  const selects = parseSelector(target.label_selector.selector)
  return {
    ...target,
    targets: cloud.servers
      .filter((server) => selects?.(server.labels))
      .map((server) => ({
        type: 'server',
        server: { id: server.id },
        use_private_ip: target.use_private_ip,
        health_status,
      })),
  }
}
