import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import type { Call } from '../../src/call.ts'
import type { KubernetesSettings } from '../../src/config/types.ts'
import { aborted } from '../../src/errors.ts'
import { createKubernetesApi } from '../../src/kubernetes/api.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import type { Surroundings } from '../../src/kubernetes/credentials.ts'
import { NODES } from '../../src/kubernetes/resources.ts'
import { EVERYTHING } from '../simulators/kubernetes/access.ts'
import { selfSigned } from '../simulators/kubernetes/certificate.ts'
import {
  type KubernetesSimulator,
  type SimulatorOptions,
  startKubernetesSimulator,
} from '../simulators/kubernetes/simulator.ts'
import { failure, silent } from './setting.ts'

const TIMEOUT_MS = 15_000

async function simulate(t: Test, options?: SimulatorOptions) {
  const simulator = await startKubernetesSimulator(options)
  t.teardown(() => simulator.close())
  return simulator
}

async function open(t: Test, settings: KubernetesSettings, surroundings?: Partial<Surroundings>) {
  const connection = await connect(settings, silent, surroundings)
  t.teardown(() => connection.close())
  const ask = async (path = '/api/v1/nodes') =>
    (await connection.request({ method: 'GET', path, timeoutMs: TIMEOUT_MS })).status
  return { connection, ask }
}

interface Config {
  cluster?: object
  user?: object
  context?: object
}

/** A kubeconfig file with one context. */
function write(
  t: Test,
  simulator: Pick<KubernetesSimulator, 'url'>,
  { cluster, user, context }: Config,
  name = 'config',
) {
  const path = join(directory(t), name)
  writeFileSync(
    path,
    stringify({
      'current-context': 'main',
      clusters: [{ name: 'c', cluster: { server: simulator.url, ...cluster } }],
      users: [{ name: 'u', user: user ?? {} }],
      contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', ...context } }],
    }),
  )
  return path
}

const directories = new WeakMap<Test, string>()
function directory(t: Test): string {
  const path = directories.get(t) ?? t.testdir()
  directories.set(t, path)
  return path
}

const refused = async (settings: KubernetesSettings, surroundings?: Partial<Surroundings>) =>
  failure(connect(settings, silent, surroundings))

t.test('a kubeconfig', async (t) => {
  const simulator = await simulate(t)
  const { token } = simulator

  t.test('gives server and token', async (t) => {
    const { ask, connection } = await open(t, { kubeconfig: [write(t, simulator, { user: { token } })] })
    t.equal(await ask(), 200)
    t.equal(connection.server, simulator.url)
  })
  t.test('may be several files, of which the first to name a thing wins', async (t) => {
    const first = join(directory(t), 'first')
    writeFileSync(first, stringify({ 'current-context': 'other', users: [{ name: 'u', user: { token } }] }))
    const second = write(t, simulator, { user: { token: 'wrong' } })
    const third = join(directory(t), 'third')
    writeFileSync(third, stringify({ contexts: [{ name: 'other', context: { cluster: 'c', user: 'u' } }] }))
    const { ask } = await open(t, { kubeconfig: [first, '/nowhere/config', second, third] })
    t.equal(await ask(), 200)
  })
  t.test('can be overridden in context and server', async (t) => {
    const path = join(directory(t), 'config')
    writeFileSync(
      path,
      stringify({
        'current-context': 'a',
        clusters: [{ name: 'c', cluster: { server: 'https://unreachable.invalid' } }],
        users: [
          { name: 'a', user: { token: 'wrong' } },
          { name: 'b', user: { token } },
        ],
        contexts: ['a', 'b'].map((name) => ({ name, context: { cluster: 'c', user: name } })),
      }),
    )
    const { ask } = await open(t, { kubeconfig: [path], context: 'b', server: `${simulator.url}/` })
    t.equal(await ask(), 200)
  })
  t.test('may name a token file, which is found beside it', async (t) => {
    writeFileSync(join(directory(t), 'token'), `${token}\n`)
    const { ask } = await open(t, {
      kubeconfig: [write(t, simulator, { user: { tokenFile: 'token', token: 'wrong' } })],
    })
    t.equal(await ask(), 200)
  })
  t.test('may impersonate a user', async (t) => {
    const { ask } = await open(t, { kubeconfig: [write(t, simulator, { user: { token, as: 'someone' } })] })
    t.equal(await ask(), 200)
  })
  t.test('may send everything through a proxy', async (t) => {
    const path = write(
      t,
      { url: 'http://kubernetes.invalid:6443' },
      { user: { token }, cluster: { 'proxy-url': simulator.url } },
    )
    const { ask } = await open(t, { kubeconfig: [path] })
    t.equal(await ask('/healthz'), 200)
    t.match(simulator.requests.at(-1), { url: 'http://kubernetes.invalid:6443/healthz' })
  })
})

