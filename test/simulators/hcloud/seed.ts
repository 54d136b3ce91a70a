import * as catalog from './catalog.ts'
import { type Cloud, spare, subnetOf } from './cloud.ts'
import { blank } from './load-balancer/create.ts'
import { merge, type ServiceBody } from './load-balancer/service.ts'
import type {
  Certificate,
  LoadBalancer,
  LoadBalancerType,
  Location,
  Network,
  RobotServer,
  Server,
  Target,
} from './model.ts'
import { gatewayOf, pointer } from './views.ts'

type Given = Record<string, unknown>

/** How one kind of resource is made from, and changed by, API-like JSON in which names stand for ids. */
interface Kind {
  all: (cloud: Cloud) => Given[]
  create: (cloud: Cloud, given: Given) => void
  set: (cloud: Cloud, item: Given, given: Given) => void
  remove: (cloud: Cloud, item: Given) => void
}

const kinds: Record<string, Kind> = {
  locations: kind<Location>(
    (cloud) => cloud.locations,
    (cloud, given) => catalog.location(cloud.locations.length + 1, given as { name: string }),
    {},
    true,
  ),
  load_balancer_types: kind<LoadBalancerType>(
    (cloud) => cloud.loadBalancerTypes,
    (cloud, given) => catalog.loadBalancerType(cloud.loadBalancerTypes.length + 1, given as { name: string }),
    {},
    true,
  ),
  networks: kind<Network>((cloud) => cloud.networks, newNetwork, {
    subnets: (_, __, value) => (value as Given[]).map(toSubnet),
  }),
  servers: {
    ...kind<Server>((cloud) => cloud.servers, newServer, {
      location: (cloud, _, value) => named(cloud.locations, value, 'location'),
      server_type: (_, __, value) => catalog.serverType(nameOf(value)),
      private_net: (cloud, server, value) => toPrivateNets(cloud, value as Given[], server.id as number),
      public_net: (_, server, value) => {
        const net = value as { ipv4?: { ip: string } | null; ipv6?: { ip: string } | null }
        if (net.ipv4 !== undefined) server.ipv4 = net.ipv4?.ip ?? null
        if (net.ipv6 !== undefined) server.ipv6 = net.ipv6?.ip ?? null
        return undefined
      },
    }),
    remove: (cloud, item) => cloud.deleteServer(item.id as number),
  },
  certificates: kind<Certificate>((cloud) => cloud.certificates, newCertificate),
  load_balancers: kind<LoadBalancer>((cloud) => cloud.loadBalancers, newLoadBalancer, {
    location: (cloud, _, value) => named(cloud.locations, value, 'location'),
    load_balancer_type: (cloud, _, value) => named(cloud.loadBalancerTypes, value, 'load balancer type'),
    algorithm: (_, __, value) => (typeof value === 'string' ? { type: value } : value),
    services: (cloud, _, value) => (value as Given[]).map((item) => toService(cloud, item)),
    targets: (cloud, _, value) => (value as Given[]).map((item) => toTarget(cloud, item)),
    private_net: (cloud, _, value) => (value as Given[]).map((item) => toAttachment(cloud, item)),
    public_net: (_, lb, value) => ({ ...(lb.public_net as Given), ...(value as Given) }),
  }),
  robot_servers: kind<RobotServer>((cloud) => cloud.robotServers, newRobotServer),
}

const order = Object.keys(kinds)

/** Adds an account's resources. What is left out gets a default. Throws a sentence about what it does not understand. */
export function seed(cloud: Cloud, account: Given): void {
  for (const key of Object.keys(account)) {
    if (!order.includes(key) && key !== 'metadata') throw new Error(`account: unknown key ${key}`)
  }
  for (const key of order) for (const given of (account[key] as Given[]) ?? []) kinds[key]?.create(cloud, given)
  setMetadata(cloud, account)
  cloud.touch()
}

