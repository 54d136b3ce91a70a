import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { type Admin, ApiRefusal, adminClient, nodeDefaults } from './admin.ts'
import type { Role } from './roles.ts'
import { type ApiServer, startApiServer } from './start.ts'

let server: ApiServer
let startedInMs = 0

t.before(async () => {
  const startedAt = performance.now()
  server = await startApiServer({ log: (line) => t.comment(line) })
  startedInMs = Math.round(performance.now() - startedAt)
})
t.after(async () => await server.stop())

t.test('the real API server starts and knows its version', async (t) => {
  t.comment(`ready in ${startedInMs} ms`)
  const version = await server.admin.send('GET', '/version')
  t.match(version, { gitVersion: /^v1\.\d+\.\d+$/ })
})

t.test('what a role may do is what k8s/base grants, and nothing else', async (t) => {
  const allowed: Record<Role, string[]> = {
    forwarder: [...verbs('nodes', 'get list watch'), ...verbs('services', 'get list watch')],
    worker: [
      ...verbs('nodes', 'get list patch update delete'),
      ...verbs('nodes/status', 'patch'),
      ...verbs('services', 'get list'),
      ...verbs('services/status', 'patch update'),
      ...verbs('events', 'create patch'),
      ...verbs('namespaces named kube-system', 'get'),
      ...verbs('leases.coordination.k8s.io in kube-system', 'get'),
      // What Cherry Servers asks for.
      ...verbs('ipaddresspools.metallb.io', 'list create patch delete'),
      ...verbs('bgppeers.metallb.io', 'list create patch delete'),
      ...verbs('bgpadvertisements.metallb.io', 'list create patch delete'),
      ...verbs('services in kube-system', 'create'),
      ...verbs('services named cloud-provider-cherry-kubernetes-external in kube-system', 'patch'),
      ...verbs('endpoints named cloud-provider-cherry-kubernetes-external in kube-system', 'get delete'),
      ...verbs('endpointslices.discovery.k8s.io in kube-system', 'create patch delete'),
      ...verbs('endpointslices.discovery.k8s.io in default,kube-system', 'list'),
    ],
    all: [],
  }
  allowed.all = [...new Set([...allowed.forwarder, ...allowed.worker])]

  for (const role of ['forwarder', 'worker', 'all'] as const) {
    const client = clientOf(role)
    const granted = await grantedTo(client)
    client.close()
    t.strictSame(granted, allowed[role].sort(), `${role} has its own rights`)
  }
})

t.test('a request beyond the rights is refused', async (t) => {
  const forwarder = clientOf('forwarder')
  const worker = clientOf('worker')
  t.teardown(() => {
    forwarder.close()
    worker.close()
  })
  await server.admin.createNode({ kind: 'Node', metadata: { name: 'guarded' } })

  t.equal((await forwarder.list('Node')).length, 1, 'the forwarder sees nodes')
  await t.rejects(forwarder.patch('Node', undefined, 'guarded', { metadata: { labels: { a: 'b' } } }), refused)
  await t.rejects(forwarder.delete('Node', undefined, 'guarded'), refused)
  await t.rejects(forwarder.list('Secret'), refused)

  await worker.patch('Node', undefined, 'guarded', { spec: { providerID: 'hcloud://1' } })
  const address = { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] } }
  await worker.patch('Node', undefined, 'guarded', address, 'strategic', 'status')
  await t.rejects(worker.list('Secret'), refused)
  await t.rejects(worker.list('Namespace'), refused)
  await t.rejects(worker.get('Namespace', undefined, 'default'), refused)
  t.ok(await worker.get('Namespace', undefined, 'kube-system'), 'the worker reads the uid of kube-system')
  await t.rejects(
    worker.create('Node', undefined, nodeDefaults({ kind: 'Node', metadata: { name: 'x' } }).node),
    refused,
  )
  await worker.delete('Node', undefined, 'guarded')
})

