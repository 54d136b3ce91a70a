import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import t from 'tap'
import { formatFaults } from '../../src/config/fault.ts'
import { loadSettings } from '../../src/config/load.ts'
import type { Command } from '../../src/config/setting.ts'
import type { Settings } from '../../src/config/types.ts'

const KEY = Buffer.alloc(24, 7).toString('base64')
const [FIRST, SECOND] = ['first-planted-token-of-many', 'second.planted~token+of/many==']
const BASE = { WINDLASS_REDIS_URL: 'redis://127.0.0.1:6379', WINDLASS_WEBHOOK_KEYS: KEY }
const ISSUER = { WINDLASS_KNATIVE_OIDC_ISSUER: 'https://issuer.example/' }
const OIDC = { ...ISSUER, WINDLASS_KNATIVE_OIDC_AUDIENCE: 'windlass/default' }

async function load(env: Record<string, string>, command: Command = 'server'): Promise<Settings | string> {
  const loaded = await loadSettings({ command, flags: new Map(), env })
  return 'faults' in loaded ? formatFaults('', loaded.faults).trim() : loaded.settings
}
const knative = async (env: Record<string, string>, command?: Command) => {
  const loaded = await load({ ...BASE, ...env }, command)
  return typeof loaded === 'string' ? loaded : loaded.clusters[0]?.knative
}

t.test('it is off until somebody says who may send', async (t) => {
  t.equal(await knative({}), undefined)
})

t.test('several tokens may be valid at once, from a variable or a file', async (t) => {
  const dir = t.testdir({ tokens: `${FIRST}, ${SECOND}\n` })
  t.match(await knative({ WINDLASS_KNATIVE_TOKENS: `${FIRST},${SECOND}` }), {
    tokens: [FIRST, SECOND],
    oidc: undefined,
  })
  t.match(await knative({ WINDLASS_KNATIVE_TOKENS_FILE: join(dir, 'tokens') }), { tokens: [FIRST, SECOND] })
})

t.test('an issuer is kept as it is written, since its tokens name it so', async (t) => {
  t.match(await knative(OIDC), {
    tokens: [],
    oidc: { issuer: 'https://issuer.example/', audience: 'windlass/default' },
  })
  const dir = t.testdir({ ca: '-----BEGIN CERTIFICATE-----' })
  const more = {
    WINDLASS_KNATIVE_OIDC_SUBJECT: 'system:serviceaccount:a:b',
    WINDLASS_KNATIVE_OIDC_JWKS_URL: 'https://10.96.0.1:443/openid/v1/jwks',
    WINDLASS_KNATIVE_OIDC_CA_FILE: join(dir, 'ca'),
  }
  t.match(await knative({ ...OIDC, ...more }), {
    oidc: {
      subject: 'system:serviceaccount:a:b',
      jwksUrl: 'https://10.96.0.1:443/openid/v1/jwks',
      caFile: join(dir, 'ca'),
    },
  })
})

t.test('where a forwarder runs in the same process, nothing of it is looked at', async (t) => {
  t.equal(await knative({ ...OIDC, HCLOUD_TOKEN: 'h'.repeat(64), KUBERNETES_SERVICE_HOST: 'x' }, 'all'), undefined)
})

t.test('tokens are not printed', async (t) => {
  const settings = await load({ ...BASE, WINDLASS_KNATIVE_TOKENS: FIRST })
  t.match(inspect(settings, { depth: 9 }), /tokens/)
  for (const shown of [inspect(settings, { depth: 9 }), JSON.stringify(settings)]) t.notMatch(shown, /planted/)
})

