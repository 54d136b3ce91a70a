import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import type { OidcSettings } from '../../src/config/types.ts'
import type { WindlassError } from '../../src/errors.ts'
import { createGate } from '../../src/server/knative/gate.ts'
import { type Issuer, startIssuer } from './issuer.ts'
import { knativeServer, post, serviceReference } from './knative-source.ts'

const SUBJECT = 'system:serviceaccount:windlass:windlass-oidc-sources.knative.dev-apiserversource'
const TOKEN = 'token-of-the-default-cluster'
const ours = { aud: ['windlass/default'], sub: SUBJECT }

async function serve(t: Test, issuer: Issuer, more: Partial<OidcSettings> = {}) {
  const oidc = { issuer: issuer.url, audience: 'windlass/default', subject: SUBJECT, ...more }
  const { h, url } = await knativeServer(t, {
    default: { tokens: [TOKEN], oidc },
    other: { tokens: [], oidc: { ...oidc, audience: 'windlass/other' } },
  })
  const send = (token: string, cluster = 'default') => post(url, 'refAdd', serviceReference('x'), { token, cluster })
  return { h, send }
}

t.test('a token is taken or not', async (t) => {
  const issuer = await startIssuer(t)
  const stranger = await startIssuer(t)
  const { h, send } = await serve(t, issuer)
  const now = Math.floor(Date.now() / 1000)

  const taken: [what: string, token: () => Promise<string>][] = [
    ['as an API server makes it', () => issuer.token(ours)],
    ['with its audience alone, not in a list', () => issuer.token({ ...ours, aud: 'windlass/default' })],
    ['that expired a moment ago, by another clock than its issuer’s', () => issuer.token({ ...ours, exp: now - 30 })],
    ['from a moment in the future, likewise', () => issuer.token({ ...ours, nbf: now + 30 })],
    ['of the cluster itself', async () => TOKEN],
  ]
  for (const [what, token] of taken)
    t.test(`taken: one ${what}`, async (t) => void t.equal((await send(await token())).status, 202))

  const refused: [what: string, token: () => Promise<string>, message: RegExp][] = [
    ['expired', () => issuer.token({ ...ours, exp: now - 120 }), /since it is expired/],
    ['without an end', () => issuer.token({ ...ours, exp: undefined }), /"exp" is missing/],
    ['not valid yet', () => issuer.token({ ...ours, nbf: now + 120 }), /"nbf" is another/],
    ['for another audience', () => issuer.token({ ...ours, aud: ['windlass/other'] }), /"aud" is another/],
    ['for no audience', () => issuer.token({ ...ours, aud: undefined }), /"aud" is missing/],
    ['for others beside', () => issuer.token({ ...ours, aud: ['windlass/default', 'x'] }), /other audiences beside/],
    ['of another issuer', () => issuer.token({ ...ours, iss: 'https://other.example' }), /"iss" is another/],
    ['of another subject', () => issuer.token({ ...ours, sub: 'system:serviceaccount:default:x' }), /"sub" is another/],
    ['of no subject', () => issuer.token({ ...ours, sub: undefined }), /"sub" is missing/],
    [
      'signed by somebody else under this name',
      () => stranger.token({ ...ours, iss: issuer.url }),
      /signature is wrong/,
    ],
    ['signed by nobody', async () => unsigned(await issuer.token(ours)), /can be checked/],
    ['signed with the published key as a secret', () => signedWithPublicKey(issuer), /can be checked/],
    [
      'changed after it was signed',
      async () => changed(await issuer.token({ ...ours, sub: 'x' })),
      /signature is wrong/,
    ],
    ['of three parts that are nothing', async () => 'a.b.c', /can be checked/],
    ['of one part', async () => 'garbage', /is not the right one/],
  ]
  for (const [what, token, message] of refused)
    t.test(`refused: one ${what}`, async (t) => {
      const answer = await send(await token())
      t.equal(answer.status, 401)
      t.match(await answer.json(), { message })
    })

  t.test('that of one cluster is not taken for another', async (t) => {
    t.equal((await send(await issuer.token({ ...ours, aud: ['windlass/other'] }), 'other')).status, 202)
    t.equal((await send(await issuer.token(ours), 'other')).status, 401)
    t.equal((await send(TOKEN, 'other')).status, 401)
  })

  t.test('its keys are read once, and no token is in a log line', async (t) => {
    const of = (path: string) => issuer.asked.filter((one) => one === path).length
    t.equal(of('/.well-known/openid-configuration'), 2, 'by each of the clusters')
    t.notMatch(JSON.stringify(h.logged), /eyJ/)
    t.ok(h.logged.some(({ reason }) => /is expired/.test(String(reason))))
  })
})

t.test('without a subject in the settings any will do', async (t) => {
  const issuer = await startIssuer(t, 'ES256')
  const { send } = await serve(t, issuer, { subject: undefined })
  t.equal((await send(await issuer.token({ ...ours, sub: 'anybody' }))).status, 202)
})

t.test('keys may be at an address of their own, and then nothing else is asked', async (t) => {
  const issuer = await startIssuer(t)
  const { send } = await serve(t, issuer, { issuer: 'https://kubernetes.default.svc', jwksUrl: issuer.jwksUrl })
  t.equal((await send(await issuer.token({ ...ours, iss: 'https://kubernetes.default.svc' }))).status, 202)
  t.equal((await send(await issuer.token(ours))).status, 401)
  t.same(issuer.asked, ['/openid/v1/jwks'])
})

