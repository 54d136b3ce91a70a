import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { createCherryProvider } from '../../../src/cloud/cherry/provider.ts'
import type { ControlPlaneAddress } from '../../../src/cloud/provider.ts'
import type { Cluster } from '../../../src/controllers/cluster.ts'
import { type ControlPlaneIp, startControlPlaneIp } from '../../../src/controllers/control-plane-ip/controller.ts'
import { EXTERNAL } from '../../../src/controllers/control-plane-ip/external-service.ts'
import { createHealth } from '../../../src/controllers/control-plane-ip/health.ts'
import { createKubernetesApi } from '../../../src/kubernetes/api.ts'
import { connect } from '../../../src/kubernetes/connection.ts'
import type { EventToRecord } from '../../../src/kubernetes/events.ts'
import { startRedis } from '../../redis.ts'
import { startCherrySimulator } from '../../simulators/cherry/simulator.ts'
import { startKubernetesSimulator } from '../../simulators/kubernetes/simulator.ts'
import { kubeconfigFile } from './kubeconfig.ts'

const log = pino({ level: 'silent' })
const FIP = '127.0.0.50'
const PROJECT = 87553
const timings = {
  periodMs: 60,
  leaseMs: 600,
  standbyMs: 60,
  probeEveryMs: 20,
  probeTimeoutMs: 500,
  probeGapMs: 10,
  settleMs: 50,
  doubtMs: 200,
  restMs: 60_000,
}

type ApiServer = 'ok' | 'refuse' | 'hang' | number

/** Three machines, two of which are sound, and the address at the first of these. */
async function world(
  t: Test,
  apiservers: ApiServer[] = ['ok', 'ok'],
  more: { checkMachine?: boolean; uninitialised?: string } = {},
) {
  const [redisServer, kubernetes, cherry] = await Promise.all([
    startRedis(),
    startKubernetesSimulator(),
    startCherrySimulator({ token: 'k' }),
  ])
  const redis = new Redis(redisServer.url, { maxRetriesPerRequest: 1, commandTimeout: 500 })
  redis.on('error', () => {})
  const servers = apiservers.map((apiserver, i) => ({
    id: 383541 + i,
    hostname: `cp-${i + 1}`,
    region: 'LT-Siauliai',
    plan: 'e5',
    ip_addresses: [{ address: `127.0.0.${41 + i}`, type: 'primary-ip' }],
    apiserver,
  }))
  await cherry.control.seed({
    projects: [{ id: PROJECT, name: 'lab' }],
    servers,
    ips: [{ address: FIP, region: 'LT-Siauliai', tags: { role: 'cp' }, targeted_to: 383541 }],
  })
  const port = (cherry.control.state() as unknown as { settings: { apiserver_port: number } }).settings.apiserver_port
  for (const { id, hostname, ip_addresses } of servers)
    kubernetes.create('nodes', {
      metadata: { name: hostname, labels: { 'node-role.kubernetes.io/control-plane': '' } },
      spec: hostname === more.uninitialised ? {} : { providerID: `cherryservers://${id}` },
      status: { addresses: [{ type: 'ExternalIP', address: ip_addresses[0]?.address ?? '' }] },
    })
  kubernetes.create('services', {
    metadata: { name: 'kubernetes', namespace: 'default' },
    spec: { type: 'ClusterIP', ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: port }] },
  })
  kubernetes.create('endpointslices', {
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.168.0.42'], conditions: { ready: true } }],
    ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  })
  const connection = await connect({ kubeconfig: [kubeconfigFile(t, kubernetes.kubeconfig)] }, log)
  const provider = createCherryProvider({
    settings: {
      apiKey: { name: 'k', read: () => 'k' },
      projectId: PROJECT,
      apiUrl: cherry.apiUrl.replace(/\/$/, ''),
      annotations: { localAsn: '', peerAsn: '', peerIp: '', srcIp: '', multiHop: '', fipRegion: '' },
      fipTag: 'role=cp',
      apiServerPort: 0,
      fipHealthCheckUseHostIp: more.checkMachine ?? false,
    },
    prefix: 'w',
    clusterUid: async () => 'u',
    pace: () => ({ take: async () => {}, block: async () => {} }),
  })
  const running: ControlPlaneIp[] = []
  const events: EventToRecord[] = []
  const holder = () =>
    (cherry.control.state().ips as unknown as { address: string; target_server_id: number }[]).find(
      ({ address }) => address === FIP,
    )?.target_server_id
  t.teardown(async () => {
    await Promise.all(running.map((one) => one.stop()))
    redis.disconnect()
    connection.close()
    await Promise.all([provider.close(), redisServer.stop(), kubernetes.close(), cherry.close()])
  })
  return {
    kubernetes,
    cherry,
    holder,
    events,
    start(other: Partial<typeof timings> = {}) {
      const one = startControlPlaneIp({
        cluster: {
          id: 'default',
          kubernetes: createKubernetesApi(connection),
          recorder: { record: (event: EventToRecord) => void events.push(event) },
        } as unknown as Cluster,
        address: provider.controlPlaneAddress as ControlPlaneAddress,
        redis,
        prefix: 'w',
        log,
        health: createHealth(() => ({ host: '127.0.0.1', ca: cherry.ca })),
        timings: { ...timings, ...other },
      })
      running.push(one)
      return one
    },
    assignments: () => cherry.control.counters().calls['PUT /ips/{id}'] ?? 0,
  }
}

