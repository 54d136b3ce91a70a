import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../src/call.ts'
import { createKubernetesApi, type KubernetesApi } from '../../src/kubernetes/api.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import type { KubeNode, KubeService } from '../../src/kubernetes/objects.ts'
import { EVENTS, type KubeEvent, NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import type { Role } from '../apiserver/roles.ts'
import { startApiServer } from '../apiserver/start.ts'
import { installMetallb } from '../e2e/clouds/cherry-cluster.ts'
import { type RedisFixture, startRedis } from '../redis.ts'
import type { Options as CherryOptions } from '../simulators/cherry/model.ts'
import { type CherrySimulator, startCherrySimulator } from '../simulators/cherry/simulator.ts'
import type { Options } from '../simulators/hcloud/model.ts'
import { type HcloudSimulator, startHcloudSimulator } from '../simulators/hcloud/simulator.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'

export type KubernetesFlavour = 'simulator' | 'apiserver'

export type Cloud = 'hcloud' | 'cherry'

export interface WorldOptions {
  kubernetes?: KubernetesFlavour
  /** Those that Windlass has credentials for; Hetzner alone if left out. With Cherry the cluster has MetalLB's kinds. */
  clouds?: readonly Cloud[]
  hcloud?: Partial<Options>
  cherry?: Partial<CherryOptions>
}

/** A cluster, a cloud account and Redis, and Windlass' processes between them: everything but the machines themselves. */
export interface World {
  readonly flavour: KubernetesFlavour
  /** All rights. */
  readonly api: KubernetesApi
  readonly call: Call
  readonly hcloud: HcloudSimulator
  /** Throws in a world without it. */
  readonly cherry: CherrySimulator
  readonly redis: RedisFixture
  readonly dir: string
  /** Path of a kubeconfig with just the rights of the role. */
  kubeconfigFor(role: Role): string
  /** Environment that the roles share. */
  readonly env: Record<string, string>
  /** Starts `windlass <command>`; `env` adds to the common one, undefined takes away. */
  start(command: string, options?: { args?: string[]; env?: Record<string, string | undefined> }): WindlassProcess
  addNode(name: string, extra?: Partial<NodeSpec>): Promise<void>
  addService(name: string, spec?: ServiceSpec): Promise<KubeService>
  /** The cloud account as it is. */
  account(): Promise<Account>
  nodes(): Promise<KubeNode[]>
  /** Whether a node lacks a label. One small answer, so that asking often does not disturb what is measured. */
  anyNodeWithout(label: string): Promise<boolean>
  services(): Promise<KubeService[]>
  events(): Promise<KubeEvent[]>
  stop(): Promise<void>
}

export interface Account {
  servers: { id: number; name: string; status: string }[]
  load_balancers: {
    id: number
    name: string
    labels: Record<string, string>
    services: { listen_port: number; destination_port: number }[]
    targets: { type: string; server?: { id: number } }[]
  }[]
}

export interface NodeSpec {
  labels: Record<string, string>
  annotations: Record<string, string>
  providerID: string
  podCIDR: string
  /** Container images in the status: a real node lists many. */
  images: number
}

export interface ServiceSpec {
  annotations?: Record<string, string>
  ports?: { name: string; port: number; nodePort?: number; protocol?: string }[]
  namespace?: string
  loadBalancerClass?: string
}

export const HCLOUD_TOKEN = 'k'.repeat(64)
export const CHERRY_PROJECT = 87553
const CHERRY_KEY = 'cherry-token'
export const DASHBOARD = { user: 'operator', password: 'windlass-demo' }
const WEBHOOK_KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const ROOT = join(import.meta.dirname, '..', '..')

/** By the environment, so that one suite runs on both; the simulator where nothing is said. */
export const flavourOfRun = (): KubernetesFlavour =>
  process.env.WINDLASS_TEST_KUBERNETES === 'apiserver' ? 'apiserver' : 'simulator'

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const { kubernetes = flavourOfRun(), clouds = ['hcloud'] } = options
  const dir = mkdtempSync(join(tmpdir(), 'windlass-world-'))
  const processes = new Set<WindlassProcess>()
  const withCherry = clouds.includes('cherry')
  const [cluster, redis, hcloud, cherry] = await Promise.all([
    startCluster(kubernetes, dir, withCherry),
    startRedis(),
    startHcloudSimulator({ token: HCLOUD_TOKEN, options: options.hcloud }),
    withCherry ? startCherrySimulator({ token: CHERRY_KEY, options: options.cherry }) : undefined,
  ])
  await cherry?.control.seed({ projects: [{ id: CHERRY_PROJECT, name: 'lab' }] })
  const log = createLogger({ level: 'silent' })
  const connection = await connect({ kubeconfig: [cluster.adminKubeconfig] }, log)
  const api = createKubernetesApi(connection)
  const call: Call = { signal: new AbortController().signal, urgency: 'user', log, beforeWrite: async () => {} }
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '/',
    // As in the image: what was compiled once is not compiled again.
    NODE_COMPILE_CACHE: join(tmpdir(), 'windlass-compile-cache'),
    ...passedOn('NODE_OPTIONS'),
    WINDLASS_REDIS_URL: redis.url,
    WINDLASS_LISTEN: '127.0.0.1:0',
    WINDLASS_WEBHOOK_KEYS: WEBHOOK_KEY,
    WINDLASS_DASHBOARD_USER: DASHBOARD.user,
    WINDLASS_DASHBOARD_PASSWORD: DASHBOARD.password,
    ...(clouds.includes('hcloud') ? hcloudEnv(hcloud) : {}),
    ...(cherry ? cherryEnv(cherry) : {}),
  }
  return {
    flavour: kubernetes,
    api,
    call,
    hcloud,
    get cherry() {
      if (!cherry) throw new Error('this world has no Cherry')
      return cherry
    },
    redis,
    dir,
    env,
    kubeconfigFor: cluster.kubeconfigFor,
    start(command, { args = [], env: more = {} } = {}) {
      const role = command === 'forwarder' || command === 'worker' ? command : 'all'
      const KUBECONFIG = cluster.kubeconfigFor(role)
      const started = startProcess(command, args, { ...env, KUBECONFIG, ...more }, dir)
      processes.add(started)
      return started
    },
    async addNode(name, extra = {}) {
      const { node, status } = nodeManifest(name, extra)
      await api.create(NODES, node, call)
      await api.patch(NODES, { name }, { type: 'merge', subresource: 'status', body: { status } }, call)
    },
    addService(name, { annotations = {}, namespace = 'default', ports, loadBalancerClass } = {}) {
      const spec = {
        type: 'LoadBalancer',
        ...(loadBalancerClass === undefined ? {} : { loadBalancerClass }),
        selector: { app: name },
        ports: ports ?? [
          { name: 'http', port: 80 },
          { name: 'https', port: 443 },
        ],
      }
      return api.create(SERVICES, { metadata: { name, namespace, annotations }, spec }, call)
    },
    async account() {
      const { servers = [], load_balancers = [] } = (await hcloud.control.state()) as Partial<Account>
      return { servers, load_balancers }
    },
    nodes: async () => (await api.list(NODES, {}, call)).items,
    async anyNodeWithout(label) {
      const query = { labelSelector: `!${label}`, limit: '1' }
      const answer = await connection.request({ method: 'GET', path: '/api/v1/nodes', query, timeoutMs: 15_000 })
      return (JSON.parse(answer.body.toString()) as { items: unknown[] }).items.length > 0
    },
    services: async () =>
      (await api.list(SERVICES, {}, call)).items.filter((one) => one.metadata.name !== 'kubernetes'),
    events: async () => (await api.list(EVENTS, {}, call)).items,
    async stop() {
      await Promise.all([...processes].map((one) => one.end()))
      connection.close()
      await Promise.allSettled([cluster.stop(), redis.stop(), hcloud.close(), cherry?.close()])
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const hcloudEnv = (hcloud: HcloudSimulator) => ({
  HCLOUD_TOKEN,
  HCLOUD_ENDPOINT: hcloud.apiUrl,
  HCLOUD_METADATA_ENDPOINT: hcloud.metadataUrl,
  // Its default address is a fixed one.
  HCLOUD_METRICS_ENABLED: 'false',
  HCLOUD_LOAD_BALANCERS_LOCATION: 'fsn1',
  HCLOUD_LOAD_BALANCERS_TYPE: 'lb11',
})

const cherryEnv = (cherry: CherrySimulator) => ({
  CHERRY_API_KEY: CHERRY_KEY,
  CHERRY_PROJECT_ID: String(CHERRY_PROJECT),
  CHERRY_API_URL: cherry.apiUrl,
  CHERRY_REGION_NAME: 'LT-Siauliai',
  CHERRY_LOAD_BALANCER: 'metallb:///',
})

/** Settings of Node itself, e.g. for a profile. */
const passedOn = (...names: string[]) =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))