t.test('a kubeconfig that can not work is refused in words', async (t) => {
  const server = { url: 'https://127.0.0.1:1' }
  const says = async (t: Test, config: Config, message: RegExp) =>
    t.match(await refused({ kubeconfig: [write(t, server, config)] }), { kind: 'permanent', message })
  t.test('not there', async (t) => {
    t.match(await refused({ kubeconfig: ['/nowhere/config'] }), { message: /\/nowhere\/config cannot be read/ })
    t.match(await refused({ kubeconfig: ['/nowhere/a', '/nowhere/b'] }), {
      message: /None of the kubeconfig files exists/,
    })
  })
  t.test('no kubeconfig at all', async (t) => {
    const path = join(directory(t), 'config')
    for (const [text, message] of [
      ['a: [', /is not YAML/],
      ['hello', /no mapping/],
      ['clusters: 1', /clusters .* is not a list/],
      ['clusters: [{}]', /has no name/],
      ['{}', /has no contexts.*KUBECONFIG/],
      ['contexts: [{name: y, context: {}}, {name: z, context: {}}]', /no current context: choose .* y, z/],
      ['current-context: x\ncontexts: [{name: y, context: {}}]', /no context "x": choose .*--context\), one of y/],
      ['current-context: x\ncontexts: [{name: x, context: {cluster: c}}]', /cluster "c", which is not there/],
    ] as const) {
      writeFileSync(path, text)
      t.match(await refused({ kubeconfig: [path] }), { kind: 'permanent', message }, text)
    }
  })
  t.test('user that is not there', (t) => says(t, { context: { user: 'x' } }, /user "x", which is not there/))
  t.test('basic auth', (t) =>
    says(t, { user: { username: 'a', password: 'b' } }, /no longer accepts basic authentication/),
  )
  t.test('groups', (t) => says(t, { user: { 'as-groups': ['g'] } }, /impersonates groups/))
  t.test('half a certificate', (t) =>
    says(
      t,
      { user: { 'client-key-data': Buffer.from('-----BEGIN').toString('base64') } },
      /without its key, or a key alone/,
    ),
  )
  t.test('data that is no PEM', (t) =>
    says(t, { cluster: { 'certificate-authority-data': 'AAAA' } }, /not PEM in base64/),
  )
  t.test('a socks proxy', (t) => says(t, { cluster: { 'proxy-url': 'socks5://x' } }, /only http/))
  t.test('no server', (t) => says(t, { cluster: { server: '' } }, /has no server/))
  t.test('odd server', (t) => says(t, { cluster: { server: 'ftp://x' } }, /no address of a Kubernetes API server/))
  t.test('token file that is not there', (t) =>
    says(t, { user: { tokenFile: 'none' } }, /token file .*none cannot be read/),
  )
})

