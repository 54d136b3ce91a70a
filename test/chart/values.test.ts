import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { CHART, helm, render } from '../../infra/helm.ts'
import { SETTINGS } from '../../src/config/table.ts'
import type { Json } from '../apiserver/admin.ts'
import {
  deploymentsOf,
  listenOf,
  objectsOf,
  rolesOf,
  type Secrets,
  type Started,
  startOf,
  WEBHOOK_KEY,
} from './pods.ts'

const IMAGE = { repository: 'registry.example.com/windlass' }
const TOKEN = 'k'.repeat(64)

/** As the replaced controller's own installation has them. */
const SECRETS: Secrets = {
  hcloud: { token: TOKEN, network: 'prod', 'robot-user': 'u', 'robot-password': 'p' },
  'windlass-internal': {
    WINDLASS_WEBHOOK_KEYS: WEBHOOK_KEY,
    WINDLASS_REDIS_PASSWORD: 'secret',
    WINDLASS_DASHBOARD_PASSWORD: 'p',
    WINDLASS_METRICS_TOKEN: 'numbers',
  },
}

/** What all processes of these values start with, by role. */
async function started(t: Test, values: object): Promise<Map<string, Started & { container: Json }>> {
  const objects = objectsOf(await render({ image: IMAGE, ...values }))
  const roles = new Map<string, Started & { container: Json }>()
  for (const deployment of deploymentsOf(objects))
    for (const container of rolesOf(deployment)) {
      const one = { ...(await startOf(container, objects, SECRETS)), container }
      roles.set(one.command, one)
      t.same(one.notices, [], `${one.command} has nothing to notice`)
    }
  return roles
}

const clustersOf = (one: Started | undefined) => one!.settings.clusters[0]!

t.test('helm finds nothing to complain about', async (t) => {
  const { code, stdout, stderr } = await helm(['lint', CHART, '--strict'], { values: { image: IMAGE } })
  t.equal(code, 0, stdout + stderr)
})

t.test("with the Secret of Hetzner's own installation nothing but the image needs to be said", async (t) => {
  const roles = await started(t, {})
  t.same([...roles.keys()], ['all'])
  const { clouds, framework } = clustersOf(roles.get('all'))
  t.same(
    Object.keys(clouds).filter((name) => clouds[name as 'hcloud']),
    ['hcloud'],
  )
  t.match(clouds.hcloud, { network: undefined, metricsAddress: ':8233' })
  t.same(framework.clusterCidrs, [])
  t.match(roles.get('all')!.container, { image: 'registry.example.com/windlass:0.1.0' })
  t.equal(roles.get('all')!.env.HCLOUD_TOKEN, TOKEN)
  t.match(clouds.hcloud?.token, { name: /HCLOUD_TOKEN in / }, 'as a file too, which follows the Secret')
})

