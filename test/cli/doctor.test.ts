import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { RIGHTS } from '../../src/cli/doctor/rights.ts'
import type { DoctorDocument, Finding } from '../../src/cli/doctor/types.ts'
import { verify } from '../../src/events/verify.ts'
import { startRedis } from '../redis.ts'
import { startHcloudSimulator } from '../simulators/hcloud/simulator.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const TOKEN = 'k'.repeat(64)
const READER = 'r'.repeat(64)
const ROBOT = { user: 'robot-user', password: 'robot-secret' }
const KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

async function world(t: Test) {
  const kubernetes = await startKubernetesSimulator()
  const hcloud = await startHcloudSimulator({ token: TOKEN, robot: ROBOT })
  t.teardown(() => Promise.all([kubernetes.close(), hcloud.close()]))
  const kubeconfig = join(t.testdir(), 'kubeconfig')
  writeFileSync(kubeconfig, kubernetes.kubeconfig)
  async function doctor(env: Record<string, string | undefined> = {}, ...argv: string[]) {
    const child = spawn(process.execPath, [join(ROOT, 'src', 'main.ts'), 'doctor', ...argv], {
      env: {
        KUBECONFIG: kubeconfig,
        HCLOUD_TOKEN: TOKEN,
        HCLOUD_ENDPOINT: hcloud.apiUrl,
        HCLOUD_METADATA_ENDPOINT: hcloud.metadataUrl,
        ROBOT_ENDPOINT: hcloud.robotUrl,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    for (const secret of [TOKEN, READER, ROBOT.password, 'redis-secret', KEY])
      t.notMatch(`${output}${errors}`, secret, 'no secret is printed')
    return { code: code as number, output, errors }
  }
  return {
    kubernetes,
    hcloud,
    doctor,
    async findings(env: Record<string, string | undefined> = {}, ...argv: string[]) {
      const { code, output } = await doctor(env, '--json', ...argv)
      const { findings, clusters } = JSON.parse(output) as DoctorDocument
      const all = [...findings, ...clusters.flatMap((one) => one.findings)]
      const of = (area: string, level?: Finding['level']) =>
        all.filter((one) => one.area === area && (level === undefined || one.level === level))
      return { code, all, of }
    },
    addNode(name: string, spec: object, annotations: Record<string, string> = {}) {
      kubernetes.create('nodes', { metadata: { name, annotations }, spec: { ...spec } })
    },
  }
}

t.jobs = 2

t.test('a good installation has no problems', async (t) => {
  const { findings, hcloud, addNode, kubernetes } = await world(t)
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const seen: unknown[] = []
  const server = createServer(async (request, response) => {
    const body = Buffer.from(await text(request))
    seen.push([request.url, body.toString(), verify([KEY], request.headers, body, Date.now()).fault])
    response.writeHead(202).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  hcloud.control.seed({
    networks: [{ id: 5, name: 'net', subnets: [{ ip_range: '10.0.0.0/24' }] }],
    servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.2' }] }],
    robot_servers: [{ server_name: 'metal' }],
    metadata: { server: 'w1' },
  })
  addNode('w1', { providerID: 'hcloud://1' })
  const { code, all, of } = await findings({
    HCLOUD_NETWORK: 'net',
    HCLOUD_NETWORK_ROUTES_ENABLED: 'false',
    ROBOT_ENABLED: 'true',
    ROBOT_USER: ROBOT.user,
    ROBOT_PASSWORD: ROBOT.password,
    WINDLASS_REDIS_URL: redis.url,
    WINDLASS_SERVER_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    WINDLASS_WEBHOOK_KEYS: KEY,
  })
  t.same(
    all.filter(({ level }) => level === 'problem'),
    [],
  )
  t.equal(code, 0)
  t.match(of('hetzner cloud', 'ok'), [{ what: /takes the token/ }, { what: /may write/ }, { what: /all 1 nodes/ }])
  t.match(of('hetzner network', 'ok'), [{ what: /Network net \(5\)/ }, { what: /attached/ }])
  t.match(of('hetzner robot', 'ok'), [{ what: /1 servers/ }])
  t.match(of('redis', 'ok')[0], { what: /answers, and evicts nothing/ })
  t.match(of('other controller'), [{ level: 'ok' }])
  t.same(seen, [['/v1/clusters/default/events', '[]', undefined]])
  t.same(hcloud.control.state().load_balancers, [])
  const writes = kubernetes.requests.filter(({ method, url }) => method !== 'GET' && !/selfsubject/.test(url))
  t.same(writes, [])
})

t.test('a token that may only read, and one that is refused', async (t) => {
  const { findings, hcloud, addNode } = await world(t)
  hcloud.control.seed({ tokens: [{ token: READER, readonly: true }] })
  const reader = await findings({ HCLOUD_TOKEN: READER })
  t.equal(reader.code, 1)
  t.match(reader.of('hetzner cloud', 'problem'), [{ what: /may only read/, toDo: /read and write/ }])
  addNode('w1', { providerID: 'hcloud://1' })
  addNode('w2', {})
  addNode('w3', { providerID: 'aws:///eu/i-1' })
  const refused = await findings({ HCLOUD_TOKEN: 'x'.repeat(64) })
  t.match(refused.of('hetzner cloud'), [{ level: 'problem' }])
  t.same(refused.of('nodes', 'ok'), [], 'what was not looked at is not in order')
  t.match(refused.of('nodes', 'warning').at(-1), { what: /^Not compared with machines.*: w1, w2$/, toDo: /cloud/ })
})

t.test("another project's token is told by the servers that it shows", async (t) => {
  const { findings, hcloud, addNode } = await world(t)
  hcloud.control.seed({ servers: [{ id: 9, name: 'other' }] })
  addNode('w1', { providerID: 'hcloud://1' })
  const { of } = await findings()
  t.match(of('hetzner cloud', 'problem'), [{ what: /none of the cluster's 1 nodes/, toDo: /cluster's project/ }])
})

t.test('private targets without a network', async (t) => {
  const { findings } = await world(t)
  const privately = { HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP: 'true' }
  t.match((await findings(privately)).of('hetzner network', 'problem'), [{ what: /private/, toDo: /HCLOUD_NETWORK/ }])
  const off = { ...privately, HCLOUD_LOAD_BALANCERS_ENABLED: 'false' }
  t.match((await findings(off)).of('hetzner network'), [{ level: 'ok' }])
})

t.test('a Robot login is tried once only', async (t) => {
  const { findings, hcloud, addNode } = await world(t)
  addNode('metal', { providerID: 'hrobot://321' })
  const { code, of } = await findings({ ROBOT_ENABLED: 'true', ROBOT_USER: 'someone', ROBOT_PASSWORD: 'wrong-one' })
  t.equal(code, 1)
  t.match(of('hetzner robot', 'problem'), [{ what: /refused/ }])
  t.equal(hcloud.control.counters().calls['ROBOT GET /server'], 1)
})

t.test('what nodes say of the flags of their kubelets', async (t) => {
  const { findings, hcloud, addNode } = await world(t)
  hcloud.control.seed({ servers: [1, 2, 3, 4].map((id) => ({ id, name: `w${id}` })) })
  addNode('w1', {})
  addNode('w2', { providerID: 'hcloud://2' }, { 'alpha.kubernetes.io/provided-node-ip': '192.0.2.77' })
  addNode('w3', { providerID: 'k3s://w3' })
  addNode('w4', { providerID: 'hcloud://4', podCIDR: '10.9.0.0/24', podCIDRs: ['10.9.0.0/24'] })
  const { of } = await findings()
  t.match(of('nodes', 'problem'), [
    { what: /asks for one: w1$/, toDo: /--cloud-provider=external/ },
    { what: /Node w2: kubelet's --node-ip 192\.0\.2\.77/ },
  ])
  t.match(of('nodes', 'warning'), [{ what: /w3 \(k3s:\/\/w3\)/ }])
})

t.test('pod CIDRs outside of the cluster CIDR, where routes are on', async (t) => {
  const { findings, hcloud, addNode } = await world(t)
  hcloud.control.seed({
    networks: [{ name: 'net', subnets: [{ ip_range: '10.0.0.0/24' }] }],
    servers: [{ id: 4, name: 'w4', private_net: [{ network: 'net' }] }],
  })
  addNode('w4', { providerID: 'hcloud://4', podCIDR: '10.9.0.0/24', podCIDRs: ['10.9.0.0/24'] })
  const env = { HCLOUD_NETWORK: 'net', HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK: 'true' }
  const { of } = await findings(env, '--allocate-node-cidrs', '--cluster-cidr=10.244.0.0/16')
  t.match(of('nodes', 'problem'), [{ what: /10\.244\.0\.0\/16: w4 \(10\.9\.0\.0\/24\)/ }])
})

t.test('another controller is told by its lease and its writes', async (t) => {
  const { findings, kubernetes } = await world(t)
  const now = () => new Date().toISOString().replace('Z', '000Z')
  kubernetes.create('leases', {
    metadata: { name: 'cloud-controller-manager', namespace: 'kube-system' },
    spec: { holderIdentity: 'node-1_abc', leaseDurationSeconds: 15, renewTime: now() },
  })
  kubernetes.create('nodes', {
    metadata: {
      name: 'w1',
      managedFields: [{ manager: 'hcloud-cloud-controller-manager', operation: 'Update', time: now() }],
    },
    spec: { taints: [] },
  })
  const renewing = setInterval(
    () =>
      kubernetes.change(
        'leases',
        'cloud-controller-manager',
        (lease) => Object.assign(lease.spec as object, { renewTime: now() }),
        'kube-system',
      ),
    300,
  )
  t.teardown(() => clearInterval(renewing))
  const { of } = await findings()
  t.match(of('other controller'), [
    { level: 'problem', what: /node-1_abc renews Lease/ },
    { level: 'warning', what: /hcloud-cloud-controller-manager wrote/ },
  ])
})

t.test('what can not be reached is a finding, and the table says what to do', async (t) => {
  const { doctor, kubernetes, hcloud } = await world(t)
  await Promise.all([kubernetes.close(), hcloud.close()])
  const { code, output } = await doctor({
    WINDLASS_REDIS_URL: 'redis://:redis-secret@127.0.0.1:1',
    WINDLASS_SERVER_URL: 'http://127.0.0.1:1',
    WINDLASS_WEBHOOK_KEYS: KEY,
  })
  t.equal(code, 1)
  for (const area of ['redis', 'kubernetes', 'hetzner cloud', 'server'])
    t.match(output, new RegExp(`PROBLEM +${area} .*\\n +→ `))
  t.match(await doctor({ KUBECONFIG: '' }), { code: 1, output: /PROBLEM +kubernetes/ })
})

t.test("what Services that are no more have left behind, and not what may be another cluster's", async (t) => {
  const { findings, hcloud, addNode } = await world(t)
  const labels = { 'hcloud-ccm/service-uid': 'of-nobody' }
  hcloud.control.seed({
    servers: [{ id: 1, name: 'w1' }],
    load_balancers: [
      { id: 7, name: 'ours', labels, targets: [{ type: 'server', server: { id: 1 } }] },
      { id: 8, name: 'anothers', labels },
    ],
  })
  addNode('w1', { providerID: 'hcloud://1' })
  t.match((await findings()).of('left behind'), [
    {
      level: 'warning',
      what: /^The load balancer "ours" \(7\) was made for a Service/,
      toDo: /hcloud load-balancer delete 7/,
    },
  ])
  hcloud.control.mutate({ load_balancers: [{ id: 7, delete: true }] })
  t.match((await findings()).of('left behind'), [{ level: 'ok' }])
})

t.test('without a cloud it says what each of them needs, and a forwarder needs none', async (t) => {
  const { findings, addNode } = await world(t)
  const bare = await findings({ HCLOUD_TOKEN: undefined })
  t.equal(bare.code, 1)
  t.match(bare.of('cloud'), [
    {
      level: 'problem',
      what: 'No cloud is configured, so workers would not start',
      toDo: /Set HCLOUD_TOKEN for Hetzner, or CHERRY_API_KEY and CHERRY_PROJECT_ID for Cherry Servers/,
    },
  ])
  const forwarder = await findings({ HCLOUD_TOKEN: undefined, WINDLASS_SERVER_URL: 'http://127.0.0.1:1' })
  t.match(forwarder.of('cloud'), [
    { level: 'warning', what: 'No cloud is configured', toDo: /Nothing, for a forwarder/ },
  ])
  t.same((await findings()).of('cloud'), [])
  addNode('w1', { taints: [{ key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' }] })
  addNode('w2', { providerID: 'hcloud://1' })
  const nodes = (await findings({ HCLOUD_TOKEN: undefined, WINDLASS_SERVER_URL: 'http://127.0.0.1:1' })).of('nodes')
  t.match(nodes, [{ level: 'warning', what: /^Not compared with machines.*: w1, w2$/ }])
  t.equal(nodes.length, 1)
})

t.test('the rights that are asked for are those of k8s/base', async (t) => {
  const files: [file: string, roles: string[]][] = [
    ['forwarder-rbac.yaml', ['forwarder']],
    ['worker-rbac.yaml', ['worker']],
    ['cherry-rbac.yaml', ['metallb', 'address']],
  ]
  for (const [file, roles] of files) {
    const granted = parseAllDocuments(readFileSync(join(ROOT, 'k8s', 'base', file), 'utf8'))
      .map((document) => document.toJS())
      .filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole')
      .flatMap(({ metadata, rules }) => rules.map((rule: object) => ({ ...rule, namespace: metadata.namespace })))
      .flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs, namespace }) =>
        apiGroups.flatMap((group: string) =>
          resources.flatMap((resource: string) =>
            resourceNames.flatMap((name?: string) =>
              verbs.map((verb: string) => [group, resource, namespace ?? '', name ?? '', verb].join(' ')),
            ),
          ),
        ),
      )
    const asked = RIGHTS.filter(({ role }) => roles.includes(role)).flatMap((right) =>
      right.verbs.map((verb) => {
        const resource = right.subresource ? `${right.resource}/${right.subresource}` : right.resource
        return [right.group, resource, right.namespace ?? '', right.name ?? '', verb].join(' ')
      }),
    )
    t.same(asked.sort(), granted.sort(), file)
  }
})
