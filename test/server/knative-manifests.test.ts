import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { formatFaults } from '../../src/config/fault.ts'
import { loadSettings } from '../../src/config/load.ts'
import { knativePath, readKnativeEvent } from '../../src/events/knative.ts'
import { KNATIVE_TYPE } from '../../src/events/knative-schema.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const FOLDER = join(ROOT, 'infra', 'knative')

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string }
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[] }[]
  roleRef?: { name: string }
  subjects?: { kind: string; name: string; namespace?: string }[]
  // biome-ignore lint/suspicious/noExplicitAny: what is asserted of it is the type check here
  spec: any
}

const manifestsOf = (path: string) =>
  parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as Manifest)
const source = manifestsOf(join(FOLDER, 'source.yaml'))
const one = (manifests: Manifest[], kind: string, name?: string) => {
  const found = manifests.filter((each) => each.kind === kind && (name === undefined || each.metadata.name === name))
  if (found.length !== 1 || !found[0]) throw new Error(`${found.length} of ${kind} ${name}`)
  return found[0]
}
const apiServerSource = one(source, 'ApiServerSource')
const server = one(manifestsOf(join(FOLDER, 'server.yaml')), 'Deployment')
const installed = (name: string) => manifestsOf(join(ROOT, 'k8s', 'split', name))

const { resources, patches } = parse(readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8')) as {
  resources: string[]
  patches: { path?: string; patch?: string }[]
}

t.test('all files that it is made of are there', async (t) => {
  const files = [...resources, ...patches.flatMap(({ path }) => path ?? [])]
  t.equal(files.length, 3)
  for (const file of files) t.ok(existsSync(join(FOLDER, file)), file)
})

t.test('the source may watch just what it names, and names just what Windlass takes', async (t) => {
  const { serviceAccountName, resources: watched, mode } = apiServerSource.spec
  const account = one(source, 'ServiceAccount', serviceAccountName)
  const binding = one(source, 'ClusterRoleBinding', serviceAccountName)
  t.same(binding.subjects, [{ kind: 'ServiceAccount', ...account.metadata }])
  t.equal(account.metadata.namespace, apiServerSource.metadata.namespace)
  t.same(one(source, 'ClusterRole', binding.roleRef?.name).rules, [
    { apiGroups: [''], resources: ['nodes', 'services'], verbs: ['get', 'list', 'watch'] },
  ])
  t.same(watched, [
    { apiVersion: 'v1', kind: 'Node' },
    { apiVersion: 'v1', kind: 'Service' },
  ])
  for (const data of watched) {
    const read = readKnativeEvent({ specversion: '1.0', id: '1', source: 's', type: KNATIVE_TYPE.refAdd, data })
    t.notOk(read.faults?.some(({ path }) => path === '$.data.kind' || path === '$.data.apiVersion'))
  }
  t.equal(mode, 'Resource')
  t.same(apiServerSource.spec.namespaceSelector, {}, 'of all namespaces')
})

t.test('it sends to the server of the install, with a token that this server takes', async (t) => {
  const { uri, audience } = apiServerSource.spec.sink
  const { hostname, port, pathname } = new URL(uri)
  const service = one(installed('server.yaml'), 'Service')
  t.equal(hostname, `${service.metadata.name}.${service.metadata.namespace}.svc`)
  t.equal(Number(port), service.spec.ports[0].port)
  t.equal(pathname, knativePath('default'))

  t.match(one(installed('server.yaml'), 'Deployment').metadata, server.metadata)
  const { containers, volumes } = server.spec.template.spec
  const [mount] = containers[0].volumeMounts
  t.equal(volumes[0].name, mount.name)
  const dir = t.testdir({ 'ca.crt': '-----BEGIN CERTIFICATE-----' })
  const env = Object.fromEntries(
    containers[0].env.map(({ name, value }: { name: string; value: string }) => [
      name,
      value
        .replace('$(KUBERNETES_SERVICE_HOST)', '10.96.0.1')
        .replace('$(KUBERNETES_SERVICE_PORT)', '443')
        .replace(mount.mountPath, dir),
    ]),
  )
  const base = { WINDLASS_REDIS_URL: 'redis://a', WINDLASS_WEBHOOK_KEYS: Buffer.alloc(24, 7).toString('base64') }
  const loaded = await loadSettings({ command: 'server', flags: new Map(), env: { ...base, ...env } })
  if ('faults' in loaded) return t.fail(formatFaults('faults', loaded.faults))
  const { name, namespace } = apiServerSource.metadata
  t.match(loaded.settings.clusters[0]?.knative, {
    oidc: {
      audience,
      // As Knative calls the account by which it asks for tokens of a source.
      subject: `system:serviceaccount:${namespace}:${name}-oidc-sources.knative.dev-apiserversource`,
      jwksUrl: 'https://10.96.0.1:443/openid/v1/jwks',
    },
  })
})

t.test('the forwarder in whose place it is stops, also where it ran before', async (t) => {
  const changed = patches.flatMap(({ patch }) => (patch === undefined ? [] : [parse(patch) as Manifest]))
  const { apiVersion, kind, metadata } = one(installed('forwarder.yaml'), 'Deployment')
  const { name, namespace } = metadata
  // What an applied folder does not have any more stays as it is.
  t.same(changed, [{ apiVersion, kind, metadata: { name, namespace }, spec: { replicas: 0 } }])
})
