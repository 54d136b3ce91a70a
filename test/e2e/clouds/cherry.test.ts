import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PeerCertificate, checkServerIdentity as verifyName } from 'node:tls'
import t from 'tap'
import { parse } from 'yaml'
import { type ApiServer, startApiServer } from '../../apiserver/start.ts'
import type { Case } from '../case.ts'
import { startCherry } from './cherry.ts'
import type { SimulatedCloud } from './cloud.ts'

let server: ApiServer
const dir = mkdtempSync(join(tmpdir(), 'windlass-test-'))

t.before(async () => {
  server = await startApiServer({ log: (line) => t.comment(line) })
})
t.after(async () => {
  await server.stop()
  rmSync(dir, { recursive: true, force: true })
})

async function start(t: { teardown: (end: () => unknown) => void }, part: Partial<Case> = {}): Promise<SimulatedCloud> {
  const definition = { id: 'x', cloud: 'cherry', about: '', ...part }
  const { admin, url } = server
  const cloud = await startCherry({ definition, dir, admin, url, kubeconfig: server.kubeconfigFor('all') })
  t.teardown(() => cloud.stop())
  return cloud
}

const pool = {
  apiVersion: 'metallb.io/v1beta1',
  kind: 'IPAddressPool',
  metadata: { name: 'default.web', namespace: 'metallb-system' },
  spec: { addresses: ['5.199.171.0/32'], autoAssign: false },
}

t.test('MetalLB’s objects are watched and shown, and gone with the next case', async (t) => {
  const cloud = await start(t, { metallb: true })
  await cloud.seed({})
  const before = await cloud.activity()
  await server.admin.create('IPAddressPool', 'metallb-system', pool)
  t.not((await cloud.activity()).revision, before.revision)
  t.match((await cloud.world()).objects, { 'IPAddressPool/metallb-system/default.web': { spec: pool.spec } })

  const next = await start(t, { metallb: true })
  await next.seed({})
  t.strictSame((await next.world()).objects, {})
  await start(t)
  await t.rejects(server.admin.list('IPAddressPool'), /: 404 /, 'a case without MetalLB')
})

t.test('MetalLB can come in the middle of a case, with namespaces of its own', async (t) => {
  const cloud = await start(t, { metallb: 'later', metallb_namespaces: ['lb-system'] })
  await cloud.seed({})
  await t.rejects(server.admin.list('BGPPeer'), /: 404 /)
  t.strictSame((await cloud.world()).objects, {})
  await cloud.mutate({ metallb: 'install' })
  const peer = { metadata: { name: 'w1-0' }, spec: { myASN: 1, peerASN: 2, peerAddress: '192.0.2.1' } }
  const made = await server.admin.create('BGPPeer', 'lb-system', {
    apiVersion: 'metallb.io/v1beta2',
    kind: 'BGPPeer',
    ...peer,
  })
  t.match(made.spec, { peerPort: 179, disableMP: false }, 'defaults')
  await t.rejects(
    server.admin.send('POST', '/apis/metallb.io/v1beta1/namespaces/lb-system/bgppeers', {
      apiVersion: 'metallb.io/v1beta1',
      kind: 'BGPPeer',
      metadata: { name: 'w1-1' },
      spec: { myASN: 1 },
    }),
    /: 422 /,
    'required fields',
  )
})

t.test('the control plane’s Service is shown with Endpoints, or EndpointSlices in their place', async (t) => {
  const cloud = await start(t, { external: true })
  await cloud.seed({})
  const name = 'cloud-provider-cherry-kubernetes-external'
  const { admin } = server
  const port = Number(new URL(server.url).port)
  await admin.create('Service', 'kube-system', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { type: 'LoadBalancer', loadBalancerIP: '127.0.0.50', ports: [{ name: 'https', port }] },
  })
  await admin.create('EndpointSlice', 'kube-system', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-a`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.168.0.42'] }, { addresses: ['10.168.0.5'] }],
    ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  })
  const subsets = [
    {
      addresses: [{ ip: '10.168.0.5' }, { ip: '10.168.0.42' }],
      ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
    },
  ]
  t.match((await cloud.world()).objects, {
    [`ServiceSpec/kube-system/${name}`]: { loadBalancerIP: '127.0.0.50', ports: [{ port: '{api port}' }] },
    [`Endpoints/kube-system/${name}`]: { subsets },
  })
  await start(t)
  t.strictSame(await admin.list('EndpointSlice', 'kube-system'), [], 'gone with the next case')
  await admin.delete('Service', 'kube-system', name)
})

t.test('the controller may trust the API servers of simulated nodes, at the port of the real one', async (t) => {
  const cloud = await start(t)
  const ip_addresses = [{ address: '127.0.0.171', type: 'primary-ip' }]
  await cloud.seed({ servers: [{ hostname: 'cp-1', ip_addresses, apiserver: 'ok' }] })
  const { clusters } = parse(readFileSync(cloud.env().KUBECONFIG ?? '', 'utf8'))
  const ca = Buffer.from(clusters[0].cluster['certificate-authority-data'], 'base64').toString()
  const { port } = new URL(server.url)
  // whatever the address, it has to be the API server's name that the certificate is for
  const checkServerIdentity = (_: string, certificate: PeerCertificate) => verifyName('127.0.0.1', certificate)
  const status = (host: string, path: string) =>
    new Promise((resolve, reject) => {
      get({ host, port, path, ca, checkServerIdentity, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      }).on('error', reject)
    })
  t.equal(await status('127.0.0.171', '/healthz'), 200)
  t.equal(await status('127.0.0.1', '/readyz'), 200)
  t.match(await cloud.requestLog(), [{ address: '127.0.0.171', authorized: false, status: 200 }])
})

t.test('the configuration file holds what the case says', async (t) => {
  const fileOf = async (cloud_config: unknown) => (await start(t, { cloud_config })).env().CHERRY_CLOUD_CONFIG ?? ''
  t.equal(readFileSync(await fileOf(undefined), 'utf8'), '{}')
  t.equal(readFileSync(await fileOf({ projectID: 7 }), 'utf8'), '{"projectID":7}')
  t.equal(readFileSync(await fileOf('apiKey: x'), 'utf8'), 'apiKey: x')
  rmSync(join(dir, 'cloud-sa.json'))
  t.notOk(existsSync(await fileOf(null)))
})

t.test('steps of a case reach the account', async (t) => {
  const cloud = await start(t, { account: {} })
  await cloud.seed({ servers: [{ hostname: 'w1' }], ips: [{ tags: { cluster: '{kube-system uid}' } }] })
  const { CHERRY_API_URL: url, CHERRY_API_KEY: key, CHERRY_PROJECT_ID: project } = cloud.env()
  const read = () => fetch(`${url}projects/${project}/ips`, { headers: { authorization: `Bearer ${key}` } })
  await cloud.fault({ match: 'GET /ips', kind: 'error', code: 500 })
  t.equal((await read()).status, 500)
  t.equal((await read()).status, 200)
  t.strictSame(await cloud.calls(), { 'GET /projects/{id}/ips': 2 })
  await cloud.mutate({ servers: [{ hostname: 'w1', $delete: true }] })
  t.match((await cloud.world()).account, { projects: [{ id: 87553, name: 'lab' }], servers: {} })
})
