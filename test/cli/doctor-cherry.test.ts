import t, { type Test } from 'tap'
import type { DoctorDocument, Finding } from '../../src/cli/doctor/types.ts'
import { startHcloudSimulator } from '../simulators/hcloud/simulator.ts'
import {
  type ApiServer,
  type CherryWorld,
  type CherryWorldOptions,
  CONTROL_PLANE,
  FIP,
  KEY,
  PROJECT,
  REGION,
  startCherryWorld,
  startControlPlane,
} from './cherry-world.ts'

const SERVERS = 'cherry servers'
const BALANCERS = 'cherry load balancers'
const ADDRESS = 'control plane address'

/** A world with the doctor's findings about it. */
const examined = (t: Test, world: CherryWorld) => ({
  ...world,
  async findings(env: Record<string, string> = {}) {
    const { code, output, errors } = await world.run('doctor', ['--json'], env)
    t.notMatch(`${output}${errors}`, KEY, 'no secret is printed')
    t.same(world.writes(), [], 'nothing was written')
    const { clusters } = JSON.parse(output) as DoctorDocument
    const all = clusters.flatMap(({ findings }) => findings)
    /** `level: what`, and what to do behind an arrow. */
    const of = (area: string) => all.filter((one) => one.area === area).map(lineOf)
    return { code, all, of }
  },
})

const lineOf = ({ level, what, toDo }: Finding) => `${level}: ${what}${toDo === undefined ? '' : ` → ${toDo}`}`

const world = async (t: Test, options: CherryWorldOptions = {}) => examined(t, await startCherryWorld(t, options))

async function controlPlane(t: Test, apiservers: ApiServer[], options: Parameters<typeof startControlPlane>[2] = {}) {
  const { port, ...rest } = await startControlPlane(t, apiservers, options)
  return { ...examined(t, rest), port }
}

t.jobs = 2

t.test('a good account has no problems', async (t) => {
  const { findings, addNode, kubernetes } = await world(t, { env: { CHERRY_LOAD_BALANCER: 'metallb:///' } })
  kubernetes.create('namespaces', { metadata: { name: 'metallb-system' } })
  await addNode('w1', 1)
  const { all, of } = await findings()
  t.same(
    all.filter(({ level, area }) => level === 'problem' && area !== 'rights'),
    [],
  )
  t.same(of(SERVERS), [
    `ok: Cherry Servers takes the key, and shows project ${PROJECT} ("lab")`,
    'ok: The project has the servers of all 1 nodes',
  ])
  t.same(of(BALANCERS), [
    `ok: BGP of project ${PROJECT} is off: it is switched on with the first Service of type LoadBalancer`,
    `ok: Addresses are made in region "${REGION}", where the project has servers or addresses`,
  ])
  t.same(of('metallb'), ['ok: MetalLB is installed, and namespace metallb-system takes its objects'])
  t.same(of('left behind'), ['ok: All that was made for Services of this cluster belongs to one that is there'])
  t.same(of(ADDRESS), [], 'none is looked after')
})

t.test('a key that is refused, a project that is not there, an API that does not answer', async (t) => {
  const { findings, cherry, addNode } = await world(t)
  await addNode('w1', 1)
  const refused = await findings({ CHERRY_API_KEY: 'wrong' })
  t.equal(refused.code, 1)
  t.same(refused.of(SERVERS), [
    `problem: Cherry Servers refuses the API key → Set CHERRY_API_KEY to a key that is valid, of the team that project ${PROJECT} belongs to`,
  ])
  t.same(refused.of(BALANCERS), [], 'the rest is not asked for')
  t.match(refused.of('nodes'), [/^warning: Not compared with machines, .*: w1/], 'nor are the machines of nodes')
  t.same((await findings({ CHERRY_PROJECT_ID: '4' })).of(SERVERS), [
    "problem: Cherry Servers has no project 4 for this API key → Set CHERRY_PROJECT_ID to the project of the cluster's servers, and CHERRY_API_KEY to a key of the team that it belongs to",
  ])
  cherry.control.fault({ match: `GET /v1/projects/${PROJECT}$`, kind: 'error', code: 403, times: -1 })
  t.match((await findings()).of(SERVERS), [
    new RegExp(
      `^problem: The API key is not good for project ${PROJECT}: .* → Set CHERRY_API_KEY to a key of the team`,
    ),
  ])
  cherry.control.fault('clear')
  cherry.control.fault({ match: `GET /v1/projects/${PROJECT}$`, kind: 'error', code: 503, times: -1 })
  t.match((await findings()).of(SERVERS), [/^problem: .*503.* → Try again later/])
  cherry.control.fault('clear')
  cherry.control.fault({ match: 'GET /v1/projects/.*/servers', kind: 'error', code: 503, times: -1 })
  t.match((await findings()).of(SERVERS), [/^ok: /, /^problem: The servers could not be listed: .* → Try again later/])
  await cherry.close()
  t.match((await findings()).of(SERVERS), [
    /^problem: Cherry Servers does not answer at http:.* → Check CHERRY_API_URL and the network between/,
  ])
})

