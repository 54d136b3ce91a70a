import { pino } from 'pino'
import type { Call } from '../../../src/call.ts'
import { createHcloudProvider, type HcloudProviderOptions } from '../../../src/cloud/hcloud/provider.ts'
import type { Applied, CloudProvider, LoadBalancers } from '../../../src/cloud/provider.ts'
import type { HcloudLoadBalancerDefaults, HcloudSettings, RobotSettings } from '../../../src/config/types.ts'
import type { NodeProjection, ServiceProjection } from '../../../src/events/projection.ts'
import { type HcloudSimulator, startHcloudSimulator } from '../../simulators/hcloud/simulator.ts'

export const TOKEN = 'k'.repeat(64)
export const PREFIX = 'load-balancer.hetzner.cloud/'
export const log = pino({ level: 'silent' })

export interface Bench {
  simulator: HcloudSimulator
  provider: CloudProvider
  loadBalancers: LoadBalancers
  call: Call
  /** What `beforeWrite` was told, in order. */
  writes: string[]
  settings(more?: Partial<HcloudSettings>): HcloudSettings
  /** Another provider of the same account, as another worker would have. */
  worker(options?: Partial<HcloudProviderOptions>): CloudProvider
  /** Plans and applies; notes of both. */
  run(service: ServiceProjection, nodes: NodeProjection[]): Promise<Applied>
  /** As `run`, but throws the first fault. */
  ensure(service: ServiceProjection, nodes: NodeProjection[]): Promise<Applied>
  plan(service: ServiceProjection, nodes: NodeProjection[]): Promise<string[]>
  remove(service: ServiceProjection): Promise<void>
  /** Requests since the last call, `GET /servers: 2`. */
  calls(): Record<string, number>
  close(): Promise<void>
}

export const defaults: HcloudLoadBalancerDefaults = {
  enabled: true,
  location: 'fsn1',
  type: 'lb11',
  disablePrivateIngress: false,
  disableIpv6: false,
  usePrivateIp: false,
}

export const secret = (name: string, value: string) => ({ name, read: () => value })

export function robotSettings(simulator: HcloudSimulator, more: Partial<RobotSettings> = {}): RobotSettings {
  return {
    user: secret('ROBOT_USER', 'robot'),
    password: secret('ROBOT_PASSWORD', 'secret'),
    endpoint: simulator.robotUrl,
    cacheTimeoutMs: 300_000,
    rateLimitWaitTimeMs: 0,
    forwardInternalIps: true,
    ...more,
  }
}

export interface BenchOptions {
  account?: Record<string, unknown>
  settings?: Partial<HcloudSettings>
  robot?: Partial<RobotSettings>
  loadBalancers?: Partial<HcloudLoadBalancerDefaults>
  options?: Record<string, unknown>
  provider?: Partial<HcloudProviderOptions>
}

/** A provider on a simulator of its own. */
export async function bench(given: BenchOptions = {}): Promise<Bench> {
  const simulator = await startHcloudSimulator({ token: TOKEN, options: { action_ms: 0, ...given.options } })
  simulator.control.seed(given.account ?? {})
  const writes: string[] = []
  const call = callOf({ writes })
  const settings = (more: Partial<HcloudSettings> = {}): HcloudSettings => ({
    token: secret('HCLOUD_TOKEN', TOKEN),
    endpoint: simulator.apiUrl,
    metadataEndpoint: simulator.metadataUrl,
    debug: false,
    networkDisableAttachedCheck: true,
    networkRoutesEnabled: true,
    addressFamily: 'ipv4',
    zoneLabelEnabled: true,
    serverCacheMode: 'all',
    serverCacheMaxAgeMs: 10_000,
    loadBalancers: { ...defaults, ...given.loadBalancers },
    ...(given.robot ? { robot: robotSettings(simulator, given.robot) } : {}),
    ...given.settings,
    ...more,
  })
  const providers: CloudProvider[] = []
  const worker = (options: Partial<HcloudProviderOptions> = {}) => {
    const provider = createHcloudProvider({ settings: settings(), prefix: 'test', log, ...given.provider, ...options })
    providers.push(provider)
    return provider
  }
  const provider = worker()
  let counted: Record<string, number> = {}
  const run = async (service: ServiceProjection, nodes: NodeProjection[]): Promise<Applied> => {
    const plan = await loadBalancers.plan(service, nodes, call)
    const applied = await loadBalancers.apply(plan, call)
    return { ...applied, notes: [...plan.notes, ...applied.notes] }
  }
  const loadBalancers = provider.loadBalancers as LoadBalancers
  return {
    simulator,
    provider,
    loadBalancers,
    call,
    writes,
    settings,
    worker,
    run,
    async ensure(service, nodes) {
      const applied = await run(service, nodes)
      if (applied.faults[0]) throw applied.faults[0]
      return applied
    },
    plan: async (service, nodes) =>
      (await loadBalancers.plan(service, nodes, call)).changes.map(({ summary }) => summary),
    async remove(service) {
      await loadBalancers.applyDeletion(await loadBalancers.planDeletion(service, call), call)
    },
    calls() {
      const now = { ...simulator.control.counters().calls }
      const fresh = Object.fromEntries(
        Object.entries(now).flatMap(([key, count]) => {
          const more = count - (counted[key] ?? 0)
          return more > 0 ? [[key, more]] : []
        }),
      )
      counted = now
      return fresh
    },
    async close() {
      await Promise.all(providers.map((one) => one.close()))
      await simulator.close()
    },
  }
}

