import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { startCherrySimulator } from '../simulators/cherry/simulator.ts'
import { selfSigned } from '../simulators/kubernetes/certificate.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
export const KEY = 'cherry-key-0123'
export const PROJECT = 87553
export const REGION = 'LT-Siauliai'
/** Of the control plane, in the worlds that have one. */
export const FIP = '127.0.0.60'

const METALLB = [
  { version: 'v1beta1', plural: 'ipaddresspools', kind: 'IPAddressPool' },
  { version: 'v1beta2', plural: 'bgppeers', kind: 'BGPPeer' },
  { version: 'v1beta1', plural: 'bgpadvertisements', kind: 'BGPAdvertisement' },
].map((kind) => ({ ...kind, group: 'metallb.io', namespaced: true }))

export interface CherryWorldOptions {
  env?: Record<string, string>
  /** Whether the cluster has MetalLB's kinds. */
  metallb?: boolean
}

export type CherryWorld = Awaited<ReturnType<typeof startCherryWorld>>

/** A cluster of initialised nodes on servers of the same names, with BGP off everywhere, and commands that only look at it. */
export async function startCherryWorld(t: Test, { env = {}, metallb = true }: CherryWorldOptions = {}) {
  const identity = selfSigned('simulator')
  const cherry = await startCherrySimulator({ token: KEY })
  // The simulated nodes' API servers are trusted as Kubernetes' own is.
  const tls = { ...identity, ca: identity.ca + cherry.ca }
  const kubernetes = await startKubernetesSimulator({ tls, kinds: metallb ? METALLB : [] })
  t.teardown(() => Promise.all([kubernetes.close(), cherry.close()]))
  const kubeconfig = join(t.testdir(), 'kubeconfig')
  writeFileSync(kubeconfig, kubernetes.kubeconfig)
  await cherry.control.seed({ projects: [{ id: PROJECT, name: 'lab' }] })
  const common: Record<string, string> = {
    KUBECONFIG: kubeconfig,
    CHERRY_API_KEY: KEY,
    CHERRY_PROJECT_ID: String(PROJECT),
    CHERRY_API_URL: cherry.apiUrl,
    CHERRY_REGION_NAME: REGION,
    ...env,
  }
  return {
    kubernetes,
    cherry,
    async run(command: string, argv: readonly string[], more: Record<string, string> = {}) {
      const child = spawn(process.execPath, [MAIN, command, ...argv], {
        env: { ...common, ...more },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      return { code: code as number, output, errors }
    },
    /** What reached cloud and cluster that could change something. Reviews of access and dry runs change nothing. */
    writes: () => [
      ...kubernetes.requests
        .filter(({ method, url }) => method !== 'GET' && !/selfsubject|[?&]dryRun=All/.test(url))
        .map(({ method, url }) => `${method} ${url}`),
      ...Object.keys(cherry.control.counters().calls).filter((one) => !one.startsWith('GET ')),
    ],
    async addNode(name: string, id: number, server: object = {}, labels: Record<string, string> = {}) {
      await cherry.control.mutate({ servers: [{ create: { id, hostname: name, ...server } }] })
      const own = cherry.control.state().ips.filter(({ owner }) => owner === id)
      const addresses = own.map(({ address, type }) => ({
        type: type === 'primary-ip' ? 'ExternalIP' : 'InternalIP',
        address,
      }))
      kubernetes.create('nodes', {
        metadata: {
          name,
          labels: { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/region': REGION, ...labels },
        },
        spec: { providerID: `cherryservers://${id}` },
        status: {
          conditions: [{ type: 'Ready', status: 'True' }],
          addresses: [{ type: 'Hostname', address: name }, ...addresses],
        },
      })
    },
    addService(name: string, annotations: Record<string, string> = {}, more: object = {}) {
      return kubernetes.create('services', {
        metadata: { name, namespace: 'default', annotations, ...more },
        spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 80 }] },
      })
    },
    clusterUid: () => kubernetes.get('namespaces', 'kube-system')?.metadata.uid ?? '',
  }
}

/** What answers at a machine: see the simulator. */
export type ApiServer = 'ok' | 'refuse' | 'hang' | number

/** Control-plane nodes cp-1, cp-2, … (servers 101, 102, …) whose API servers are as said, and their address, at the first of them unless `at` says otherwise. */
export async function startControlPlane(
  t: Test,
  apiservers: readonly ApiServer[],
  { at = 101, env = {}, address = {} }: { at?: number; env?: Record<string, string>; address?: object } = {},
) {
  const world = await startCherryWorld(t, { env: { CHERRY_FIP_TAG: 'role=cp', ...env } })
  const { kubernetes, cherry } = world
  for (const [i, apiserver] of apiservers.entries()) {
    const ip_addresses = [{ address: `127.0.0.${61 + i}`, type: 'primary-ip' }]
    await world.addNode(`cp-${i + 1}`, 101 + i, { apiserver, ip_addresses }, CONTROL_PLANE)
  }
  await cherry.control.mutate({
    ips: [{ create: { address: FIP, tags: { role: 'cp' }, targeted_to: at, ...address } }],
  })
  const { apiserver_port: port = 0 } = cherry.control.state().settings
  kubernetes.create('services', {
    metadata: { name: 'kubernetes', namespace: 'default' },
    spec: { type: 'ClusterIP', ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: port }] },
  })
  kubernetes.create('endpointslices', {
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.168.0.1'], conditions: { ready: true } }, { addresses: ['10.168.0.2'] }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  })
  return { ...world, port }
}

export const CONTROL_PLANE = { 'node-role.kubernetes.io/control-plane': '' }
