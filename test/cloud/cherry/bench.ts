import { createHash } from 'node:crypto'
import { pino } from 'pino'
import type { Test } from 'tap'
import type { Call } from '../../../src/call.ts'
import { type CherryProviderOptions, createCherryProvider } from '../../../src/cloud/cherry/provider.ts'
import type { Announcement, Applied, CloudProvider, LoadBalancers } from '../../../src/cloud/provider.ts'
import type { CherrySettings } from '../../../src/config/types.ts'
import type { NodeProjection, ServiceProjection } from '../../../src/events/projection.ts'
import { type CherrySimulator, startCherrySimulator } from '../../simulators/cherry/simulator.ts'

export const PROJECT = 87553
export const KEY = 'cherry-token'
export const CLUSTER_UID = 'c1c1c1c1-0000-0000-0000-000000000000'
export const UID = '11111111-2222-3333-4444-555555555555'
export const KUBE_VIP = 'kube-vip.io/loadbalancerIPs'

export interface Bench {
  simulator: CherrySimulator
  settings: CherrySettings
  provider: CloudProvider
  loadBalancers: LoadBalancers
  call: Call
  /** What `beforeWrite` was told, in order. */
  writes: string[]
  /** Another provider of the same account, as another worker would have. */
  worker(options?: Partial<CherryProviderOptions>): CloudProvider
  ensure(service: ServiceProjection, nodes?: NodeProjection[]): Promise<Applied>
  summaries(service: ServiceProjection, nodes?: NodeProjection[]): Promise<string[]>
  remove(service: ServiceProjection): Promise<void>
  floating(): { id: string; address: string; tags: Record<string, string>; target_server_id: number }[]
  /** Requests since the last call, by label. */
  calls(): Record<string, number>
}

const server = (n: number) => ({
  id: 383530 + n,
  hostname: `worker-${n}`,
  region: 'LT-Siauliai',
  plan: 'e5_1620v4',
  ip_addresses: [
    { address: `5.199.160.3${n}`, type: 'primary-ip' },
    { address: `10.168.0.3${n}`, type: 'private-ip' },
  ],
})

export const twoServers = { servers: [server(1), server(2)] }

/** A provider on a simulator of its own, without the pace of the real API. */
export async function bench(
  t: Test,
  given: {
    account?: Record<string, unknown>
    settings?: Partial<CherrySettings>
    options?: Record<string, unknown>
  } = {},
): Promise<Bench> {
  const simulator = await startCherrySimulator({ token: KEY, options: given.options ?? {} })
  await simulator.control.seed({ projects: [{ id: PROJECT, name: 'lab' }], ...(given.account ?? twoServers) })
  const settings: CherrySettings = {
    apiKey: { name: 'CHERRY_API_KEY', read: () => KEY },
    projectId: PROJECT,
    apiUrl: simulator.apiUrl.replace(/\/$/, ''),
    region: 'LT-Siauliai',
    loadBalancer: 'kube-vip://',
    annotations: {
      localAsn: 'cherryservers.com/bgp-peers-{{n}}-node-asn',
      peerAsn: 'cherryservers.com/bgp-peers-{{n}}-peer-asn',
      peerIp: 'cherryservers.com/bgp-peers-{{n}}-peer-ip',
      srcIp: 'cherryservers.com/bgp-peers-{{n}}-src-ip',
      multiHop: 'cherryservers.com/bgp-peers-{{n}}-peer-multi-hop',
      fipRegion: 'cherryservers.com/fip-region',
    },
    apiServerPort: 0,
    fipHealthCheckUseHostIp: false,
    ...given.settings,
  }
  const providers: CloudProvider[] = []
  const writes: string[] = []
  const call = callOf({ writes })
  const worker = (options: Partial<CherryProviderOptions> = {}) => {
    const provider = createCherryProvider({
      settings,
      prefix: 'test',
      clusterUid: async () => CLUSTER_UID,
      pace: () => ({ take: async () => {}, block: async () => {} }),
      ...options,
    })
    providers.push(provider)
    return provider
  }
  const provider = worker()
  const loadBalancers = provider.loadBalancers as LoadBalancers
  let counted: Record<string, number> = {}
  t.teardown(async () => {
    await Promise.all(providers.map((one) => one.close()))
    await simulator.close()
  })
  return {
    simulator,
    settings,
    provider,
    loadBalancers,
    call,
    writes,
    worker,
    async ensure(service, nodes = workers(1, 2)) {
      return await loadBalancers.apply(await loadBalancers.plan(service, nodes, call), call)
    },
    summaries: async (service, nodes = workers(1, 2)) =>
      (await loadBalancers.plan(service, nodes, call)).changes.map(({ summary }) => summary),
    async remove(service) {
      await loadBalancers.applyDeletion(await loadBalancers.planDeletion(service, call), call)
    },
    floating: () =>
      (simulator.control.state().ips as unknown as (ReturnType<Bench['floating']>[number] & { type: string })[]).filter(
        ({ type }) => type === 'floating-ip',
      ),
    calls() {
      const now = { ...simulator.control.counters().calls }
      const fresh = Object.entries(now).map(([key, count]) => [key, count - (counted[key] ?? 0)] as const)
      counted = now
      return Object.fromEntries(fresh.filter(([, count]) => count > 0))
    },
  }
}

export function callOf(more: { writes?: string[]; urgency?: Call['urgency']; signal?: AbortSignal } = {}): Call {
  return {
    signal: more.signal ?? new AbortController().signal,
    urgency: more.urgency ?? 'user',
    log: pino({ level: 'silent' }),
    async beforeWrite(what) {
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
    labels: { 'kubernetes.io/hostname': name },
    podCidrs: [],
    taints: [],
    addresses: [],
    ready: 'True',
    ...more,
  }
}

/** Nodes `worker-1` … of the bench's servers. */
export const workers = (...numbers: number[]) =>
  numbers.map((n) => node(`worker-${n}`, { providerId: `cherryservers://${383530 + n}` }))

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
    annotations,
    finalizers: [],
    type: 'LoadBalancer',
    ports: [{ port: 80, nodePort: 30080 }],
    ipFamilies: ['IPv4'],
    loadBalancerSourceRanges: [],
    externalIps: [],
    ingress: [],
    ...more,
  }
}

/** The Service as it is once a run has ended: status and annotations as they were asked for. */
export function after(given: ServiceProjection, { ingress, announcement }: Applied): ServiceProjection {
  const annotations = { ...given.annotations }
  for (const [key, value] of Object.entries(wished(announcement)))
    if (value === null) delete annotations[key]
    else annotations[key] = value
  return { ...given, annotations, ingress }
}

const wished = (announcement: Announcement | undefined) => announcement?.serviceAnnotations ?? {}

export const tags = (name = 'default/web', more: Record<string, string> = {}) => ({
  cluster: CLUSTER_UID,
  service: createHash('sha256').update(name).digest('base64'),
  usage: 'cloud-provider-cherry-auto',
  ...more,
})

/** An error of ours, by its kind. */
export const ofKind = (kind: string) => ({ name: 'WindlassError', kind })