t.test("a values file of Hetzner's chart works as it is", async (t) => {
  const values = {
    kind: 'Deployment',
    replicaCount: 1,
    nameOverride: 'hccm',
    selectorLabels: { 'app.kubernetes.io/name': 'hccm' },
    args: {
      'cloud-provider': 'hcloud',
      'allow-untagged-cloud': '',
      'route-reconciliation-period': '30s',
      'webhook-secure-port': '0',
      'feature-gates': null,
      'node-monitor-period': '7s',
      v: 4,
    },
    env: {
      HCLOUD_LOAD_BALANCERS_LOCATION: { value: 'fsn1' },
      HCLOUD_LOAD_BALANCERS_ENABLED: { value: '{{ eq .Release.Namespace "windlass" }}' },
      HCLOUD_TOKEN: { valueFrom: { secretKeyRef: { name: 'hetzner' } } },
      ROBOT_PASSWORD: null,
      NODE_NAME: { valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
    },
    networking: { enabled: true, clusterCIDR: '10.42.0.0/16' },
    monitoring: { enabled: false },
    resources: { limits: { memory: '64Mi' } },
    nodeSelector: { 'node-role.kubernetes.io/control-plane': '' },
    additionalTolerations: [{ key: 'mine', operator: 'Exists' }],
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
    podLabels: { team: 'infra' },
    podAnnotations: { why: 'because' },
    extraVolumes: [{ name: 'tokens', emptyDir: {} }],
    extraVolumeMounts: [{ name: 'tokens', mountPath: '/tokens' }],
    priorityClassName: 'system-node-critical',
  }
  for (const mode of ['single', 'split']) {
    const objects = objectsOf(await render({ image: IMAGE, mode, ...values }))
    const worker = deploymentsOf(objects).find(({ metadata }) => /^windlass(-worker)?$/.test(metadata.name))
    const [container] = rolesOf(worker)
    container.env = container.env.filter(({ name }: Json) => name !== 'NODE_NAME')
    const { settings, env, notices } = await startOf(container, objects, { ...SECRETS, hetzner: { token: TOKEN } })
    for (const notice of notices) t.match(notice, /^has no effect/)
    const { clouds, framework } = settings.clusters[0]!
    t.match(clouds.hcloud, {
      network: 'prod',
      metricsAddress: undefined,
      loadBalancers: { location: 'fsn1', enabled: true },
    })
    t.match(framework, {
      clusterCidrs: ['10.42.0.0/16'],
      routeReconciliationPeriodMs: 30_000,
      nodeMonitorPeriodMs: 7000,
    })
    t.match(env, { HCLOUD_TOKEN: TOKEN, ROBOT_USER: 'u', ROBOT_PASSWORD: undefined, HCLOUD_METRICS_ENABLED: 'false' })
    const { metadata, spec } = worker.spec.template
    t.match(metadata, {
      labels: { team: 'infra', 'app.kubernetes.io/name': 'windlass' },
      annotations: { why: 'because' },
    })
    t.match(spec, {
      nodeSelector: values.nodeSelector,
      affinity: { ...values.affinity, podAntiAffinity: Object },
      priorityClassName: 'system-node-critical',
    })
    t.ok(spec.tolerations.some(({ key }: Json) => key === 'mine'))
    t.ok(spec.volumes.some(({ name }: Json) => name === 'tokens'))
    t.ok(container.volumeMounts.some(({ name }: Json) => name === 'tokens'))
    t.notOk(container.resources.limits, 'what another program needed says nothing')
  }
})

t.test('each role has the settings that it uses, and no credential of another', async (t) => {
  const dir = t.testdir({})
  const file = join(dir, 'cloud-sa.json')
  writeFileSync(file, JSON.stringify({ apiKey: 'k', projectID: 1 }))
  const roles = await started(t, {
    mode: 'split',
    clouds: ['hcloud', 'cherryservers'],
    configSecret: { name: '' },
    server: { metricsToken: true },
    args: { 'cloud-config': file, controllers: '*,-route', 'cluster-cidr': '10.0.0.0/8', 'log-level': 'warn' },
    env: {
      WINDLASS_CLUSTER: 'prod',
      WINDLASS_HCLOUD_LOAD_BALANCER_CLASS: 'example.com/mine',
      WINDLASS_REDIS_PREFIX: 'mine',
      WINDLASS_DASHBOARD_USER: 'me',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://traces.example.com:4318',
      HTTPS_PROXY: 'http://proxy.example.com',
    },
  })
  t.same([...roles.keys()].sort(), ['forwarder', 'server', 'worker'])
  for (const [role, one] of roles) {
    t.equal(clustersOf(one).id, 'prod', role)
    t.match(one.settings, { log: { level: 'warn' }, traces: { endpoint: 'http://traces.example.com:4318' } }, role)
    t.equal(one.env.HTTPS_PROXY, 'http://proxy.example.com', role)
    if (role !== 'worker') t.notMatch(JSON.stringify(one), TOKEN, `${role} has no credential of a cloud`)
    const { port, host } = listenOf(one)!
    t.match(one.container.readinessProbe.httpGet, { port })
    t.match(one.container.ports, [{ name: 'metrics', containerPort: port }])
    t.equal(one.container.readinessProbe.httpGet.host, host === '127.0.0.1' ? host : undefined, role)
  }
  const worker = roles.get('worker')!
  const server = roles.get('server')!
  t.match(clustersOf(worker).clouds, { hcloud: {}, cherry: { projectId: 1 } })
  t.match(clustersOf(worker).framework.clusterCidrs, ['10.0.0.0/8'])
  for (const one of [worker, server]) {
    t.equal(one.settings.redis.prefix, 'mine')
    t.match(one.settings.redis.url, /^redis:\/\/:secret@10\.96\.1\.\d:6379/)
    t.ok(clustersOf(one).placing.classes['example.com/mine'])
    t.notOk(clustersOf(one).framework.controllers.has('node-route-controller'))
  }
  t.match(server.settings.server, { metricsToken: 'numbers', dashboard: { user: 'me', password: 'p' } })
  t.match(roles.get('forwarder')!.settings.forwarder.serverUrl, /^http:\/\/10\.96\.1\.\d:8080$/)
})

t.test('what roles must agree on reaches each that uses it', async (t) => {
  const shared = SETTINGS.filter(
    ({ commands, env, ignored }) => env && !ignored && commands.includes('server') && commands.includes('worker'),
  )
  t.ok(shared.length > 5)
  const env = Object.fromEntries(shared.map(({ env }) => [env, 'x']))
  const objects = objectsOf(await render({ image: IMAGE, mode: 'split', env: { ...env, WINDLASS_LISTEN: null } }))
  for (const deployment of deploymentsOf(objects))
    for (const { args, env } of rolesOf(deployment))
      for (const setting of shared.filter(
        ({ env, commands }) => env !== 'WINDLASS_LISTEN' && commands.includes(args[0]),
      ))
        t.equal(env.find(({ name }: Json) => name === setting.env)?.value, 'x', `${args[0]}: ${setting.env}`)
})

t.test('a key with nothing below it is told by its name', async (t) => {
  const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Json
  for (const [key, value] of Object.entries(values).filter(([, one]) => one !== null && typeof one === 'object')) {
    const { code, stderr } = await helm(['template', 'w', CHART], { values: { image: IMAGE, [key]: null } })
    t.not(code, 0, key)
    t.match(stderr, `${key}: has nothing below it`)
    t.ok(value)
  }
})

t.test('names that YAML would take for numbers stay names', async (t) => {
  const { stdout } = await helm(['template', 'w', CHART, '--namespace', '123'], {
    values: { image: IMAGE, mode: 'split', internalSecret: '1e3', priorityClassName: 'true' },
  })
  for (const { metadata } of objectsOf(stdout)) t.ok(['string', 'undefined'].includes(typeof metadata.namespace))
  for (const deployment of deploymentsOf(objectsOf(stdout)).filter(
    ({ metadata }) => metadata.name === 'windlass-worker',
  )) {
    const { spec } = deployment.spec.template
    t.equal(spec.priorityClassName, 'true')
    const secrets = rolesOf(deployment)[0]!.env.flatMap(({ valueFrom }: Json) => valueFrom?.secretKeyRef.name ?? [])
    t.ok(secrets.includes('1e3'))
  }
})

t.test('files reach the roles for which they are meant', async (t) => {
  const file = (name: string) => ({
    extraVolumes: [{ name, emptyDir: {} }],
    extraVolumeMounts: [{ name, mountPath: `/${name}` }],
  })
  const values = { image: IMAGE, mode: 'split', ...file('token'), server: file('ca'), forwarder: file('proxy') }
  const has: Record<string, string> = { server: 'ca', forwarder: 'proxy', worker: 'token' }
  for (const deployment of deploymentsOf(objectsOf(await render(values))))
    for (const { args, volumeMounts } of rolesOf(deployment)) {
      const others = (all: Json[]) => all.filter(({ name }) => name !== 'credentials')
      const { volumes } = deployment.spec.template.spec
      t.equal(
        volumes.length - others(volumes).length,
        args[0] === 'worker' ? 1 : 0,
        'credentials are for workers alone',
      )
      t.same(others(volumeMounts), [{ name: has[args[0]], mountPath: `/${has[args[0]]}` }], args[0])
      t.same(others(volumes), [{ name: has[args[0]], emptyDir: {} }], args[0])
    }
})

t.test('a Redis of your own is used by servers and workers', async (t) => {
  const env = { WINDLASS_REDIS_URL: 'rediss://redis.example.com:6380', WINDLASS_REDIS_PASSWORD: null }
  const roles = await started(t, { mode: 'split', redis: { enabled: false }, env })
  for (const role of ['server', 'worker'])
    t.equal(roles.get(role)!.settings.redis.url, 'rediss://redis.example.com:6380', role)
  const objects = objectsOf(await render({ image: IMAGE, mode: 'split', redis: { enabled: false }, env }))
  t.notOk(objects.some(({ metadata }) => metadata.name === 'windlass-redis'))
  const args = { 'redis-url': 'redis://redis.example.com' }
  t.ok(await render({ image: IMAGE, mode: 'split', redis: { enabled: false }, args }), 'its address may be a flag')
})

for (const mode of ['single', 'split'])
  t.test(`${mode}: what is scraped is told where, and with which token`, async (t) => {
    const values = { mode, server: { metricsToken: true }, monitoring: { podMonitor: { enabled: true } } }
    const roles = await started(t, values)
    for (const [role, one] of roles) t.equal(listenOf(one)?.host, '::', role)
    for (const one of roles.values()) t.notOk(one.container.livenessProbe.httpGet.host)
    const [monitor] = objectsOf(await render({ image: IMAGE, ...values })).filter(({ kind }) => kind === 'PodMonitor')
    const [{ authorization }] = monitor.spec.podMetricsEndpoints
    t.same(authorization.credentials, { name: 'windlass-internal', key: 'WINDLASS_METRICS_TOKEN' })
    const { container, settings } = (roles.get('server') ?? roles.get('all'))!
    const { valueFrom } = container.env.find(({ name }: Json) => name === 'WINDLASS_METRICS_TOKEN')
    t.same(valueFrom, { secretKeyRef: authorization.credentials }, 'it is this one, and there is no Pod without it')
    t.match(settings.server, { metricsToken: 'numbers', dashboard: { user: 'windlass', password: 'p' } })
  })

t.test('how workers are scaled is no part of their Pods, so that a change of it restarts none', async (t) => {
  const worker = async (values: object) =>
    deploymentsOf(objectsOf(await render({ image: IMAGE, mode: 'split', ...values }))).find(
      ({ metadata }) => metadata.name === 'windlass-worker',
    ).spec
  const fixed = await worker({ worker: { replicas: 3 } })
  t.equal(fixed.replicas, 3)
  t.equal((await worker({ replicaCount: 4 })).replicas, 4)
  const scaled = await worker({ keda: { enabled: true, maxReplicas: 9, jobsPerWorker: 10, minReplicas: 0 } })
  t.notOk('replicas' in scaled, 'else each upgrade would set them back')
  t.same(scaled.template, fixed.template)
})

t.test('rights, disruption budgets and what only Cherry asks for can be left out', async (t) => {
  const kinds = async (values: object) =>
    new Set(objectsOf(await render({ image: IMAGE, mode: 'split', ...values })).map(({ kind }) => kind))
  const without = await kinds({ rbac: { create: false }, podDisruptionBudgets: false })
  for (const kind of ['ClusterRole', 'RoleBinding', 'PodDisruptionBudget']) t.notOk(without.has(kind), kind)
  t.ok(without.has('ServiceAccount'))
  const names = async (clouds: string[]) =>
    objectsOf(await render({ image: IMAGE, clouds })).some(({ metadata }) => metadata.name === 'windlass-cherry')
  t.same([await names(['hcloud']), await names(['cherryservers']), await names([])], [false, true, true])
})

const DIGEST = `sha256:${'0a'.repeat(32)}`

t.test('an image is named by a tag or by a digest', async (t) => {
  const imageOf = async (image: object) =>
    rolesOf(deploymentsOf(objectsOf(await render({ image })))[0]).map(({ image }) => image)[0]
  for (const [repository, tag, image] of [
    ['windlass', '', 'windlass:0.1.0'],
    ['registry.example.com:5000/windlass', 'v2', 'registry.example.com:5000/windlass:v2'],
    ['r/w', '{{ .Chart.AppVersion }}-mine', 'r/w:0.1.0-mine'],
    ['r/w', `0.1.0@${DIGEST}`, `r/w:0.1.0@${DIGEST}`],
    ['r/w', DIGEST, `r/w@${DIGEST}`],
    ['r/w', `@${DIGEST}`, `r/w@${DIGEST}`],
    [`r/w@${DIGEST}`, '', `r/w@${DIGEST}`],
    [`r:5000/w:1@${DIGEST}`, '', `r:5000/w:1@${DIGEST}`],
  ])
    t.equal(await imageOf({ repository, tag }), image)
})

const REFUSED: readonly [values: object, says: RegExp][] = [
  [{ image: {} }, /image\.repository: say where your nodes pull the image from/],
  [{ image: { repository: 'docker.io/hetznercloud/hcloud-cloud-controller-manager' } }, /is the image of the replaced/],
  [{ image: { repository: 'quay.io/syself/hetzner-cloud-controller-manager:v2' } }, /is the image of the replaced/],
  [{ image: { repository: 'r:5000/windlass:1.2.3' } }, /image\.repository: r:5000\/windlass:1\.2\.3 has a tag/],
  [{ image: { repository: `r/w@${DIGEST}`, tag: 'v1' } }, /image\.tag: v1, but image\.repository has a digest/],
  [{ mode: 'both' }, /mode.*must be one of 'single', 'split'/s],
  [{ clouds: ['aws'] }, /clouds.*must be one of 'hcloud', 'cherryservers'/s],
  [{ workers: 3 }, /additional properties 'workers' not allowed/],
  [{ worker: { replica: 3 } }, /additional properties 'replica' not allowed/],
  [{ worker: { replicas: '3' } }, /got string, want integer/],
  [{ env: { A: { vale: 'x' } } }, /env.*A/s],
  [{ kind: 'DaemonSet' }, /set mode: split and worker\.replicas/],
  [{ replicaCount: 2 }, /replicaCount: mode single is one Pod/],
  [{ keda: { enabled: true } }, /keda\.enabled: mode single is one Pod/],
  [{ redis: { enabled: false } }, /redis\.enabled: mode single has Redis in its Pod/],
  [{ mode: 'split', redis: { enabled: false } }, /set env\.WINDLASS_REDIS_URL/],
  [{ mode: 'split', keda: { enabled: true, minReplicas: 9 } }, /keda\.minReplicas: more than keda\.maxReplicas/],
  [
    { mode: 'split', keda: { enabled: true, minReplicas: 0 }, clouds: [], env: { CHERRY_FIP_TAG: 'a=b' } },
    /control plane's address is moved by workers that run/,
  ],
  [{ args: { 'cluster-cdr': '10.0.0.0/8' } }, /args\.cluster-cdr: is no flag of Windlass/],
  [{ args: { 'hcloud-token': 'x' } }, /args\.hcloud-token: is no flag of Windlass/],
  [{ args: { 'cloud-provider': 'cherryservers' } }, /args\.cloud-provider: is cherryservers, but `clouds` is hcloud/],
  [{ env: { CHERRY_API_KEY: 'x' } }, /env\.CHERRY_API_KEY: is for Cherry Servers.*--set 'clouds=\{cherryservers\}'/],
  [{ env: { WINDLASS_LISTEN: ':1' } }, /env\.WINDLASS_LISTEN: each role has a port of its own/],
  [{ args: { listen: ':1' } }, /args\.listen: each role has a port of its own/],
  [{ additionalCommands: ['--listen=:1'] }, /args\.listen: each role has a port of its own/],
  [{ args: { '--log-level': 'warn' } }, /args\.--log-level: a flag stands here without its dashes, as log-level/],
  [{ env: { 'HTTPS-PROXY': 'x' } }, /env\.HTTPS-PROXY: is no name of a variable/],
  [{ env: { HCLOUD_LOAD_BALANCER_LOCATION: 'x' } }, /env\.HCLOUD_LOAD_BALANCER_LOCATION: is no variable of Windlass/],
  [{ env: { WINDLASS_LOGLEVEL: { value: 'x' } } }, /env\.WINDLASS_LOGLEVEL: is no variable of Windlass/],
  [{ env: { ROBOT_USERNAME: 'x' } }, /env\.ROBOT_USERNAME: is no variable of Windlass/],
  [{ clouds: ['cherryservers'], env: { CHERRY_REGION: 'x' } }, /env\.CHERRY_REGION: is no variable of Windlass/],
]

t.test('values that can not be right are refused with a sentence that says which', async (t) => {
  for (const [values, says] of REFUSED) {
    const { code, stderr } = await helm(['template', CHART], { values: { image: IMAGE, ...values } })
    t.not(code, 0, JSON.stringify(values))
    t.match(stderr, says)
  }
})

t.test('no variable of the table is refused, nor one of another program, nor what is taken away', async (t) => {
  const ours = SETTINGS.flatMap(({ env, formerEnvs = [] }) => [...(env ? [env] : []), ...formerEnvs])
  const env = Object.fromEntries([...ours, 'HTTPS_PROXY', 'hcloud', 'HCLOUDS'].map((name) => [name, 'x']))
  const values = { image: IMAGE, clouds: ['hcloud', 'cherryservers'] }
  t.ok(await render({ ...values, env: { ...env, WINDLASS_LISTEN: null, HCLOUD_FORMERLY: null } }))
})

t.test('no value is documented that would be refused', async (t) => {
  const documented = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Json
  const { properties } = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as Json
  for (const name of Object.keys(documented)) t.ok(name in properties, name)
})
