import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { ClusterPlan, PlanDocument } from '../../src/cli/plan/types.ts'
import { startHcloudSimulator } from '../simulators/hcloud/simulator.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const TOKEN = 'k'.repeat(64)
const UNINITIALISED = 'node.cloudprovider.kubernetes.io/uninitialized'
const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'
const LB = 'load-balancer.hetzner.cloud/'

function withFinalizer(object: { metadata: { finalizers?: string[] } }): void {
  object.metadata.finalizers = [FINALIZER]
}

async function world(t: Test, env: Record<string, string> = {}) {
  const kubernetes = await startKubernetesSimulator()
  const hcloud = await startHcloudSimulator({ token: TOKEN })
  const kubeconfig = join(t.testdir(), 'kubeconfig')
  writeFileSync(kubeconfig, kubernetes.kubeconfig)
  t.teardown(() => Promise.all([kubernetes.close(), hcloud.close()]))
  async function plan(...argv: string[]) {
    const child = spawn(process.execPath, [MAIN, 'plan', ...argv], {
      env: {
        KUBECONFIG: kubeconfig,
        HCLOUD_TOKEN: TOKEN,
        HCLOUD_ENDPOINT: hcloud.apiUrl,
        HCLOUD_METADATA_ENDPOINT: hcloud.metadataUrl,
        HCLOUD_LOAD_BALANCERS_LOCATION: 'fsn1',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code: code as number, output, errors }
  }
  const item = (plan: ClusterPlan | undefined, subject: string) => plan?.items.find((one) => one.subject === subject)
  return {
    kubernetes,
    hcloud,
    plan,
    async json(...argv: string[]) {
      const { code, output, errors } = await plan('--json', ...argv)
      const [cluster] = (JSON.parse(output) as PlanDocument).clusters
      return { code, errors, cluster, item: (subject: string) => item(cluster, subject) }
    },
    writes: () => [
      ...kubernetes.requests.filter(({ method }) => method !== 'GET').map(({ method, url }) => `${method} ${url}`),
      ...Object.keys(hcloud.control.counters().calls).filter((one) => !one.startsWith('GET ')),
    ],
    addNode(name: string, more: { spec?: object; ready?: string; addresses?: object[]; annotations?: object } = {}) {
      const { spec = { taints: [{ key: UNINITIALISED, value: 'true', effect: 'NoSchedule' }] } } = more
      kubernetes.create('nodes', { metadata: { name, annotations: { ...more.annotations } }, spec: { ...spec } })
      kubernetes.change('nodes', name, (node) => {
        node.status = {
          conditions: [{ type: 'Ready', status: more.ready ?? 'True' }],
          addresses: (more.addresses ?? []) as never,
        }
      })
    },
    addService(name: string, annotations: Record<string, string> = {}, more: object = {}) {
      return kubernetes.create('services', {
        metadata: { name, namespace: 'default', annotations },
        spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 80, nodePort: 30080 }], ...more },
      })
    },
  }
}

t.test('a fresh cluster: what is to be done, with summaries, and none of it is done', async (t) => {
  const { plan, json, addNode, addService, hcloud, writes } = await world(t)
  hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  addNode('w1')
  addNode('stray')
  addNode('elsewhere', { spec: { providerID: 'aws:///eu/i-1' } })
  addService('web')

  const { code, cluster, item, errors } = await json()
  t.equal(code, 1, 'one node has no machine')
  t.equal(errors, '')
  t.equal(cluster?.cluster, 'default')
  t.match(item('Node/w1'), {
    changes: [
      { at: 'kubernetes', kind: 'initialise', summary: /hcloud:\/\/1.*node\.kubernetes\.io\/instance-type=cx22/ },
      { at: 'kubernetes', kind: 'set-addresses', summary: /198\.51\.100\.1/ },
    ],
    faults: [],
  })
  t.match(item('Node/stray'), { changes: [], faults: [/no machine found/] })
  t.match(item('Node/elsewhere'), { changes: [], skipped: /aws:/ })
  const web = item('Service/default/web')
  t.match(web?.changes[0], { at: 'kubernetes', kind: 'add-finalizer' })
  t.match(web?.changes[1], { at: 'cloud', kind: 'create-load-balancer' })
  t.match(web?.changes.at(-1), { at: 'kubernetes', kind: 'set-status' })
  t.same(writes(), [])

  const one = await plan('Node/w1')
  t.equal(one.code, 2, 'changes and no fault')
  t.match(one.output, /1 of 1 object would change[\s\S]*Node\/w1\n {2}kubernetes: initialise as hcloud:\/\/1/)
  t.notMatch(one.output, TOKEN)
})