/** The gate alone, with pauses that are over at once or never. */
function gateOf(t: Test, issuer: Issuer, pauses: { afterKeysMs: number; afterFailureMs: number }) {
  const oidc = { issuer: issuer.url, audience: 'windlass/default' }
  const gate = createGate({ tokens: [], oidc }, pauses)
  t.teardown(() => gate.close())
  return async () => await gate.refusalOf(`Bearer ${await issuer.token(ours)}`)
}

t.test('a key that is not known is looked for', async (t) => {
  const issuer = await startIssuer(t)
  const refusal = gateOf(t, issuer, { afterKeysMs: 0, afterFailureMs: 0 })
  t.equal(await refusal(), undefined)
  const { publish } = await issuer.rotate()
  t.match(await refusal(), /none of its issuer’s keys/)
  publish()
  t.equal(await refusal(), undefined)
})

t.test('of several keys that are valid at once a token names its own', async (t) => {
  const issuer = await startIssuer(t)
  const { send } = await serve(t, issuer)
  const [before, { publish }] = [await issuer.token(ours), await issuer.rotate()]
  publish('beside')
  t.equal((await send(before)).status, 202)
  t.equal((await send(await issuer.token(ours))).status, 202)
  const answer = await send(await issuer.token(ours, { kid: undefined }))
  t.equal(answer.status, 401)
  t.match(await answer.json(), { message: /does not say which key/ })
})

t.test('while it is too soon to look for a key, nobody knows whether a token is good', async (t) => {
  const issuer = await startIssuer(t)
  const refusal = gateOf(t, issuer, { afterKeysMs: 60_000, afterFailureMs: 0 })
  t.equal(await refusal(), undefined)
  const { publish } = await issuer.rotate()
  publish()
  const error = await refusal().catch((thrown: unknown) => thrown)
  t.match(error, { kind: 'throttled', message: /not known yet/ })
  const inMs = ((error as WindlassError).retryAtMs ?? 0) - Date.now()
  t.ok(inMs > 0 && inMs <= 60_000)
  t.equal(issuer.asked.length, 2)
})

const silent: [what: string, begin: (issuer: Issuer) => unknown, reason: RegExp][] = [
  ['is gone', (issuer) => issuer.stop(), /no answer/],
  ['does not let us read them', (issuer) => issuer.answer({ status: 403, body: '{}' }), /answered 403/],
  ['answers no JSON', (issuer) => issuer.answer({ status: 200, body: '<html>' }), /something else than JSON/],
  ['answers nothing of use', (issuer) => issuer.answer({ status: 200, body: 'null' }), /another issuer/],
  ['is another one', (issuer) => Object.assign(issuer.document, { issuer: 'https://x.example' }), /another issuer/],
  [
    'has its keys where others can change them',
    (issuer) => Object.assign(issuer.document, { jwks_uri: 'http://x.example/' }),
    /nobody on the way/,
  ],
  ['has its keys nowhere', (issuer) => Object.assign(issuer.document, { jwks_uri: 7 }), /nobody on the way/],
]
t.test('while the issuer', async (t) => {
  t.jobs = 4
  for (const [what, begin, reason] of silent)
    t.test(`${what}, its tokens are neither taken nor refused`, async (t) => {
      const issuer = await startIssuer(t)
      const { h, send } = await serve(t, issuer)
      await begin(issuer)
      const answer = await send(await issuer.token(ours))
      t.equal(answer.status, 503)
      t.match(answer.headers.get('retry-after'), /^[1-9]/)
      t.match(await answer.json(), { message: /keys of the issuer .* can't be had \(.*WINDLASS_KNATIVE_OIDC_JWKS_URL/ })
      t.match(h.logged.at(-1), { msg: 'a request could not be served now', reason })
      t.equal((await send(TOKEN)).status, 202, 'what needs no issuer goes on')
    })
})

t.test('an issuer that fails is not asked for each token', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer({ status: 500, body: '' })
  const refusal = gateOf(t, issuer, { afterKeysMs: 0, afterFailureMs: 60_000 })
  for (let i = 0; i < 5; i++) await t.rejects(refusal(), { name: 'WindlassError', message: /can't be had/ })
  t.equal(issuer.asked.length, 1)
})

t.test('when the issuer is back its tokens are taken', async (t) => {
  const issuer = await startIssuer(t)
  const refusal = gateOf(t, issuer, { afterKeysMs: 0, afterFailureMs: 0 })
  await issuer.stop()
  await t.rejects(refusal(), { name: 'WindlassError', message: /can't be had/ })
  await issuer.start()
  t.equal(await refusal(), undefined)
})

t.test('keys that were read are good while the issuer is away', async (t) => {
  const issuer = await startIssuer(t)
  const { send } = await serve(t, issuer)
  t.equal((await send(await issuer.token(ours))).status, 202)
  await issuer.stop()
  t.equal((await send(await issuer.token(ours))).status, 202)
})

const encoded = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url')

function unsigned(token: string): string {
  return `${encoded({ alg: 'none', typ: 'JWT' })}.${token.split('.')[1]}.`
}

function changed(token: string): string {
  const [header, payload = '', signature] = token.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
  return [header, encoded({ ...claims, sub: SUBJECT }), signature].join('.')
}

/** The oldest trick: who verifies takes the public key for the secret of HMAC. */
async function signedWithPublicKey(issuer: Issuer): Promise<string> {
  const keys = (await (await fetch(issuer.jwksUrl)).text()) as string
  const payload = (await issuer.token(ours)).split('.')[1]
  const signed = `${encoded({ alg: 'HS256', kid: 'key-1' })}.${payload}`
  return `${signed}.${createHmac('sha256', keys).update(signed).digest('base64url')}`
}