const refused: [what: string, env: Record<string, string>, fault: RegExp][] = [
  ['a token that is short', { WINDLASS_KNATIVE_TOKENS: 'planted' }, /TOKENS \(not shown\) is only 7 characters long/],
  [
    'a second one with a blank in it',
    { WINDLASS_KNATIVE_TOKENS: `${FIRST},planted planted planted planted` },
    /TOKENS \(not shown\) is no bearer token \(token 2 of 2\), write at least 24/,
  ],
  ['an issuer that is no URL', { WINDLASS_KNATIVE_OIDC_ISSUER: 'issuer' }, /OIDC_ISSUER "issuer" is not an address/],
  [
    'one whose keys somebody on the way may change',
    { ...OIDC, WINDLASS_KNATIVE_OIDC_ISSUER: 'http://issuer.example' },
    /OIDC_ISSUER "http:\/\/issuer.example" is not encrypted/,
  ],
  [
    'keys that somebody on the way may change',
    { ...OIDC, WINDLASS_KNATIVE_OIDC_JWKS_URL: 'http://10.0.0.1/jwks' },
    /JWKS_URL .* is not encrypted/,
  ],
  ['an issuer without audience', ISSUER, /OIDC_AUDIENCE is missing: without it every token/],
  [
    'an audience without issuer',
    { WINDLASS_KNATIVE_OIDC_AUDIENCE: 'x' },
    /OIDC_AUDIENCE has no effect without WINDLASS_KNATIVE_OIDC_ISSUER/,
  ],
  [
    'authorities that are not there',
    { ...OIDC, WINDLASS_KNATIVE_OIDC_CA_FILE: '/nowhere' },
    /CA_FILE "\/nowhere" can't be read \(ENOENT\)/,
  ],
]
for (const [what, env, fault] of refused)
  t.test(`refused is ${what}`, async (t) => {
    const text = await knative(env)
    t.match(text, fault)
    t.equal(String(text).split('\n').length, 1, 'for one reason alone')
    t.notMatch(text, /planted/)
  })

t.test('an issuer on this machine needs no encryption', async (t) => {
  for (const WINDLASS_KNATIVE_OIDC_ISSUER of ['http://127.0.0.1:8080', 'http://[::1]:8080', 'http://localhost'])
    t.match(await knative({ ...OIDC, WINDLASS_KNATIVE_OIDC_ISSUER }), {
      oidc: { issuer: WINDLASS_KNATIVE_OIDC_ISSUER },
    })
})

t.test('of many clusters each has its own, and none takes what another takes', async (t) => {
  const path = join(t.testdir({}), 'clusters.yaml')
  const clusters = async (lab: string) => {
    writeFileSync(
      path,
      `
prod: { webhookKeys: ${KEY}, knativeTokens: [${FIRST}, ${SECOND}], knativeOidcIssuer: "https://i.example", knativeOidcAudience: prod }
lab: { webhookKeys: ${KEY}, ${lab} }
`,
    )
    return await load({ WINDLASS_REDIS_URL: 'redis://a', WINDLASS_CLUSTERS_FILE: path })
  }
  const good = await clusters('knativeOidcIssuer: "https://i.example", knativeOidcAudience: lab')
  t.match(good, {
    clusters: [
      { knative: { tokens: [FIRST, SECOND], oidc: { audience: 'prod' } } },
      { knative: { oidc: { audience: 'lab' } } },
    ],
  })
  t.match(await clusters('knativeOidcIssuer: "https://other.example", knativeOidcAudience: prod'), {
    clusters: [{}, {}],
  })
  t.equal(
    await clusters('knativeOidcIssuer: "https://i.example", knativeOidcAudience: prod'),
    'knativeOidcAudience of cluster lab is that of cluster prod, which has the same issuer: give each its own',
  )
  t.equal(
    await clusters(`knativeTokens: ${SECOND}`),
    'knativeTokens of cluster lab (not shown) has a token that cluster prod has too: give each its own',
  )
  t.match(await clusters('knativeOidcAudience: x'), /knativeOidcAudience of cluster lab in .* has no effect without/)
  const beside = { WINDLASS_REDIS_URL: 'redis://a', WINDLASS_CLUSTERS_FILE: path, WINDLASS_KNATIVE_TOKENS: FIRST }
  t.match(await load(beside), /WINDLASS_KNATIVE_TOKENS is set beside a file of clusters/)
})