/** Changes the account behind the API's back: {KIND: [{create} | {NAME, delete: true} | {NAME, set}]}. */
export function mutate(cloud: Cloud, patch: Given): void {
  for (const key of Object.keys(patch)) {
    if (!order.includes(key) && !['metadata', 'actions', 'options'].includes(key)) {
      throw new Error(`mutate: unknown key ${key}`)
    }
  }
  for (const key of order) for (const change of (patch[key] as Given[]) ?? []) applyChange(cloud, key, change)
  for (const { id } of (patch.actions as { id: number }[]) ?? []) cloud.actions.release(id)
  Object.assign(cloud.options, patch.options)
  setMetadata(cloud, patch)
  cloud.touch()
}

function applyChange(cloud: Cloud, key: string, change: Given): void {
  const own = kinds[key] as Kind
  if (change.create) {
    own.create(cloud, change.create as Given)
    return
  }
  const identity = ['id', 'name', 'server_number', 'server_name'].find((field) => change[field] !== undefined)
  const item = own.all(cloud).find((candidate) => identity && candidate[identity] === change[identity])
  if (!item) throw new Error(`mutate: no such item in ${key}: ${JSON.stringify(change)}`)
  if (change.delete === true) own.remove(cloud, item)
  else own.set(cloud, item, change.set as Given)
}

function kind<T extends object>(
  all: (cloud: Cloud) => T[],
  make: (cloud: Cloud, given: Given) => T,
  readers: Record<string, (cloud: Cloud, item: Given, value: unknown) => unknown> = {},
  replaces = false,
): Kind {
  const set = (cloud: Cloud, item: Given, given: Given): void => {
    for (const [key, value] of Object.entries(given)) {
      if (!(key in item) && !(key in readers)) throw new Error(`account: unknown field ${key}`)
      const read = readers[key] ? readers[key](cloud, item, value) : value
      if (read !== undefined) item[key] = read
    }
  }
  return {
    all: all as unknown as Kind['all'],
    set,
    create: (cloud, given) => {
      const known = replaces ? (all(cloud) as Given[]).find((other) => other.name === given.name) : undefined
      if (known) {
        set(cloud, known, given)
        return
      }
      const item = make(cloud, given) as Given
      set(cloud, item, given)
      const clash = (all(cloud) as Given[]).find((other) => other.id !== undefined && other.id === item.id)
      if (clash) throw new Error(`account: id ${item.id} is used twice`)
      all(cloud).push(item as T)
    },
    remove: (cloud, item) => {
      const items = all(cloud)
      items.splice(items.indexOf(item as T), 1)
    },
  }
}

function newServer(cloud: Cloud, given: Given): Server {
  const n = ++cloud.serversSeen
  return {
    id: cloud.nextId(),
    name: String(given.name),
    status: 'running',
    created: '2026-01-01T00:00:00Z',
    labels: {},
    location: named(cloud.locations, 'fsn1', 'location'),
    server_type: catalog.serverType('cx22'),
    ipv4: n < 255 ? `198.51.100.${n}` : spare('198.18.0.0', n),
    ipv6: `2001:db8:${n.toString(16)}::/64`,
    private_net: [],
    protection: { delete: false, rebuild: false },
  }
}

function newNetwork(cloud: Cloud, given: Given): Network {
  return {
    id: cloud.nextId(),
    name: String(given.name),
    ip_range: '10.0.0.0/8',
    subnets: [],
    routes: [],
    labels: {},
    protection: { delete: false },
    created: '2026-01-01T00:00:00Z',
  }
}

function newCertificate(cloud: Cloud, given: Given): Certificate {
  const managed = given.type === 'managed'
  return {
    id: cloud.nextId(),
    name: String(given.name),
    type: 'uploaded',
    labels: {},
    domain_names: ['example.com'],
    created: '2026-01-01T00:00:00Z',
    status: managed ? { issuance: 'completed', renewal: 'scheduled', error: null } : null,
  }
}