t.test('requests that others have used up are waited for', async (t) => {
  const { findings, cherry } = await world(t)
  cherry.control.fault({ match: 'GET /v1/projects/.*', kind: 'rate-limit', retry_after_s: 1, times: 2 })
  t.same((await findings()).of(SERVERS), [
    `ok: Cherry Servers takes the key, and shows project ${PROJECT} ("lab")`,
    'ok: The project has the servers of all 0 nodes',
  ])
})

t.test('as many requests as the API takes', async (t) => {
  const { findings, cherry, addNode } = await world(t, { env: { CHERRY_LOAD_BALANCER: 'kube-vip://' } })
  await addNode('w1', 1)
  await cherry.control.mutate({ options: { requests_per_second: 4 } })
  t.match((await findings()).of('nodes'), [/^ok/])
  t.same(cherry.control.counters().rejected, {})
})

t.test("another project is told by the servers that it shows, and other clouds' nodes are none of its", async (t) => {
  const { findings, addNode, kubernetes, cherry } = await world(t)
  await cherry.control.mutate({ projects: [{ create: { id: 5, name: 'other' } }] })
  await addNode('w1', 1)
  await addNode('w2', 2)
  t.equal(
    (await findings({ CHERRY_PROJECT_ID: '5' })).of(SERVERS)[1],
    "problem: The project has 0 servers, and none of the cluster's 2 nodes is among them → Set CHERRY_PROJECT_ID to the project that has them",
  )
  await cherry.control.mutate({ servers: [{ id: 2, $delete: true }] })
  kubernetes.create('nodes', { metadata: { name: 'new' } })
  kubernetes.create('nodes', { metadata: { name: 'far' }, spec: { providerID: 'aws:///eu/i-1' } })
  t.equal(
    (await findings()).of(SERVERS)[1],
    'warning: The project has the servers of 1 of 3 nodes, and not those of new, w2 → Name the nodes as their servers, or look whether these servers are in another project or deleted',
  )
})

t.test('provider ids that can not be read', async (t) => {
  const { findings, kubernetes } = await world(t)
  kubernetes.create('nodes', { metadata: { name: 'w1' }, spec: { providerID: 'cherryservers://lt/w1' } })
  const { code, of } = await findings()
  t.equal(code, 1)
  t.same(of('nodes'), [
    'problem: Node w1: provider id "cherryservers://lt/w1" has no number after its prefix. → Take --provider-id off its kubelet or correct it, delete the Node and let the kubelet register it anew: a provider id can not be changed',
  ])
})

t.test('BGP of the project', async (t) => {
  const { findings, cherry } = await world(t, { env: { CHERRY_LOAD_BALANCER: 'kube-vip://' } })
  const bgp = async (env = {}) => (await findings(env)).of(BALANCERS).filter((line) => line.includes('BGP of project'))
  await cherry.control.mutate({ projects: [{ id: PROJECT, bgp: { enabled: true, local_asn: 65432 } }] })
  t.same(await bgp(), [`ok: BGP of project ${PROJECT} is on, with ASN 65432`])
  await cherry.control.mutate({ projects: [{ id: PROJECT, bgp: { enabled: true, local_asn: 0 } }] })
  t.same(await bgp(), [
    `problem: BGP of project ${PROJECT} is on, and Cherry Servers has given it no ASN: nodes have no BGP sessions, and Services wait → Wait if it was just switched on; else ask Cherry Servers for the ASN of the project`,
  ])
  t.same(await bgp({ CHERRY_LOAD_BALANCER: '' }), [], 'nobody needs it')
})

t.test('without load balancers nothing of them is looked at', async (t) => {
  const { findings } = await world(t)
  t.same((await findings()).of(BALANCERS), ['ok: Services get no addresses: CHERRY_LOAD_BALANCER is not set'])
  const { run } = await world(t, { env: { CHERRY_LOAD_BALANCER: 'metallb:///' }, metallb: false })
  const { output } = await run('doctor', ['--controllers=*,-service'])
  t.match(output, /Services get no addresses: --controllers leaves out service-lb-controller/)
  t.notMatch(output, / metallb /)
})

