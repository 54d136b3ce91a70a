import { isPrivateAddress } from './cidr.ts'
import type { Cloud } from './cloud.ts'
import { parseSelector } from './label-selector.ts'
import type { LoadBalancer, Server, Target } from './model.ts'

/** A listener that had a reachable target, and then none, or was itself gone. */
export interface TrafficGap {
  load_balancer: string
  listen_port: number
  /** ms since epoch */
  from: number
  /** null: never served again */
  until: number | null
}

/** Looks after every change which listeners could serve, so that a test can prove an order of changes harmless. */
export class TrafficWatch {
  readonly gaps: TrafficGap[] = []
  #cloud: Cloud
  #serving = new Map<string, { name: string; port: number }>()
  #open = new Map<string, TrafficGap>()

  constructor(cloud: Cloud) {
    this.#cloud = cloud
  }

  look(): void {
    const now = new Map<string, { name: string; port: number }>()
    const servers = new Map(this.#cloud.servers.map((server) => [server.id, server]))
    for (const lb of this.#cloud.loadBalancers) {
      if (!hasReachableTarget(servers, lb)) continue
      for (const service of lb.services) {
        now.set(`${lb.id} ${service.listen_port}`, { name: lb.name, port: service.listen_port })
      }
    }
    for (const [key, { name, port }] of this.#serving) {
      if (now.has(key)) continue
      const gap: TrafficGap = { load_balancer: name, listen_port: port, from: Date.now(), until: null }
      this.gaps.push(gap)
      this.#open.set(key, gap)
    }
    for (const key of now.keys()) {
      const gap = this.#open.get(key)
      if (gap) gap.until = Date.now()
      this.#open.delete(key)
    }
    this.#serving = now
  }
}

function hasReachableTarget(servers: Map<number, Server>, lb: LoadBalancer): boolean {
  return lb.targets.some((target) => {
    if (target.type === 'ip') return isPrivateAddress(target.ip.ip) ? lb.private_net.length > 0 : lb.public_net.enabled
    return matching(servers, target).some((server) => isReachable(lb, server, target.use_private_ip))
  })
}

function matching(servers: Map<number, Server>, target: Exclude<Target, { type: 'ip' }>): Server[] {
  if (target.type === 'server') return [servers.get(target.server.id)].filter((server) => server !== undefined)
  const selects = parseSelector(target.label_selector.selector)
  return [...servers.values()].filter((server) => selects?.(server.labels))
}

function isReachable(lb: LoadBalancer, server: Server, privately: boolean): boolean {
  if (server.status !== 'running') return false
  if (!privately) return lb.public_net.enabled && server.ipv4 !== null
  return server.private_net.some((net) => lb.private_net.some((own) => own.network === net.network))
}