function newLoadBalancer(cloud: Cloud, given: Given): LoadBalancer {
  const lb = blank(
    String(given.name),
    named(cloud.loadBalancerTypes, 'lb11', 'load balancer type'),
    named(cloud.locations, 'fsn1', 'location'),
  )
  const { ipv4, ipv6 } = cloud.nextLoadBalancerAddresses()
  lb.id = cloud.nextId()
  lb.public_net = { enabled: true, ipv4: { ip: ipv4, dns_ptr: pointer(ipv4) }, ipv6: { ip: ipv6, dns_ptr: null } }
  return lb
}

function newRobotServer(cloud: Cloud, given: Given): RobotServer {
  const n = ++cloud.robotServersSeen
  return {
    server_number: 320 + n,
    server_name: String(given.server_name),
    server_ip: `203.0.113.${n}`,
    server_ipv6_net: `2001:db8:b0b:${n.toString(16)}::`,
    product: 'AX41-NVMe',
    dc: 'FSN1-DC14',
    status: 'ready',
    operating_status: 'running',
    cancelled: false,
    reset: true,
  }
}

function toSubnet(given: Given): Network['subnets'][number] {
  const ip_range = String(given.ip_range)
  const base = { type: 'cloud' as const, network_zone: 'eu-central', gateway: gatewayOf(ip_range), vswitch_id: null }
  return { ...base, ...given, ip_range }
}

function toPrivateNets(cloud: Cloud, given: Given[], serverId: number): Server['private_net'] {
  return given.map((item) => {
    const network = named(cloud.networks, item.network, 'network')
    const subnet = network.subnets.find((candidate) => candidate.type !== 'vswitch')
    const ip = item.ip ?? (subnet && cloud.freeAddress(network, subnet))
    if (typeof ip !== 'string') throw new Error(`account: no free address in network ${network.name}`)
    const mac = [serverId >> 16, serverId >> 8, serverId].map((byte) => (byte & 255).toString(16).padStart(2, '0'))
    const alias_ips = (item.alias_ips as string[]) ?? []
    return { network: network.id, ip, alias_ips, mac_address: `86:00:00:${mac.join(':')}` }
  })
}

function toAttachment(cloud: Cloud, given: Given): LoadBalancer['private_net'][number] {
  const network = named(cloud.networks, given.network, 'network')
  const usable = network.subnets.find((candidate) => candidate.type !== 'vswitch')
  const ip = (given.ip as string | undefined) ?? (usable && cloud.freeAddress(network, usable))
  if (!ip) throw new Error(`account: no free address in network ${network.name}`)
  const requested = given.ip !== undefined
  return { network: network.id, ip, requested, subnet: subnetOf(network, ip)?.ip_range ?? '' }
}

function toService(cloud: Cloud, given: Given): LoadBalancer['services'][number] {
  const service = merge(undefined, given as ServiceBody)
  if (service.http) {
    service.http.certificates = service.http.certificates.map(
      (certificate) => named(cloud.certificates, certificate, 'certificate').id,
    )
  }
  return service
}

function toTarget(cloud: Cloud, given: Given): Target {
  const use_private_ip = given.use_private_ip === true
  if (given.type === 'ip') {
    return { type: 'ip', ip: typeof given.ip === 'string' ? { ip: given.ip } : (given.ip as { ip: string }) }
  }
  if (given.type === 'label_selector') {
    const label_selector = given.label_selector as { selector: string }
    return { type: 'label_selector', label_selector, use_private_ip }
  }
  return { type: 'server', server: { id: named(cloud.servers, given.server, 'server').id }, use_private_ip }
}

function setMetadata(cloud: Cloud, given: Given): void {
  if (given.metadata !== undefined) cloud.metadataServer = (given.metadata as { server?: string }).server
}

function named<T extends { id: number; name: string }>(all: T[], wanted: unknown, what: string): T {
  const key = typeof wanted === 'object' && wanted !== null ? Object.values(wanted)[0] : wanted
  const found = all.find((item) => item.name === key || item.id === key)
  if (!found) throw new Error(`account: ${what} ${JSON.stringify(wanted)} does not exist`)
  return found
}

function nameOf(value: unknown): string {
  return typeof value === 'string' ? value : String((value as { name: string }).name)
}