async function startCluster(flavour: KubernetesFlavour, dir: string, withMetallb: boolean) {
  if (flavour === 'apiserver') {
    const server = await startApiServer()
    if (withMetallb) await installMetallb(server.admin)
    return {
      adminKubeconfig: server.adminKubeconfig(join(dir, 'admin.kubeconfig')),
      kubeconfigFor: server.kubeconfigFor,
      stop: server.stop,
    }
  }
  const simulator = await startKubernetesSimulator({ kinds: withMetallb ? METALLB : [] })
  if (withMetallb) simulator.create('namespaces', { metadata: { name: 'metallb-system' } })
  const path = join(dir, 'simulator.kubeconfig')
  writeFileSync(path, simulator.kubeconfig)
  return { adminKubeconfig: path, kubeconfigFor: () => path, stop: async () => void (await simulator.close()) }
}

const METALLB = [
  { version: 'v1beta1', plural: 'ipaddresspools', kind: 'IPAddressPool' },
  { version: 'v1beta2', plural: 'bgppeers', kind: 'BGPPeer' },
  { version: 'v1beta1', plural: 'bgpadvertisements', kind: 'BGPAdvertisement' },
].map((kind) => ({ ...kind, group: 'metallb.io', namespaced: true }))

/** A process of Windlass with its log. */
export interface WindlassProcess {
  readonly child: ChildProcess
  readonly command: string
  readonly exited: Promise<number | NodeJS.Signals>
  /** All lines of its log so far that are JSON. */
  lines(): Record<string, unknown>[]
  /** Everything that it printed. */
  output(): string
  /** Resolves with the first log line of this message; rejects if the process ends before. */
  logged(message: string): Promise<Record<string, unknown>>
  signal(signal: NodeJS.Signals): void
  /** SIGTERM, and SIGKILL if it takes too long. */
  end(): Promise<void>
}

