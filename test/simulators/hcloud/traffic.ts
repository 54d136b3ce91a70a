import { isPrivateAddress } from './cidr.ts'
import type { Cloud } from './cloud.ts'
import { parseSelector } from './label-selector.ts'
import type { LoadBalancer, Server } from './model.ts'

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
    for (const lb of this.#cloud.loadBalancers) {
      if (!reachableTargets(this.#cloud, lb)) continue
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

export function reachableTargets(cloud: Cloud, lb: LoadBalancer): number {
  return lb.targets.filter((target) => {
    if (target.type === 'ip') return isPrivateAddress(target.ip.ip) ? lb.private_net.length > 0 : lb.public_net.enabled
    return matching(cloud, target).some((server) => isReachable(lb, server, target.use_private_ip))
  }).length
}

function matching(cloud: Cloud, target: Exclude<LoadBalancer['targets'][number], { type: 'ip' }>): Server[] {
  if (target.type === 'server') return cloud.servers.filter((server) => server.id === target.server.id)
  const selects = parseSelector(target.label_selector.selector)
  return cloud.servers.filter((server) => selects?.(server.labels))
}

function isReachable(lb: LoadBalancer, server: Server, privately: boolean): boolean {
  if (server.status !== 'running') return false
  if (!privately) return lb.public_net.enabled && server.ipv4 !== null
  return server.private_net.some((net) => lb.private_net.some((own) => own.network === net.network))
}