async function until(what: () => boolean): Promise<void> {
  const deadline = Date.now() + 8000
  while (!what()) {
    if (Date.now() > deadline) throw new Error(`did not come true: ${what}`)
    await delay(20)
  }
}

t.test('the address moves when its machine fails, is cordoned or loses its Node, and stays otherwise', async (t) => {
  const w = await world(t)
  w.start()
  await until(() => w.kubernetes.get('services', EXTERNAL.name, EXTERNAL.namespace) !== undefined)
  t.equal(w.assignments(), 0, 'a sound machine keeps it')
  await w.cherry.control.mutate({ servers: [{ hostname: 'cp-1', apiserver: 'refuse' }] })
  await until(() => w.holder() === 383542)
  await w.cherry.control.mutate({ servers: [{ hostname: 'cp-1', apiserver: 'ok' }] })
  w.kubernetes.change('nodes', 'cp-2', (node) => {
    ;(node.spec as Record<string, unknown>).unschedulable = true
  })
  await until(() => w.holder() === 383541)
  w.kubernetes.change('nodes', 'cp-2', (node) => {
    ;(node.spec as Record<string, unknown>).unschedulable = false
  })
  w.kubernetes.delete('nodes', 'cp-1')
  await until(() => w.holder() === 383542)
  t.equal(w.assignments(), 3)
  await until(() => w.events.length === 3)
  t.match(w.events, [
    { type: 'Normal', reason: 'ControlPlaneAddressAssigned', object: { name: 'cp-2' } },
    { object: { name: 'cp-1' }, message: /node cp-2 is cordoned/ },
    { object: { name: 'cp-2' } },
  ])
  t.ok(
    w.cherry.control.probes().every(({ authorized }) => authorized !== true),
    'no check brings credentials along',
  )
})

t.test('it leaves a machine whose Node was initialised and deleted between two looks', async (t) => {
  const w = await world(t, ['ok', 'ok'], { uninitialised: 'cp-1' })
  w.start({ periodMs: 3000 })
  await until(() => w.kubernetes.get('services', EXTERNAL.name, EXTERNAL.namespace) !== undefined)
  w.kubernetes.change('nodes', 'cp-1', (node) => {
    node.spec = { providerID: 'cherryservers://383541' }
  })
  const reads = () =>
    w.kubernetes.requests.filter(({ verb, resource }) => verb === 'list' && resource === 'nodes').length
  const before = reads()
  // Two roles, read twice: the second began after the change.
  await until(() => reads() >= before + 4)
  t.equal(w.cherry.control.counters().calls['GET /projects/{id}/ips'], 1, 'before the second look')
  w.kubernetes.delete('nodes', 'cp-1')
  await until(() => w.holder() === 383542)
  t.equal(w.assignments(), 1)
})