t.test('the region', async (t) => {
  const { findings, addNode, cherry } = await world(t, { env: { CHERRY_LOAD_BALANCER: 'kube-vip://' } })
  const region = async (CHERRY_REGION_NAME: string) =>
    (await findings({ CHERRY_REGION_NAME })).of(BALANCERS).filter((line) => /region/.test(line))
  t.same(await region(REGION), [
    `ok: Nothing of the project tells whether region "${REGION}" exists: it has no servers and no addresses`,
  ])
  await addNode('w1', 1)
  await cherry.control.mutate({ ips: [{ create: { region: 'NL-Amsterdam' } }] })
  t.match(await region(REGION), [/^ok: Addresses are made in region "LT-Siauliai"/])
  t.same(await region('LT-Siaulai'), [
    'warning: None of the project\'s servers and addresses is in region "LT-Siaulai": they are in LT-Siauliai, NL-Amsterdam → Set CHERRY_REGION_NAME=LT-Siauliai, if that is what was meant',
  ])
  t.match(await region('EU-Nord-1'), [
    /they are in LT-Siauliai, NL-Amsterdam → Set CHERRY_REGION_NAME to the region of/,
  ])
  t.match(await region('NL-Amsterdam'), [
    /^warning: No node is in region "NL-Amsterdam", where addresses are made: the nodes are in LT-Siauliai → /,
  ])
  t.same(await region(''), [
    'warning: No region is set, so a Service without an address of its own gets one only where it names a region → Set CHERRY_REGION_NAME to the region of the nodes, or give every Service the annotation cherryservers.com/fip-region',
  ])
})

t.test('the selector of nodes', async (t) => {
  const { findings, addNode, kubernetes } = await world(t, { env: { CHERRY_LOAD_BALANCER: 'kube-vip://' } })
  const selected = async (CHERRY_BGP_NODE_SELECTOR: string) =>
    (await findings({ CHERRY_BGP_NODE_SELECTOR })).of(BALANCERS).filter((line) => /SELECTOR/.test(line))
  t.same(await selected('bgp=yes'), [], 'a cluster without nodes may get some')
  await addNode('w1', 1, {}, { bgp: 'yes' })
  await addNode('w2', 2)
  kubernetes.create('nodes', { metadata: { name: 'far', labels: { edge: '' } }, spec: { providerID: 'aws:///eu/i-1' } })
  t.same(await selected('bgp=yes'), ['ok: CHERRY_BGP_NODE_SELECTOR selects 1 of 2 nodes to announce addresses'])
  t.same(await selected('edge'), [
    'problem: CHERRY_BGP_NODE_SELECTOR "edge" selects none of the 2 nodes that may announce addresses: no address is announced → Label nodes so that it selects them, or correct it',
  ])
  t.same(await selected(''), [])
})

t.test('what announces addresses', async (t) => {
  const { findings, kubernetes } = await world(t)
  const said = async (CHERRY_LOAD_BALANCER: string) => {
    const { of } = await findings({ CHERRY_LOAD_BALANCER })
    return [...of('metallb'), ...of(BALANCERS).filter((line) => /announces/.test(line))]
  }
  t.match(await said('kube-vip://'), [/^ok: kube-vip announces the addresses/])
  t.match(await said('empty://'), [/^ok: Addresses are written into annotations/])
  t.same(await said('metallb:///'), [
    "problem: There is no namespace metallb-system, in which CHERRY_LOAD_BALANCER asks for MetalLB's objects → Set CHERRY_LOAD_BALANCER to metallb:///<MetalLB's namespace>, or install MetalLB in this one",
  ])
  kubernetes.create('namespaces', { metadata: { name: 'lb' } })
  t.same(await said('metallb:///lb'), ['ok: MetalLB is installed, and namespace lb takes its objects'])
  t.same(kubernetes.list('ipaddresspools'), [], 'the pool that was tried is not stored')
  const labels = { 'cloud-provider': 'equinix-metal' }
  kubernetes.create('ipaddresspools', { metadata: { name: 'default.web', namespace: 'lb', labels }, spec: {} })
  kubernetes.create('bgppeers', { metadata: { name: 'of-somebody', namespace: 'lb' }, spec: {} })
  t.same(await said('metallb:///lb'), ['ok: MetalLB is installed, and namespace lb takes its objects'])
  const [former] = await said('kube-vip://')
  t.equal(
    former,
    'warning: MetalLB has objects from before CHERRY_LOAD_BALANCER was changed, and announces what they say: IPAddressPool lb/default.web → Once the Services are served as CHERRY_LOAD_BALANCER says now: delete the ipaddresspools, bgpadvertisements and bgppeers labelled cloud-provider=equinix-metal in namespace lb',
  )
  const bare = await world(t, { env: { CHERRY_LOAD_BALANCER: 'metallb:///' }, metallb: false })
  t.same((await bare.findings()).of('metallb'), [
    'problem: The cluster does not have BGPPeer (metallb.io/v1beta2), BGPAdvertisement (metallb.io/v1beta1), IPAddressPool (metallb.io/v1beta1): Services wait for MetalLB → Install MetalLB 0.13.2 or newer, or set CHERRY_LOAD_BALANCER to what announces addresses here',
  ])
})

