import type { Json } from '../../apiserver/admin.ts'
import type { Substitution } from '../form/substitute.ts'

/** The account by names: no ids, no times; addresses that the cloud chose become substitutions. */
export function normalAccount(state: Json): { account: Json; substitutions: Substitution[] } {
  const substitutions: Substitution[] = []
  const names: Names = {
    server: namesIn(state.servers, 'server'),
    network: namesIn(state.networks, 'network'),
    certificate: namesIn(state.certificates, 'certificate'),
  }
  const account = {
    load_balancers: (state.load_balancers ?? [])
      .map((balancer: Json) => normalLoadBalancer(balancer, names, substitutions))
      .sort(by((x) => x.name)),
    networks: (state.networks ?? []).map(normalNetwork).sort(by((x) => x.name)),
    certificates: (state.certificates ?? []).map(normalCertificate).sort(by((x) => x.name)),
    // A cloud controller leaves servers alone: their names and power state say that it did.
    servers: (state.servers ?? []).map((x: Json) => `${x.name}: ${x.status}`).sort(),
    robot_servers: (state.robot_servers ?? [])
      .map((x: Json) => `${x.server_name}: ${x.operating_status ?? x.status}`)
      .sort(),
  }
  return { account, substitutions }
}

interface Names {
  server: (id: number) => string
  network: (id: number) => string
  certificate: (id: number) => string
}

function namesIn(items: Json[] = [], what: string): (id: number) => string {
  const names = new Map<number, string>(items.map((item) => [item.id, item.name]))
  return (id) => names.get(id) ?? `missing ${what} ${id}`
}

function normalLoadBalancer(balancer: Json, names: Names, substitutions: Substitution[]): Json {
  const { ipv4, ipv6, enabled } = balancer.public_net
  if (ipv4.ip) substitutions.push([ipv4.ip, `{ipv4 of ${balancer.name}}`])
  if (ipv6.ip) substitutions.push([ipv6.ip, `{ipv6 of ${balancer.name}}`])
  return {
    name: balancer.name,
    labels: balancer.labels,
    type: balancer.load_balancer_type.name,
    location: balancer.by_zone ? `any in ${balancer.by_zone}` : balancer.location.name,
    network_zone: balancer.location.network_zone,
    algorithm: balancer.algorithm.type,
    protection: balancer.protection.delete || undefined,
    public_net: {
      enabled,
      ipv4_dns_ptr: orDefault(ipv4.dns_ptr, balancer.default_dns_ptr?.ipv4),
      ipv6_dns_ptr: orDefault(ipv6.dns_ptr, balancer.default_dns_ptr?.ipv6),
    },
    private_net: balancer.private_net
      .map((attachment: Json) => {
        const network = names.network(attachment.network)
        // An address that nobody asked for may be another one in each run.
        if (!attachment.requested_ip) {
          substitutions.push([attachment.ip, `{private ip of ${balancer.name} in ${network}}`])
        }
        return { network, ip: attachment.ip, subnet: attachment.subnet }
      })
      .sort(by((x) => x.network)),
    services: balancer.services
      .map((service: Json) => ({ ...service, http: normalHttp(service.http, names) }))
      .sort(by((x) => x.listen_port)),
    targets: balancer.targets
      .map((target: Json) => normalTarget(target, names))
      .sort(by((x) => `${x.type} ${x.server ?? x.ip ?? x.selector}`)),
  }
}

function normalHttp(http: Json, names: Names): Json {
  return http ? { ...http, certificates: (http.certificates ?? []).map(names.certificate).sort() } : undefined
}

function normalTarget(target: Json, names: Names): Json {
  const { type, use_private_ip } = target
  if (type === 'server') return { type, server: names.server(target.server.id), use_private_ip }
  if (type === 'ip') return { type, ip: target.ip.ip, use_private_ip: use_private_ip || undefined }
  return { type: 'label_selector', selector: target.label_selector.selector, use_private_ip }
}

function normalNetwork({ name, ip_range, labels, protection, subnets, routes }: Json): Json {
  return {
    name,
    ip_range,
    labels,
    protection: protection?.delete || undefined,
    subnets: subnets
      .map((subnet: Json) => ({ type: subnet.type, ip_range: subnet.ip_range, network_zone: subnet.network_zone }))
      .sort(by((x) => x.ip_range)),
    routes: [...routes].sort(by((x) => x.destination)),
  }
}

function normalCertificate({ name, type, labels, domain_names, status }: Json): Json {
  return { name, type, labels, domain_names, status: status?.issuance }
}

function orDefault(value: Json, cloudsOwn: Json): Json {
  return value === cloudsOwn || value === null || value === '' || value === undefined ? 'default' : value
}

function by(key: (item: Json) => unknown): (a: Json, b: Json) => number {
  return (a, b) => String(key(a)).localeCompare(String(key(b)), 'en', { numeric: true })
}