t.test('faults of annotations are told one by one', async (t) => {
  const { json, addService } = await world(t)
  addService('web', { [`${LB}use-private-ip`]: 'maybe', [`${LB}health-check-port`]: '0' })
  const { code, item } = await json()
  t.equal(code, 1)
  const { faults = [] } = item('Service/default/web') ?? {}
  t.match(faults, [/use-private-ip: "maybe" is not a boolean/, /health-check-port: "0" is out of range/])
  t.equal(faults.length, 2)
})

t.test(
  'a place or a type that is not there is a fault that names where it was written, as the real run would find',
  async (t) => {
    const zone = { HCLOUD_LOAD_BALANCERS_LOCATION: '', HCLOUD_LOAD_BALANCERS_NETWORK_ZONE: 'eu-centrl' }
    for (const [env, annotations, fault] of [
      [
        { HCLOUD_LOAD_BALANCERS_LOCATION: 'fsn9' },
        {},
        /location not found: fsn9; correct HCLOUD_LOAD_BALANCERS_LOCATION, the nearest is fsn1/,
      ],
      [
        {},
        { location: 'fsn9' },
        /location not found: fsn9; correct annotation load-balancer\.hetzner\.cloud\/location/,
      ],
      [zone, {}, /zone not found: eu-centrl; correct HCLOUD_LOAD_BALANCERS_NETWORK_ZONE, the nearest is eu-central/],
      [zone, { 'network-zone': 'x' }, /zone not found: x; correct annotation .*network-zone, they are eu-central/],
      [{ HCLOUD_LOAD_BALANCERS_TYPE: 'lb99' }, {}, /type not found: lb99; correct HCLOUD_LOAD_BALANCERS_TYPE$/],
      [
        { HCLOUD_LOAD_BALANCERS_TYPE: 'lb99' },
        { type: 'lb98' },
        /lb98; correct annotation load-balancer\.hetzner\.cloud\/type/,
      ],
      [{ HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP: 'true' }, {}, /or HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP to "false"/],
      [{}, { 'use-private-ip': 'true' }, /or annotation .*use-private-ip to "false"/],
    ] as const) {
      const { json, addService } = await world(t, env)
      const own = Object.entries(annotations).map(([name, value]) => [`${LB}${name}`, value])
      addService('web', Object.fromEntries(own))
      const { code, item } = await json()
      t.equal(code, 1)
      t.match(item('Service/default/web')?.faults, [fault])
    }
  },
)

t.test('a place that is there is asked for once in a plan, and not for a load balancer that is there', async (t) => {
  const { json, hcloud, addService } = await world(t)
  const asked = () => hcloud.control.counters().calls['GET /locations'] ?? 0
  const service = addService('old')
  hcloud.control.seed({
    load_balancers: [{ id: 7, name: 'old', labels: { 'hcloud-ccm/service-uid': service.metadata.uid } }],
  })
  await json()
  t.equal(asked(), 0)
  const inZone = { [`${LB}network-zone`]: 'moon' }
  for (const [i, name] of ['a', 'b', 'c'].entries())
    addService(name, inZone, { ports: [{ name: 'http', port: 80, nodePort: 30081 + i }] })
  const { code } = await json()
  t.equal(code, 2, 'the location goes before the zone')
  t.equal(asked(), 1)
})

t.test(
  'an annotation that is misspelt is told with the nearest, also where nothing comes of the Service',
  async (t) => {
    const noPlace = { HCLOUD_LOAD_BALANCERS_LOCATION: '' }
    const annotations = { [`${LB}locatoin`]: 'fsn1', [`${LB}qqqqqqqqqqqq`]: 'x', 'example.com/location': 'x' }
    const nearest = /locatoin is unknown.*, the nearest is load-balancer\.hetzner\.cloud\/location$/
    const failing = await world(t, noPlace)
    failing.addService('web', annotations)
    const { faults = [] } = (await failing.json()).item('Service/default/web') ?? {}
    t.match(faults, [/neither .*location nor .*network-zone set/, nearest])
    t.equal(faults.length, 2)
    const good = await world(t)
    good.addService('web', annotations)
    const { notes = [] } = (await good.json()).item('Service/default/web') ?? {}
    t.match(
      notes.filter(({ reason }) => reason === 'AnnotationIgnored').map(({ message }) => message),
      [nearest, /qqqqqqqqqqqq is unknown and has no effect$/],
    )
  },
)