t.test('addresses of Services that are no more', async (t) => {
  const { findings, cherry, addService, clusterUid } = await world(t, { env: { CHERRY_LOAD_BALANCER: 'kube-vip://' } })
  const tags = { usage: 'cloud-provider-cherry-auto', cluster: clusterUid() }
  const web = 'grOt6dAM0WQqTUIOZw1s2Y60hJou4P9m1mieZFyOsz8='
  await cherry.control.mutate({
    ips: [
      {
        create: { id: '11111111-0000-4000-8000-000000000000', address: '5.199.171.1', tags: { ...tags, service: web } },
      },
      { create: { address: '5.199.171.2', tags: { ...tags, cluster: 'of-another-cluster', service: web } } },
      { create: { address: '5.199.171.3', tags: { role: 'mine' } } },
    ],
  })
  t.same((await findings()).of('left behind'), [
    'warning: The floating IP 5.199.171.1 (11111111-0000-4000-8000-000000000000) was made for a Service of this cluster that is no more, and is paid for → Once you are sure that nobody uses it: release 5.199.171.1 at Cherry Servers',
  ])
  addService('web')
  t.match((await findings()).of('left behind'), [/^ok: All that was made/])
})

t.test("the control plane's address, at a machine that answers", async (t) => {
  const { findings, port } = await controlPlane(t, ['ok', 'ok'])
  t.same((await findings()).of(ADDRESS), [
    `ok: ${FIP} is assigned to server cp-1 (101), control-plane node cp-1`,
    `ok: An API server of this cluster answers at ${FIP}:${port}`,
  ])
})

t.test('an address that no tag, or more than one, leads to', async (t) => {
  const { findings, cherry } = await controlPlane(t, ['ok'])
  t.same((await findings({ CHERRY_FIP_TAG: 'role=other' })).of(ADDRESS), [
    `problem: No address of project ${PROJECT} has the tag role=other → Give the control plane's floating IP this tag at Cherry Servers, or correct CHERRY_FIP_TAG`,
  ])
  t.match((await findings({ CHERRY_FIP_TAG: 'role' })).of(ADDRESS), [/has the tag role= → /])
  await cherry.control.mutate({ ips: [{ create: { address: '5.199.171.9', tags: { role: 'cp' } } }] })
  t.same(
    (await findings()).of(ADDRESS)[0],
    `warning: Several addresses have the tag role=cp: ${FIP}, 5.199.171.9. The first one is looked after, and the order is Cherry's → Leave the tag on one of them`,
  )
  const fixed = await controlPlane(t, ['ok'], { address: { type: 'subnet' } })
  t.match((await fixed.findings()).of(ADDRESS), [
    /^problem: 127\.0\.0\.60 has the tag role=cp and is of type subnet: it can not be moved → Put the tag on a floating IP/,
  ])
})

t.test('an address that is nowhere, or at a machine that is no control-plane node', async (t) => {
  const free = await controlPlane(t, ['ok', 'ok'], { at: 0 })
  t.same((await free.findings()).of(ADDRESS), [
    `ok: ${FIP} is assigned to no server yet: workers give it to a control-plane node that answers`,
  ])
  const astray = await controlPlane(t, ['ok'])
  await astray.addNode('w1', 7)
  await astray.cherry.control.mutate({ ips: [{ address: FIP, targeted_to: 7 }] })
  t.match((await astray.findings()).of(ADDRESS), [
    /^warning: 127\.0\.0\.60 is assigned to server w1 \(7\), which is no control-plane node of this cluster: it stays there as long as/,
    /^warning: No API server of this cluster answers at 127\.0\.0\.60:\d+ from here → Check CHERRY_API_SERVER_PORT/,
  ])
})