function startProcess(
  command: string,
  args: string[],
  env: Record<string, string | undefined>,
  dir: string,
): WindlassProcess {
  const file = join(dir, `${command}-${Math.random().toString(36).slice(2, 8)}.log`)
  const sink = openSync(file, 'a')
  const child = spawn(process.execPath, [join(ROOT, 'src', 'main.ts'), command, ...args], {
    env,
    stdio: ['ignore', sink, sink],
  })
  closeSync(sink)
  let gone: number | NodeJS.Signals | undefined
  const exited = new Promise<number | NodeJS.Signals>((resolve) =>
    child.once('exit', (code, signal) => {
      gone = code ?? signal ?? 0
      resolve(gone)
    }),
  )
  const output = () => readFileSync(file, 'utf8')
  const lines = () =>
    output()
      .split('\n')
      .flatMap((line) => {
        try {
          return line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : []
        } catch {
          return []
        }
      })
  return {
    child,
    command,
    exited,
    lines,
    output,
    async logged(message) {
      for (;;) {
        const found = lines().find(({ msg }) => msg === message)
        if (found) return found
        if (gone !== undefined) throw new Error(`windlass ${command} ended (${gone}) before "${message}":\n${output()}`)
        await delay(50)
      }
    },
    signal: (signal) => void child.kill(signal),
    async end() {
      if (gone === undefined) child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
      await exited
      clearTimeout(timer)
    },
  }
}

const UNINITIALISED = 'node.cloudprovider.kubernetes.io/uninitialized'

/** Has its provider id and its addresses, and its taint is off; others, like not-ready, are none of ours. */
export const isInitialised = ({ spec, status }: KubeNode) =>
  Boolean(spec?.providerID && status?.addresses?.length && !spec.taints?.some(({ key }) => key === UNINITIALISED))

/** A node as kubelet registers it with an external cloud provider. */
export function nodeManifest(name: string, extra: Partial<NodeSpec> = {}) {
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: 'KubeletReady',
    message: 'kubelet is posting ready status',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  })
  return {
    node: {
      metadata: {
        name,
        labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', ...extra.labels },
        annotations: extra.annotations ?? {},
      },
      spec: {
        taints: [{ key: UNINITIALISED, value: 'true', effect: 'NoSchedule' }],
        ...(extra.providerID ? { providerID: extra.providerID } : {}),
        ...(extra.podCIDR ? { podCIDR: extra.podCIDR, podCIDRs: [extra.podCIDR] } : {}),
      },
    },
    status: {
      conditions: [
        condition('MemoryPressure', 'False'),
        condition('DiskPressure', 'False'),
        condition('PIDPressure', 'False'),
        condition('Ready', 'True'),
      ],
      capacity: { cpu: '4', memory: '8Gi', pods: '110' },
      allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
      images: Array.from({ length: extra.images ?? 0 }, (_, i) => ({
        names: [
          `registry.example/some/team/image-${i}@sha256:${String(i).padStart(64, 'a')}`,
          `registry.example/some/team/image-${i}:v1.${i}.0`,
        ],
        sizeBytes: 50_000_000 + i,
      })),
      nodeInfo: {
        machineID: `m-${name}`,
        systemUUID: `u-${name}`,
        bootID: `b-${name}`,
        kernelVersion: '6.1.0',
        osImage: 'Debian GNU/Linux 12',
        containerRuntimeVersion: 'containerd://2.0.0',
        kubeletVersion: 'v1.36.3',
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
    },
  }
}

/** Looks until it holds; what it answered last is in the error when it never does. */
export async function eventually<T>(
  look: () => Promise<T | undefined | false>,
  what: string,
  limitMs = 60_000,
): Promise<T> {
  const start = performance.now()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() - start > limitMs) throw new Error(`not reached within ${limitMs} ms: ${what}`)
    await delay(50)
  }
}