t.test(
  'a subject in other letters is met with the right one, and one of a controller that is off is told so',
  async (t) => {
    const { plan, json, addService, addNode } = await world(t)
    addService('shop')
    addNode('w1')
    for (const [written, right] of [
      ['service/default/shop', 'Service/default/shop'],
      ['svc/default/shop', 'Service/default/shop'],
      ['Service/default/shpo', 'Service/default/shop'],
      ['nodes/w1', 'Node/w1'],
    ] as const) {
      const { code, errors } = await plan(written)
      t.equal(code, 1)
      t.ok(errors.includes(`has no ${written} that a cloud controller has to do with. Did you mean ${right}?`), errors)
    }
    t.match((await plan('x')).errors, /has no x that .* Write for example Node\/worker-1/)
    const off = await json('--controllers=-service', 'Service/default/shop')
    t.equal(off.code, 0)
    t.match(off.item('Service/default/shop'), {
      changes: [],
      skipped: /Service controller is off: --controllers leaves out/,
    })
  },
)

t.test('beside what can not be, the targets of what is there are shown', async (t) => {
  const { json, hcloud, addNode, addService } = await world(t)
  const service = addService('web', { [`${LB}protocol`]: 'quic' })
  hcloud.control.seed({
    servers: [{ id: 1, name: 'w1' }],
    load_balancers: [{ id: 7, name: 'web', labels: { 'hcloud-ccm/service-uid': service.metadata.uid } }],
  })
  addNode('w1', { spec: { providerID: 'hcloud://1' }, addresses: [{ type: 'ExternalIP', address: '198.51.100.1' }] })
  const { code, item } = await json('Service/default/web')
  t.equal(code, 1)
  const { changes = [], faults } = item('Service/default/web') ?? {}
  t.match(
    changes.filter(({ at }) => at === 'cloud').map(({ kind }) => kind),
    ['add-target'],
  )
  t.match(faults, [/protocol: "quic" is unknown/])
})

t.test('what is in order ends with 0, and is counted only', async (t) => {
  const { plan, addNode, hcloud } = await world(t)
  hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  addNode('w1', {
    spec: { providerID: 'hcloud://1' },
    addresses: [
      { type: 'Hostname', address: 'w1' },
      { type: 'ExternalIP', address: '198.51.100.1' },
    ],
  })
  t.match(await plan(), { code: 0, output: /0 of 1 object would change\.\n\n1 object as they should be\.\n/ })
})

t.test('nodes whose machines are gone: which would be deleted, which are held, and why', async (t) => {
  const { json, addNode, hcloud } = await world(t)
  const gone = (id: number) => ({ spec: { providerID: `hcloud://${id}` }, ready: 'Unknown' })
  for (const id of [11, 12, 13]) addNode(`w${id}`, gone(id))
  const blind = await json('Node/w11')
  t.equal(blind.code, 0)
  t.match(blind.item('Node/w11'), { changes: [], notes: [{ reason: 'NodeDeletionHeld', message: /another project/ }] })

  hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  addNode('w1', { spec: { providerID: 'hcloud://1' }, addresses: [] })
  const { cluster } = await json()
  const verdicts = cluster?.items.flatMap(({ changes, notes }) => [
    ...changes.map(({ kind }) => kind).filter((kind) => kind === 'delete-node'),
    ...notes.map(({ reason }) => reason),
  ])
  t.same(verdicts?.sort(), ['NodeDeletionHeld', 'delete-node', 'delete-node'], 'within the budget of deletions')
})

t.test('a machine that is off gets the shutdown taint', async (t) => {
  const { json, addNode, hcloud } = await world(t)
  hcloud.control.seed({ servers: [{ id: 1, name: 'w1', status: 'off' }] })
  addNode('w1', { spec: { providerID: 'hcloud://1' }, ready: 'False' })
  const { item } = await json()
  t.match(item('Node/w1')?.changes.at(-1), { kind: 'set-shutdown-taint' })
})

