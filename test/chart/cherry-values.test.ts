import t from 'tap'
import { CHART, helm, render } from '../../infra/helm.ts'
import type { Json } from '../apiserver/admin.ts'
import { deploymentsOf, objectsOf, rolesOf, type Secrets, startOf } from './pods.ts'

const IMAGE = { repository: 'registry.example.com/windlass' }

const SECRETS: Secrets = { hcloud: { token: 'k'.repeat(64) } }

t.test("a values file of Cherry Servers' chart works with the name of the cloud beside it", async (t) => {
  const config = { apiKey: 'k', projectID: 87553, region: 'LT-Siauliai', fipTag: 'cp=1', apiServerPort: 6443 }
  const objects = objectsOf(
    await render({
      image: { ...IMAGE, tag: '2', pullPolicy: 'Always' },
      imagePullSecrets: [{ name: 'pull' }],
      clouds: ['cherryservers'],
      config,
      additionalCommands: ['--controllers=*,-route', '--leader-elect'],
      env: { CHERRY_LOAD_BALANCER: 'kube-vip://', WINDLASS_BODY_LIMIT_BYTES: 20_000_000 },
      tolerations: [{ key: 'mine', operator: 'Exists' }],
      volumes: [{ name: 'more', emptyDir: {} }],
      volumeMounts: [{ name: 'more', mountPath: '/more' }],
    }),
  )
  const [{ spec }] = deploymentsOf(objects).map((one) => one.spec.template)
  const [container] = rolesOf(deploymentsOf(objects)[0])
  const secret = objects.find(({ kind }) => kind === 'Secret')
  const mount = container.volumeMounts.find(({ mountPath }: Json) => mountPath === '/etc/cloud-sa')
  t.match(
    spec.volumes.find(({ name }: Json) => name === mount.name),
    { secret: { secretName: secret.metadata.name } },
  )
  const dir = t.testdir({ 'cloud-sa.json': secret.stringData['cloud-sa.json'] })
  container.args = container.args.map((arg: string) => arg.replace('/etc/cloud-sa', dir))
  const { settings, env } = await startOf(container, objects, SECRETS)
  const { clouds, framework } = settings.clusters[0]!
  t.match(clouds, { hcloud: undefined, cherry: { projectId: 87553, region: 'LT-Siauliai' } })
  t.notOk(framework.controllers.has('node-route-controller'))
  t.match(env, { HCLOUD_TOKEN: undefined, WINDLASS_BODY_LIMIT_BYTES: '20000000', CHERRY_LOAD_BALANCER: 'kube-vip://' })
  t.match(container, { image: 'registry.example.com/windlass:2', imagePullPolicy: 'Always' })
  t.match(spec, { imagePullSecrets: [{ name: 'pull' }] })
  t.ok(spec.tolerations.some(({ key }: Json) => key === 'mine'))
  const changed = await render({ image: IMAGE, clouds: ['cherryservers'], config: { ...config, region: 'x' } })
  t.not(
    deploymentsOf(objectsOf(changed))[0].spec.template.metadata.annotations['checksum/config'],
    deploymentsOf(objects)[0].spec.template.metadata.annotations['checksum/config'],
    'another config restarts the Pods',
  )
})

const CHERRY = { clouds: ['cherryservers'], image: IMAGE }
const CONFIG = { apiKey: 'k', projectID: 87553 }

/** All values of the replaced controller's chart, as a file has them that began as a copy of its own. */
const COPIED = {
  nameOverride: '',
  fullnameOverride: '',
  podAnnotations: {},
  imagePullSecrets: [],
  podSecurityContext: {},
  securityContext: {},
  additionalCommands: [],
  envFrom: [],
  env: {},
  resources: { requests: { cpu: '100m', memory: '50Mi' } },
  hostAliases: [],
  volumes: [],
  volumeMounts: [],
  serviceAccount: { create: true, annotations: {}, name: '' },
  clusterRole: { create: true, annotations: {}, name: 'system:cloud-controller-manager' },
  nodeSelector: {},
  tolerations: [],
  affinity: {},
  configSecret: { create: true, name: '' },
  config: CONFIG,
}

/** What is made of these values: the Secret that is mounted, and that which the chart makes. */
async function secretsOf(values: object): Promise<{ mounted?: string; made?: string; restarts: boolean }> {
  const objects = objectsOf(await render({ ...CHERRY, ...values }))
  const [{ spec, metadata }] = deploymentsOf(objects).map((one) => one.spec.template)
  const mounted = spec.volumes.find(({ name }: Json) => name === 'cherry')?.secret.secretName
  const [container] = rolesOf(deploymentsOf(objects)[0])
  const flag = container.args.includes('--cloud-config=/etc/cloud-sa/cloud-sa.json')
  t.equal(flag, mounted !== undefined, 'the file is read where there is one')
  return {
    mounted,
    made: objects.find(({ kind }) => kind === 'Secret')?.metadata.name,
    restarts: metadata.annotations?.['checksum/config'] !== undefined,
  }
}

t.test("the Secret of Cherry Servers' chart is made, or taken, as that chart did", async (t) => {
  const name = 'cherry-cloud-config'
  const mine = 'my-cherry'
  for (const [values, expected] of [
    [COPIED, { mounted: name, made: name, restarts: true }],
    [{ config: CONFIG }, { mounted: name, made: name, restarts: true }],
    [
      { config: CONFIG, configSecret: { name: mine } },
      { mounted: mine, made: mine, restarts: true },
    ],
    [{ configSecret: { create: false, name: mine } }, { mounted: mine, made: undefined, restarts: false }],
    [
      { ...COPIED, config: { apiKey: '', projectID: '' }, configSecret: { create: false, name: mine } },
      { mounted: mine, made: undefined, restarts: false },
    ],
    [{}, { mounted: name, made: undefined, restarts: false }],
    [{ configSecret: { name: '' } }, { mounted: undefined, made: undefined, restarts: false }],
  ] as const)
    t.same(await secretsOf(values), expected, JSON.stringify(values))
})

const REFUSED: readonly [values: object, says: RegExp][] = [
  [{ ...COPIED, clouds: ['hcloud'] }, /config: is for Cherry Servers.*: --set 'clouds=\{cherryservers\}'/],
  [{ config: CONFIG, clouds: ['hcloud'] }, /config: is for Cherry Servers/],
  [{ config: CONFIG, clouds: [] }, /config: is for Cherry Servers/],
  [
    { configSecret: { create: false, name: 'my-cherry' }, clouds: ['hcloud'] },
    /configSecret: is for Cherry Servers.*: --set 'clouds=\{cherryservers\}'/,
  ],
  [{ configSecret: { create: false }, clouds: ['hcloud'] }, /configSecret: is for Cherry Servers/],
  [{ configSecret: { name: 'my-cherry' }, clouds: [] }, /configSecret: is for Cherry Servers/],
  [{ ...COPIED, config: { apiKey: '', projectID: '' } }, /config\.apiKey: is empty.*configSecret\.create: false/],
  [{ config: { apiKey: 'k', projectID: '' } }, /config\.projectID: is empty/],
]

t.test('values for Cherry Servers never make an install that knows nothing of it', async (t) => {
  for (const [values, says] of REFUSED) {
    const { code, stderr } = await helm(['template', CHART], { values: { ...CHERRY, ...values } })
    t.not(code, 0, JSON.stringify(values))
    t.match(stderr, says)
  }
  for (const configSecret of [{ name: '' }, { name: 'cherry-cloud-config' }, {}])
    t.ok(await render({ image: IMAGE, configSecret }), 'these say nothing of Cherry Servers')
})