export function callOf(
  more: { writes?: string[]; signal?: AbortSignal; urgency?: Call['urgency']; refuse?: Error } = {},
): Call {
  return {
    signal: more.signal ?? new AbortController().signal,
    urgency: more.urgency ?? 'user',
    log,
    async beforeWrite(what) {
      if (more.refuse) throw more.refuse
      more.writes?.push(what)
    },
  }
}

export function node(name: string, more: Partial<NodeProjection> = {}): NodeProjection {
  return {
    name,
    uid: `uid-${name}`,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    deleting: false,
    labels: {},
    podCidrs: [],
    taints: [],
    addresses: [],
    ready: 'True',
    ...more,
  }
}

/** Nodes `w1` … of servers 1 … */
export const nodes = (...ids: number[]) => ids.map((id) => node(`w${id}`, { providerId: `hcloud://${id}` }))

export const UID = '11111111-2222-3333-4444-555555555555'

export function service(
  annotations: Record<string, string> = {},
  more: Partial<ServiceProjection> = {},
): ServiceProjection {
  return {
    namespace: 'default',
    name: 'web',
    uid: UID,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    deleting: false,
    annotations: Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`${PREFIX}${key}`, value])),
    finalizers: [],
    type: 'LoadBalancer',
    ports: [{ name: 'p80', port: 80, nodePort: 30080 }],
    ipFamilies: ['IPv4'],
    loadBalancerSourceRanges: [],
    externalIps: [],
    ingress: [],
    ...more,
  }
}

/** A load balancer as the simulator shows it, as far as tests look at it. */
export interface LoadBalancerState {
  id: number
  name: string
  labels: Record<string, string>
  load_balancer_type: { name: string }
  location: { name: string }
  algorithm: { type: string }
  protection: { delete: boolean }
  public_net: {
    enabled: boolean
    ipv4: { ip: string; dns_ptr: string | null }
    ipv6: { ip: string; dns_ptr: string | null }
  }
  private_net: { network: number; ip: string; subnet: string }[]
  services: { listen_port: number; destination_port: number; protocol: string; [field: string]: unknown }[]
  targets: { type: string; server?: { id: number }; ip?: { ip: string }; use_private_ip?: boolean }[]
}

export const loadBalancersOf = ({ simulator }: Bench) => simulator.control.state().load_balancers as LoadBalancerState[]

/** The account's only load balancer, or that of the name. */
export function lbOf(bench: Bench, name?: string): LoadBalancerState {
  const [lb, ...others] = loadBalancersOf(bench).filter((one) => name === undefined || one.name === name)
  if (!lb || others.length > 0) throw new Error(`${lb ? 'several' : 'no'} load balancers`)
  return lb
}

/** Targets by name, sorted: `server 1`, `server 2 private`, `ip 203.0.113.9`. */
export const targetsOf = (lb: LoadBalancerState) =>
  lb.targets
    .map(({ server, ip, use_private_ip }) =>
      server ? `server ${server.id}${use_private_ip ? ' private' : ''}` : `ip ${ip?.ip}`,
    )
    .sort()

export const servers = (...ids: number[]) => ids.map((id) => ({ id, name: `w${id}` }))
