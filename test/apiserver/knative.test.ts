import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { createGate } from '../../src/server/knative/gate.ts'
import { eventually } from '../integration/world.ts'
import { type Admin, adminClient, type Json } from './admin.ts'
import { startApiServer } from './start.ts'

const AUDIENCE = 'windlass/default'
const manifests = parseAllDocuments(
  readFileSync(join(import.meta.dirname, '../../infra/knative/source.yaml'), 'utf8'),
).map((one) => one.toJS() as Json)
const apply = async (admin: Admin, ...kinds: string[]) => {
  for (const one of manifests.filter(({ kind }) => kinds.includes(kind)))
    await admin.apply(one.kind, one.metadata.namespace, one.metadata.name, one)
}

const server = await startApiServer()
t.teardown(() => server.stop())
const { admin, url, ca } = server
await apply(admin, 'ServiceAccount', 'ClusterRole')

/** Asked for as Knative's adapter does it. */
const tokenFor = async (audiences: string[]): Promise<string> =>
  (
    await admin.send('POST', '/api/v1/namespaces/windlass/serviceaccounts/windlass-source/token', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences, expirationSeconds: 3600 },
    })
  ).status.token

const { issuer } = await admin.send('GET', '/.well-known/openid-configuration')
const oidc = {
  issuer,
  audience: AUDIENCE,
  subject: 'system:serviceaccount:windlass:windlass-source',
  jwksUrl: `${url}/openid/v1/jwks`,
  caFile: join(t.testdir({ 'ca.crt': ca }), 'ca.crt'),
}
const gate = createGate({ tokens: [], oidc }, { afterKeysMs: 0, afterFailureMs: 0 })
t.teardown(() => gate.close())
const refusalOf = async (token: string) => await gate.refusalOf(`Bearer ${token}`)

t.test('without a right to them the keys of an API server can not be read', async (t) => {
  await t.rejects(refusalOf(await tokenFor([AUDIENCE])), { message: /openid\/v1\/jwks was answered 40[13]/ })
})

t.test(
  'with the rights of the manifest, tokens of the API server itself are taken, those that are for us',
  async (t) => {
    await apply(admin, 'ClusterRoleBinding')
    const token = await tokenFor([AUDIENCE])
    // An API server hears of its own rights a moment later.
    const taken = async () => (await refusalOf(token).catch(() => 'not yet')) === undefined
    await eventually(taken, 'the token is taken')
    t.match(await refusalOf(await tokenFor(['windlass/other'])), /"aud" is another/)
    t.match(await refusalOf(await tokenFor([])), /"aud" is another/, 'one for the API server')
    t.match(await refusalOf(await tokenFor([AUDIENCE, 'windlass/other'])), /other audiences/)
    t.match(await refusalOf(server.tokenFor('forwarder')), /is another/)
  },
)

t.test('the source may watch Nodes and Services, and nothing else', async (t) => {
  const source = adminClient({ url, ca, token: await tokenFor([]) })
  t.teardown(() => source.close())
  for (const kind of ['Node', 'Service']) await t.resolves(source.list(kind), kind)
  for (const kind of ['Secret', 'Pod']) await t.rejects(source.list(kind), { name: 'Error', message: / 403 / }, kind)
})