t.test('a Service takes finalizer and ingress through its status from a worker', async (t) => {
  const worker = clientOf('worker')
  t.teardown(() => worker.close())
  await server.admin.apply('Service', 'default', 'web', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  })
  const body = {
    metadata: { finalizers: ['service.kubernetes.io/load-balancer-cleanup'] },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  }
  await worker.patch('Service', 'default', 'web', body, 'strategic', 'status')
  const service = await server.admin.get('Service', 'default', 'web')
  t.match(service, body)
  await t.rejects(worker.patch('Service', 'default', 'web', { spec: { type: 'ClusterIP' } }), refused)
})

t.test('what was stored outlives a kill -9', async (t) => {
  await server.admin.create('ConfigMap', 'default', { metadata: { name: 'kept' }, data: { a: 'b' } })
  await server.kill9()
  await t.rejects(server.admin.get('ConfigMap', 'default', 'kept'), 'nobody answers')
  await server.restart()
  t.match(await server.admin.get('ConfigMap', 'default', 'kept'), { data: { a: 'b' } })
  const forwarder = clientOf('forwarder')
  t.ok(await forwarder.list('Service'), 'the tokens from before are still good')
  forwarder.close()
})

t.test('a killed test leaves no server and no data behind', async (t) => {
  const tmp = mkdtempSync(join(tmpdir(), 'windlass-test-'))
  t.teardown(() => rmSync(tmp, { recursive: true, force: true }))
  const script = `
    const { startApiServer } = await import(${JSON.stringify(new URL('./start.ts', import.meta.url).href)})
    const server = await startApiServer()
    const { dirname } = await import('node:path')
    process.stdout.write(JSON.stringify({ url: server.url, ca: server.ca, dir: dirname(server.kubeconfigFor('all')) }))
    setInterval(() => {}, 60_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, TMPDIR: tmp },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [chunk] = await new Promise<[Buffer]>((resolve) => child.stdout.once('data', (data) => resolve([data])))
  const { url, ca, dir } = JSON.parse(chunk.toString())
  t.ok(existsSync(dir), 'its data is there while it runs')
  child.kill('SIGKILL')

  const client = adminClient({ url, ca, token: '' })
  t.teardown(() => client.close())
  await eventually(async () => !existsSync(dir) && (await client.send('GET', '/version').catch(isConnectionError)))
  t.pass('the port is closed and the data gone')
})

const refused = /: 403 /

function clientOf(role: Role): Admin {
  return adminClient({ url: server.url, ca: server.ca, token: server.tokenFor(role) })
}

function verbs(what: string, list: string): string[] {
  return list.split(' ').map((verb) => `${verb} ${what}`)
}

/** The rights of a client on resources, asked from the API server itself, without those of every authenticated user. */
async function grantedTo(client: Admin): Promise<string[]> {
  const found = new Map<string, Set<string>>()
  for (const namespace of ['default', 'kube-system', 'windlass']) {
    const review = await client.send('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    })
    for (const rule of review.status.resourceRules) {
      for (const resource of rule.resources) {
        for (const group of rule.apiGroups) {
          if (/^selfsubject/.test(resource)) continue
          const named = rule.resourceNames?.length ? ` named ${rule.resourceNames.join(',')}` : ''
          const name = `${resource}${group && `.${group}`}${named}`
          for (const verb of rule.verbs) {
            const right = `${verb} ${name}`
            found.set(right, (found.get(right) ?? new Set()).add(namespace))
          }
        }
      }
    }
  }
  return [...found].map(([right, where]) => (where.size === 3 ? right : `${right} in ${[...where].join(',')}`)).sort()
}

function isConnectionError(error: unknown): boolean {
  return !(error instanceof ApiRefusal)
}

/** Waits for as long as the test runner lets it. */
async function eventually(condition: () => Promise<unknown>): Promise<void> {
  while ((await condition()) !== true) await delay(20)
}