t.test('it moves while Kubernetes does not answer', async (t) => {
  const w = await world(t)
  const first = w.start()
  await until(() => w.kubernetes.get('services', EXTERNAL.name, EXTERNAL.namespace) !== undefined)
  await first.stop()
  await w.kubernetes.close()
  // Another process, which has never seen the cluster.
  w.start()
  await w.cherry.control.mutate({ servers: [{ hostname: 'cp-1', apiserver: 500 }] })
  await until(() => w.holder() === 383542)
  t.pass('moved')
})

t.test('where nobody answers it stays', async (t) => {
  const w = await world(t, ['refuse', 500])
  w.start()
  await until(() => w.cherry.control.probes().length > 12)
  t.equal(w.holder(), 383541)
  t.equal(w.assignments(), 0)
})

t.test('one process at a time looks after it', async (t) => {
  const w = await world(t)
  const one = w.start()
  await until(() => w.kubernetes.get('services', EXTERNAL.name, EXTERNAL.namespace) !== undefined)
  w.start()
  await one.stop()
  await w.cherry.control.mutate({ servers: [{ hostname: 'cp-1', apiserver: 'refuse' }] })
  await until(() => w.holder() === 383542)
  t.equal(w.assignments(), 1)
})

t.test('the Service that leads to all API servers follows them', async (t) => {
  const w = await world(t)
  w.start()
  const slice = () => w.kubernetes.get('endpointslices', EXTERNAL.name, EXTERNAL.namespace)
  await until(() => slice() !== undefined)
  t.match(w.kubernetes.get('services', EXTERNAL.name, EXTERNAL.namespace), {
    metadata: { annotations: { 'metallb.universe.tf/address-pool': 'disabled-metallb-do-not-use-any-address-pool' } },
    spec: { type: 'LoadBalancer', loadBalancerIP: FIP, ports: [{ name: 'https' }] },
    status: { loadBalancer: { ingress: [{ ip: FIP, ipMode: 'Proxy' }] } },
  })
  t.match(slice(), { addressType: 'IPv4', endpoints: [{ addresses: ['10.168.0.42'] }], ports: [{ port: 6443 }] })
  w.kubernetes.change(
    'endpointslices',
    'kubernetes',
    (object) => {
      object.endpoints = [{ addresses: ['10.168.0.43'], conditions: { ready: true } }]
    },
    'default',
  )
  await until(() => JSON.stringify(slice()).includes('10.168.0.43'))
  const writes = w.kubernetes.requests.filter(({ verb }) => verb === 'patch').length
  await until(() => w.kubernetes.requests.filter(({ verb }) => verb === 'get').length > 40)
  t.equal(w.kubernetes.requests.filter(({ verb }) => verb === 'patch').length, writes, 'and is written no more')
})

t.test('what somebody else sets in that Service is put right', async (t) => {
  const w = await world(t)
  const service = () => w.kubernetes.get('services', EXTERNAL.name, EXTERNAL.namespace) as Record<string, unknown>
  const specOf = () => (service()?.spec ?? {}) as Record<string, unknown>
  w.start()
  await until(() => service()?.status !== undefined)
  const { ports: wanted } = structuredClone(specOf())
  const edit = (change: (spec: Record<string, unknown>) => void) =>
    w.kubernetes.change('services', EXTERNAL.name, (object) => change(object.spec as never), EXTERNAL.namespace)
  edit((spec) => {
    spec.ports = [{ name: 'https', port: 9999, protocol: 'TCP', targetPort: 6443 }]
    spec.loadBalancerIP = '192.0.2.1'
  })
  await until(() => specOf().loadBalancerIP === FIP)
  t.same(specOf().ports, wanted)
  edit((spec) => {
    spec.selector = { app: 'other' }
    spec.ports = [...(spec.ports as unknown[]), { name: 'x', port: 80, protocol: 'TCP', targetPort: 80 }]
  })
  await until(() => specOf().selector === undefined)
  t.same(specOf().ports, wanted)
})