t.test('over TLS', async (t) => {
  const tls = selfSigned('simulator')
  const simulator = await simulate(t, { tls })
  const user = { token: simulator.token }
  const data = Buffer.from(tls.ca).toString('base64')

  t.test('the authority comes as data or file', async (t) => {
    writeFileSync(join(directory(t), 'ca.crt'), tls.ca)
    for (const cluster of [{ 'certificate-authority-data': data }, { 'certificate-authority': 'ca.crt' }]) {
      const { ask } = await open(t, { kubeconfig: [write(t, simulator, { user, cluster })] })
      t.equal(await ask(), 200)
    }
  })
  t.test('an unknown authority is refused, unless told otherwise', async (t) => {
    const { ask } = await open(t, { kubeconfig: [write(t, simulator, { user })] })
    t.match(await failure(ask()), { kind: 'transient', message: /certificate/ })
    const cluster = { 'insecure-skip-tls-verify': true }
    const trusting = await open(t, { kubeconfig: [write(t, simulator, { user, cluster }, 'insecure')] })
    t.equal(await trusting.ask(), 200)
  })
  t.test('the name in the certificate may differ from the address', async (t) => {
    const named = (name: string) => ({ 'certificate-authority-data': data, 'tls-server-name': name })
    const right = await open(t, { kubeconfig: [write(t, simulator, { user, cluster: named('localhost') })] })
    t.equal(await right.ask(), 200)
    const wrong = await open(t, { kubeconfig: [write(t, simulator, { user, cluster: named('other') }, 'wrong')] })
    t.match(await failure(wrong.ask()), { kind: 'transient' })
  })
  t.test('a client certificate is shown', async (t) => {
    const client = selfSigned('windlass')
    const asking = await simulate(t, { tls: { ...tls, requestCert: true } })
    const path = write(t, asking, {
      cluster: { 'certificate-authority-data': data },
      user: {
        token: asking.token,
        'client-certificate-data': Buffer.from(client.cert).toString('base64'),
        'client-key-data': Buffer.from(client.key).toString('base64'),
      },
    })
    const { ask } = await open(t, { kubeconfig: [path] })
    t.equal(await ask(), 200)
    t.match(asking.requests.at(-1), { clientName: 'windlass' })
  })
})

