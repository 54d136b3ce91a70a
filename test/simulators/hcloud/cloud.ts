import { ActionBook } from './actions.ts'
import * as catalog from './catalog.ts'
import { holds, ipv4Number, ipv4Text, parseRange } from './cidr.ts'
import {
  type Certificate,
  defaultOptions,
  type LoadBalancer,
  type Network,
  type Options,
  type RobotServer,
  type Server,
  type Subnet,
} from './model.ts'
import { TrafficWatch } from './traffic.ts'

/** One project of the cloud together with one Robot account: all state that the simulator has. */
export class Cloud {
  readonly options: Options
  readonly actions: ActionBook
  readonly traffic: TrafficWatch
  /** raised by every change */
  revision = 0
  readonly locations = catalog.locations()
  readonly loadBalancerTypes = catalog.loadBalancerTypes()
  servers: Server[] = []
  networks: Network[] = []
  loadBalancers: LoadBalancer[] = []
  certificates: Certificate[] = []
  robotServers: RobotServer[] = []
  /** the server on which whoever asks the metadata service runs */
  metadataServer: string | undefined
  serversSeen = 0
  robotServersSeen = 0
  #lastId = 4_000_000
  #loadBalancersSeen = 0
  #hiddenUntil = new WeakMap<object, number>()

  constructor(options: Partial<Options>) {
    this.options = { ...defaultOptions, ...options }
    this.traffic = new TrafficWatch(this)
    this.actions = new ActionBook(() => this.touch())
  }

  get inFlight(): number {
    return this.actions.inFlight
  }

  touch(): void {
    this.revision++
    this.traffic.look()
  }

  nextId(): number {
    return ++this.#lastId
  }

  /** Lists leave the resource out for so long, ms; reads by id and name clashes know it at once. */
  hideFromLists(resource: object, ms: number): void {
    if (ms > 0) this.#hiddenUntil.set(resource, Date.now() + ms)
  }

  isListed(resource: object): boolean {
    return Date.now() >= (this.#hiddenUntil.get(resource) ?? 0)
  }

  nextLoadBalancerAddresses(): { ipv4: string; ipv6: string } {
    const n = ++this.#loadBalancersSeen
    return { ipv4: n < 255 ? `192.0.2.${n}` : spare('198.19.0.0', n), ipv6: `2001:db8:ffff::${n.toString(16)}` }
  }

  /** A free address of the subnet: neither network, gateway nor broadcast, nor anybody's. */
  freeAddress(network: Network, subnet: Subnet): string | undefined {
    const range = parseRange(subnet.ip_range)
    if (!range) return undefined
    const used = this.usedAddresses(network)
    for (let address = range.first + 2; address < range.last; address++) {
      const text = ipv4Text(address)
      if (!used.has(text)) return text
    }
    return undefined
  }

  isFreeAddress(network: Network, ip: string): boolean {
    const address = ipv4Number(ip)
    const subnet = subnetOf(network, ip)
    if (address === undefined || !subnet || subnet.type === 'vswitch') return false
    const range = parseRange(subnet.ip_range)
    if (!range || address < range.first + 2 || address >= range.last) return false
    return !this.usedAddresses(network).has(ip)
  }

  usedAddresses(network: Network): Set<string> {
    const ofServers = this.servers.flatMap((server) =>
      server.private_net.filter((net) => net.network === network.id).flatMap((net) => [net.ip, ...net.alias_ips]),
    )
    const ofLoadBalancers = this.loadBalancers.flatMap((lb) =>
      lb.private_net.filter((net) => net.network === network.id).map((net) => net.ip),
    )
    return new Set([...ofServers, ...ofLoadBalancers])
  }

  deleteServer(id: number): void {
    this.servers = this.servers.filter((server) => server.id !== id)
    for (const lb of this.loadBalancers) {
      lb.targets = lb.targets.filter((target) => target.type !== 'server' || target.server.id !== id)
    }
  }
}

export function subnetOf(network: Network, ip: string): Subnet | undefined {
  const address = ipv4Number(ip)
  if (address === undefined) return undefined
  return network.subnets.find((subnet) => {
    const range = parseRange(subnet.ip_range)
    return range !== undefined && holds(range, address)
  })
}

/** The n-th address of a range that documentation and benchmarks may use. */
export function spare(base: string, n: number): string {
  return ipv4Text((ipv4Number(base) ?? 0) + n)
}
