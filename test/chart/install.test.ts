import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CHART, helm, type Ran, render } from '../../infra/helm.ts'
import type { Json } from '../apiserver/admin.ts'
import { pathOf } from '../apiserver/kinds.ts'
import { rightsManifests } from '../apiserver/roles.ts'
import { type ApiServer, startApiServer } from '../apiserver/start.ts'
import { defineKinds, KEDA, PROMETHEUS } from './crds.ts'
import { objectsOf } from './pods.ts'

const IMAGE = { repository: 'registry.example.com/windlass' }

/** All that can be switched on. */
const EVERYTHING = {
  image: { ...IMAGE, tag: 'v1', pullPolicy: 'Always', pullSecrets: [{ name: 'pull' }] },
  mode: 'split',
  clouds: ['hcloud', 'cherryservers'],
  config: { apiKey: 'k', projectID: 87553 },
  networking: { enabled: true },
  robot: { enabled: true },
  server: { metricsToken: true },
  keda: { enabled: true },
  monitoring: {
    podMonitor: { enabled: true, labels: { release: 'prometheus' }, annotations: { a: 'b' } },
    rules: { enabled: true, labels: { release: 'prometheus' } },
  },
  admission: { enabled: true },
  serviceAccount: { annotations: { a: 'b' } },
  nodeSelector: { a: 'b' },
  additionalTolerations: [{ key: 'a', operator: 'Exists' }],
  podLabels: { a: 'b' },
  podAnnotations: { a: 'b' },
  extraVolumes: [{ name: 'more', emptyDir: {} }],
  extraVolumeMounts: [{ name: 'more', mountPath: '/more' }],
  envFrom: [{ secretRef: { name: 'more', optional: true } }],
}

let server: ApiServer
t.before(async () => {
  server = await startApiServer()
})
t.after(async () => await server.stop())

/** helm as somebody with all rights runs it. */
function withHelm(t: Test, args: string[], values?: object): Promise<Ran> {
  const dir = join(t.testdirName, 'helm')
  mkdirSync(dir, { recursive: true })
  const env = { HELM_CACHE_HOME: dir, HELM_CONFIG_HOME: dir, HELM_DATA_HOME: dir }
  const kubeconfig = server.adminKubeconfig(join(dir, 'kubeconfig'))
  return helm([...args, '--namespace', 'windlass', '--kubeconfig', kubeconfig], { values, env })
}

const deployments = async () =>
  (await server.admin.list('Deployment', 'windlass')).map(({ metadata }) => metadata.name).sort()

t.test('beside an install by kubectl there is none by helm: two would have no Redis in common', async (t) => {
  const { code, stderr } = await withHelm(t, ['install', 'windlass', CHART], { image: IMAGE })
  t.not(code, 0)
  t.match(stderr, /cannot be imported into the current release/)
  t.same(await deployments(), [])
  for (const { kind, metadata } of rightsManifests().filter(({ kind }) => kind !== 'Namespace'))
    await server.admin.delete(kind, metadata.namespace, metadata.name)
})

t.test('the API server takes what the chart makes, with no field that it does not know', async (t) => {
  await defineKinds(server.admin, KEDA, [
    'config/crd/bases/keda.sh_scaledobjects.yaml',
    'config/crd/bases/keda.sh_triggerauthentications.yaml',
  ])
  const folder = 'example/prometheus-operator-crd'
  await defineKinds(server.admin, PROMETHEUS, [
    `${folder}/monitoring.coreos.com_podmonitors.yaml`,
    `${folder}/monitoring.coreos.com_prometheusrules.yaml`,
  ])
  const strict = (object: Json) => {
    const { kind, metadata } = object
    return server.admin.send('POST', `${pathOf(kind, metadata.namespace)}?dryRun=All&fieldValidation=Strict`, object)
  }
  const kinds = new Set<string>()
  for (const values of [EVERYTHING, { ...EVERYTHING, mode: 'single', keda: {} }, { image: IMAGE, mode: 'split' }])
    for (const object of objectsOf(await render(values))) {
      t.equal((await strict(object)).metadata.name, object.metadata.name, `${object.kind} ${object.metadata.name}`)
      kinds.add(object.kind)
    }
  t.ok(kinds.has('ScaledObject') && kinds.has('TriggerAuthentication') && kinds.has('PrometheusRule'))

  const scaled = objectsOf(await render(EVERYTHING)).find(({ kind }) => kind === 'ScaledObject')
  await t.rejects(
    strict({ ...scaled, spec: { ...scaled.spec, fallback: { replicas: 2, behavior: 'best' } } }),
    /behavior/,
  )
  await t.rejects(strict({ ...scaled, spec: { ...scaled.spec, minReplicas: 1 } }), /unknown field "spec.minReplicas"/)
})