t.test('in a Pod', async (t) => {
  const tls = selfSigned('simulator')
  const simulator = await simulate(t, { tls })
  const { hostname, port } = new URL(simulator.url)
  const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }

  t.test('the service account serves, and its token is read again when the old one is refused', async (t) => {
    const serviceAccountDir = t.testdir({ token: simulator.token, 'ca.crt': tls.ca })
    const { ask, connection } = await open(t, {}, { env, serviceAccountDir })
    t.equal(await ask(), 200)
    simulator.access.revoke(simulator.token)
    simulator.access.grant('rotated', { user: 'pod', rules: EVERYTHING })
    writeFileSync(join(serviceAccountDir, 'token'), 'rotated\n')
    t.equal(await ask(), 200)
    t.match(simulator.requests.slice(-2), [{ status: 401 }, { status: 200, user: 'pod' }])
    const stream = await connection.stream({ method: 'GET', path: '/healthz', timeoutMs: TIMEOUT_MS })
    t.equal(stream.status, 200)
    stream.destroy()
  })
  t.test('a stream, too, is opened again with new credentials', async (t) => {
    const serviceAccountDir = t.testdir({ token: 'outdated', 'ca.crt': tls.ca })
    const { connection } = await open(t, {}, { env, serviceAccountDir })
    simulator.access.grant('fresh', { user: 'pod', rules: EVERYTHING })
    writeFileSync(join(serviceAccountDir, 'token'), 'fresh')
    const stream = await connection.stream({ method: 'GET', path: '/healthz', timeoutMs: TIMEOUT_MS })
    t.equal(stream.status, 200)
    stream.destroy()
  })
  t.test('a write is not sent again by a run that lost its claim meanwhile', async (t) => {
    const serviceAccountDir = t.testdir({ token: 'outdated', 'ca.crt': tls.ca })
    const { connection } = await open(t, {}, { env, serviceAccountDir })
    simulator.access.grant('renewed', { user: 'pod', rules: EVERYTHING })
    writeFileSync(join(serviceAccountDir, 'token'), 'renewed')
    let asked = 0
    const call: Call = {
      signal: new AbortController().signal,
      urgency: 'user',
      log: silent,
      async beforeWrite(what) {
        if (++asked > 1) throw aborted(what)
      },
    }
    const before = simulator.requests.length
    const patch = { type: 'merge', body: {} } as const
    await t.rejects(createKubernetesApi(connection).patch(NODES, { name: 'none' }, patch, call), {
      kind: 'aborted',
      message: 'patch Node none',
    })
    t.match(simulator.requests.slice(before), [{ status: 401 }])
    t.equal(simulator.requests.length, before + 1)
  })
  t.test('credentials that stay wrong are not read again at each request', async (t) => {
    const serviceAccountDir = t.testdir({ token: 'wrong', 'ca.crt': tls.ca })
    const { ask } = await open(t, {}, { env, serviceAccountDir })
    const before = simulator.requests.length
    for (let i = 0; i < 4; i++) t.equal(await ask(), 401)
    t.equal(simulator.requests.length, before + 5)
  })
  t.test('an authority that was replaced is found after a refusal', async (t) => {
    const serviceAccountDir = t.testdir({ token: 'outdated', 'ca.crt': tls.ca })
    const { ask } = await open(t, {}, { env, serviceAccountDir })
    simulator.access.grant('new', { user: 'pod', rules: EVERYTHING })
    writeFileSync(join(serviceAccountDir, 'token'), 'new')
    writeFileSync(join(serviceAccountDir, 'ca.crt'), `${selfSigned('other').ca}${tls.ca}`)
    t.equal(await ask(), 200)
  })
  t.test('what is missing is said', async (t) => {
    const serviceAccountDir = t.testdir({ 'ca.crt': tls.ca })
    t.match(await refused({}, { env: {} }), { kind: 'permanent', message: /set the path of a kubeconfig/ })
    t.match(await refused({}, { env, serviceAccountDir }), {
      kind: 'permanent',
      message: /token file .* cannot be read/,
    })
  })
  t.test('a server alone is asked without credentials', async (t) => {
    const plain = await simulate(t)
    const { ask } = await open(t, { server: plain.url }, { env: {} })
    t.equal(await ask(), 401)
  })
})

t.test('an exec plugin is asked for a token, with the exec info it expects', async (t) => {
  const simulator = await simulate(t)
  const plugin = join(directory(t), 'plugin')
  writeFileSync(
    plugin,
    `#!/bin/sh
case "$KUBERNETES_EXEC_INFO" in *'"interactive":false'*) ;; *) exit 3 ;; esac
echo x >> "${join(directory(t), 'runs')}"
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$(cat "${join(directory(t), 'token')}")"
`,
  )
  chmodSync(plugin, 0o755)
  writeFileSync(join(directory(t), 'token'), simulator.token)
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin', interactiveMode: 'Never' }
  const path = write(t, simulator, { user: { exec } })
  const { ask } = await open(t, { kubeconfig: [path] })
  t.equal(await ask(), 200)

  t.test('again when the token is refused', async (t) => {
    simulator.access.revoke(simulator.token)
    simulator.access.grant('second', { user: 'plugin', rules: EVERYTHING })
    writeFileSync(join(path, '..', 'token'), 'second')
    t.equal(await ask(), 200)
  })
  t.test('and its failure is told', async (t) => {
    const broken = write(t, simulator, { user: { exec: { ...exec, command: '/bin/false' } } })
    const failing = await open(t, { kubeconfig: [broken] })
    t.match(await failure(failing.ask()), { kind: 'transient', message: /credential plugin of user "u".*failed/ })
  })
})