t.test('Services that are no load balancers any more are cleaned up', async (t) => {
  const { json, hcloud, kubernetes, addService, writes } = await world(t)
  const service = addService('web', {}, { type: 'ClusterIP', ports: [{ port: 80 }] })
  kubernetes.change('services', 'web', withFinalizer, 'default')
  hcloud.control.seed({
    load_balancers: [{ id: 7, name: 'old', labels: { 'hcloud-ccm/service-uid': service.metadata.uid } }],
  })
  addService('foreign', {}, { loadBalancerClass: 'example.com/other', ports: [{ port: 81 }] })
  const { code, item } = await json()
  t.equal(code, 2)
  t.same(
    item('Service/default/web')?.changes.map(({ kind }) => kind),
    ['delete-load-balancer', 'remove-finalizer'],
  )
  t.match(item('Service/default/foreign'), { changes: [], skipped: /example\.com\/other/ })
  t.same(writes(), [])
})

t.test('pod routes of the network', async (t) => {
  const { json, hcloud, addNode, writes } = await world(t, {
    HCLOUD_NETWORK: 'net',
    HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK: 'true',
  })
  hcloud.control.seed({
    networks: [{ id: 5, name: 'net', subnets: [{ ip_range: '10.0.0.0/24' }] }],
    servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.2' }] }],
  })
  addNode('w1', {
    spec: { providerID: 'hcloud://1', podCIDRs: ['10.244.1.0/24'], podCIDR: '10.244.1.0/24' },
    addresses: [{ type: 'InternalIP', address: '10.0.0.2' }],
  })
  const off = await json('Cluster/routes', 'Cluster/control-plane-address')
  t.match(off.item('Cluster/routes')?.skipped, /HCLOUD_NETWORK/)
  t.match(off.item('Cluster/control-plane-address')?.skipped, /CHERRY_FIP_TAG/)
  const { item } = await json('Cluster/routes', '--allocate-node-cidrs=true', '--cluster-cidr=10.244.0.0/16')
  t.match(item('Cluster/routes'), { changes: [{ at: 'cloud', kind: 'add-route', summary: /10\.244\.1\.0\/24/ }] })
  t.same(writes(), [])
})

t.test('a failure ends with 1 and says what to do', async (t) => {
  const { plan, hcloud } = await world(t)
  t.match(await plan('Service/default/nowhere'), { code: 1, output: '', errors: /has no Service\/default\/nowhere/ })
  await hcloud.close()
  const { code, output } = await plan()
  t.equal(code, 0, 'an empty cluster asks no cloud')
  t.match(output, /0 of 0 objects/)
})

t.test('what the status will list stands beside changes at the cloud, with what it lists no more', async (t) => {
  const { json, kubernetes, hcloud, addService } = await world(t)
  const service = addService('web', { [`${LB}algorithm-type`]: 'least_connections', [`${LB}ipv6-disabled`]: 'true' })
  hcloud.control.seed({
    load_balancers: [{ id: 7, name: 'web', labels: { 'hcloud-ccm/service-uid': service.metadata.uid } }],
  })
  const [balancer] = hcloud.control.state().load_balancers as unknown as {
    public_net: { ipv4: { ip: string }; ipv6: { ip: string } }
  }[]
  const { ipv4, ipv6 } = balancer?.public_net ?? { ipv4: { ip: '' }, ipv6: { ip: '' } }
  kubernetes.change(
    'services',
    'web',
    (object) => {
      withFinalizer(object)
      object.status = { loadBalancer: { ingress: [ipv4, ipv6].map(({ ip }) => ({ ip, ipMode: 'VIP' })) } }
    },
    'default',
  )
  const { code, item } = await json('Service/default/web')
  t.equal(code, 2)
  const { changes = [] } = item('Service/default/web') ?? {}
  t.ok(changes.some(({ kind }) => kind === 'change-algorithm'))
  t.equal(
    changes.find(({ kind }) => kind === 'set-status')?.summary,
    `list ${ipv4.ip} in its status, and ${ipv6.ip} no more`,
  )
})

t.test('a cluster that can not be read is in the document too', async (t) => {
  const { plan, kubernetes } = await world(t)
  await kubernetes.close()
  const { code, output, errors } = await plan('--json')
  t.equal(code, 1)
  t.match(JSON.parse(output), { v: 1, clusters: [{ cluster: 'default', items: [], fault: /no answer/ }] })
  t.match(errors, /cluster default: .*no answer/)
})