t.test('machines that could not take the address over', async (t) => {
  const w = await controlPlane(t, ['ok', 'refuse'])
  await w.addNode('cp-9', 109, { region: 'NL-Amsterdam' }, CONTROL_PLANE)
  w.kubernetes.create('nodes', {
    metadata: { name: 'elsewhere', labels: CONTROL_PLANE },
    spec: { providerID: 'hcloud://5' },
  })
  t.match((await w.findings()).of(ADDRESS).slice(1), [
    /^warning: Control-plane nodes that can not have it, since they are no servers of the project: elsewhere → /,
    /^warning: Control-plane nodes that can not have it, since they are not in its region LT-Siauliai: cp-9 \(NL-Amsterdam\) → /,
    /^ok: An API server of this cluster answers/,
    /^warning: From here no API server answers at port \d+ of cp-2, cp-9, elsewhere: the address would not be moved to them → /,
  ])
  const none = await controlPlane(t, [], { at: 0 })
  t.equal(
    (await none.findings()).of(ADDRESS)[1],
    'problem: No node has the label node-role.kubernetes.io/control-plane: nobody could take the address over → Label the nodes of the control plane',
  )
})

t.test('where nobody answers at the address, or only the way to it is broken', async (t) => {
  const dead = await controlPlane(t, ['refuse', 'ok'])
  t.match(
    (await dead.findings()).of(ADDRESS)[1],
    /^warning: No API server of this cluster answers at 127\.0\.0\.60:\d+ from/,
  )
  const closed = await controlPlane(t, ['ok'], { env: { CHERRY_API_SERVER_PORT: '1' } })
  t.match(
    (await closed.findings()).of(ADDRESS)[1],
    /^warning: No API server of this cluster answers at 127\.0\.0\.60:1, but machine cp-1, which has the address, does/,
  )
  t.match(
    (await closed.findings({ CHERRY_FIP_HEALTH_CHECK_USE_HOST_IP: 'true' })).of(ADDRESS)[1],
    /^ok: An API server of this cluster answers at 127\.0\.0\.61:/,
  )
})

t.test('a port that nobody tells', async (t) => {
  const { findings, kubernetes } = await controlPlane(t, ['ok'])
  kubernetes.delete('endpointslices', 'kubernetes', 'default')
  kubernetes.change('services', 'kubernetes', (service) => {
    ;(service.spec as Record<string, unknown>).ports = [{ name: 'https', port: 443, targetPort: 'https' }]
  })
  t.match((await findings()).of(ADDRESS)[1], /^problem: The port of the API servers is not known: .* → Look at Service/)
})

t.test('an account is looked at where the cluster can not be asked', async (t) => {
  const { findings, kubernetes } = await controlPlane(t, ['ok'], { env: { CHERRY_LOAD_BALANCER: 'metallb:///' } })
  await kubernetes.close()
  const { of } = await findings()
  t.match(of('kubernetes'), [/^problem/])
  t.match(of(SERVERS), [/^ok/, 'ok: The project has 1 servers'])
  t.match(of(BALANCERS), [/^ok: BGP/, /^ok: Addresses are made/])
  t.same([...of(ADDRESS), ...of('metallb')], [])
})

t.test('beside Hetzner, each cloud counts its own nodes', async (t) => {
  const hcloud = await startHcloudSimulator({ token: 'h'.repeat(64) })
  t.teardown(() => hcloud.close())
  hcloud.control.seed({ servers: [{ id: 1, name: 'h1' }] })
  const { findings, addNode, kubernetes, cherry } = await world(t, {
    env: {
      CHERRY_LOAD_BALANCER: 'kube-vip://',
      HCLOUD_TOKEN: 'h'.repeat(64),
      HCLOUD_ENDPOINT: hcloud.apiUrl,
      HCLOUD_METADATA_ENDPOINT: hcloud.metadataUrl,
    },
  })
  await addNode('c1', 1)
  await cherry.control.mutate({ servers: [{ create: { hostname: 'c2' } }] })
  kubernetes.create('nodes', { metadata: { name: 'c2' } })
  kubernetes.create('nodes', { metadata: { name: 'h1' } })
  const both = await findings()
  t.equal(both.of(SERVERS)[1], 'ok: The project has the servers of all 2 nodes')
  t.ok(both.of('hetzner cloud').includes('ok: The project has the servers of all 1 nodes'))
})