t.test('an upgrade to the other mode takes the first one away, a rollback brings it back', async (t) => {
  const installed = await withHelm(t, ['upgrade', '--install', 'windlass', CHART], { image: IMAGE })
  t.equal(installed.code, 0, installed.stderr)
  t.match(installed.stdout, 'exec deploy/windlass -c windlass -- node src/main.ts doctor')
  t.same(await deployments(), ['windlass'])
  const secret = (name: string, stringData: object) =>
    server.admin.create('Secret', 'windlass', { metadata: { name }, stringData })
  t.match(installed.stdout, /^ {2}hcloud: .*token.* \(is not there yet\)$/m)
  await secret('hcloud', { token: 'x' })

  const split = await withHelm(t, ['upgrade', 'windlass', CHART], {
    ...EVERYTHING,
    resources: { limits: {} },
    nameOverride: 'x',
  })
  t.equal(split.code, 0, split.stderr)
  t.match(split.stdout, /^ {2}hcloud: .*token[^()]*$/m, 'it is there by now')
  t.match(split.stdout, 'create secret generic windlass-internal')
  await secret('windlass-internal', { WINDLASS_WEBHOOK_KEYS: 'x', WINDLASS_REDIS_PASSWORD: 'x' })
  t.match(split.stdout, 'These values of a replaced controller have no effect here: nameOverride, resources.')
  t.same(await deployments(), ['windlass-forwarder', 'windlass-redis', 'windlass-server', 'windlass-worker'])
  const scaledTo = async (replicas: number) => {
    await server.admin.patch('Deployment', 'windlass', 'windlass-worker', { spec: { replicas } })
    const again = await withHelm(t, ['upgrade', 'windlass', CHART], {
      ...EVERYTHING,
      podLabels: { a: String(replicas) },
    })
    t.equal(again.code, 0, again.stderr)
    t.match(again.stdout, 'Its Pods wait until windlass-internal has WINDLASS_METRICS_TOKEN too.')
    return (await server.admin.get('Deployment', 'windlass', 'windlass-worker')).spec.replicas
  }
  t.equal(await scaledTo(4), 4, 'what KEDA scaled to is left')

  const back = await withHelm(t, ['rollback', 'windlass', '1'])
  t.equal(back.code, 0, back.stderr)
  t.same(await deployments(), ['windlass'])
})

/** As much of the replaced controller's chart as a release needs. */
const FORMER = {
  'Chart.yaml': 'apiVersion: v2\nname: hcloud-cloud-controller-manager\nversion: 1.35.0\n',
  'values.yaml':
    'kind: Deployment\nnetworking: { enabled: false, clusterCIDR: 10.244.0.0/16 }\nimage: { repository: former, tag: v1.35.0 }\n',
  templates: {
    'deployment.yaml': `apiVersion: apps/v1
kind: Deployment
metadata: { name: former, namespace: {{ .Release.Namespace }} }
spec:
  selector: { matchLabels: { app: former } }
  template:
    metadata: { labels: { app: former } }
    spec: { containers: [{ name: former, image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}" }] }
`,
  },
}

t.test(
  "a release of the replaced controller's chart is upgraded to this one with its values, and rolled back",
  async (t) => {
    const former = join(t.testdir({ former: FORMER }), 'former')
    await withHelm(t, ['uninstall', 'windlass'])
    const own = { networking: { enabled: true }, nodeSelector: { role: 'control-plane' }, image: { tag: 'v1.26.0' } }
    t.match(await withHelm(t, ['install', 'hccm', former], own), { code: 0 })
    t.same(await deployments(), ['former'])

    const upgradeTo = (keep: string, ...set: string[]) =>
      withHelm(t, ['upgrade', 'hccm', CHART, keep, '--set', [`image.repository=${IMAGE.repository}`, ...set].join(',')])
    t.match(await upgradeTo('--reuse-values'), { code: 1, stderr: /use --reset-then-reuse-values/ })
    t.match(await upgradeTo('--reset-then-reuse-values'), {
      code: 1,
      stderr:
        /image\.tag: v1\.26\.0 is that of former:v1\.26\.0, which this release runs now.* --set image\.tag=0\.1\.0/,
    })
    t.same(await deployments(), ['former'], 'what could not be followed by anything is still there')
    const upgraded = await upgradeTo('--reset-then-reuse-values', 'image.tag=mine')
    t.equal(upgraded.code, 0, upgraded.stderr)
    t.same(await deployments(), ['windlass'])
    const { spec } = (await server.admin.get('Deployment', 'windlass', 'windlass')).spec.template
    t.match(spec, { nodeSelector: own.nodeSelector })
    t.match(spec.containers[1], {
      image: `${IMAGE.repository}:mine`,
      args: ['all', '--cloud-provider=hcloud', '--cluster-cidr=10.244.0.0/16'],
    })
    const moved = await withHelm(t, [
      'upgrade',
      'hccm',
      CHART,
      '--reuse-values',
      '--set',
      'image.repository=r/windlass',
    ])
    t.equal(moved.code, 0, `its own tag stays in another registry: ${moved.stderr}`)

    t.match(await withHelm(t, ['rollback', 'hccm', '1']), { code: 0 })
    t.same(await deployments(), ['former'])
    t.match(await upgradeTo('--reset-then-reuse-values', 'image.tag='), { code: 0 }, 'the tag of the chart')
  },
)
