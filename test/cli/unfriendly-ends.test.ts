import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { startRedis } from '../redis.ts'
import { startHcloudSimulator } from '../simulators/hcloud/simulator.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** Runs the executable until it ends. */
async function windlass(argv: string[], env: Record<string, string>, root = ROOT) {
  const child = spawn(process.execPath, [join(root, 'src', 'main.ts'), ...argv], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 30_000,
  })
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, output, errors }
}

const lines = (output: string) =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

function kubeconfig(t: Test, content: object): string {
  const path = join(t.testdir(), 'kubeconfig')
  writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...content }))
  return path
}

t.test('a plan with a kubeconfig that leads nowhere is one sentence that names the setting', async (t) => {
  const contexts = [
    { name: 'prod', context: { cluster: 'c' } },
    { name: 'test', context: { cluster: 'c' } },
  ]
  const clusters = [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }]
  for (const [content, argv, fault] of [
    [{}, [], /has no contexts: check which file the setting kubeconfig names \(KUBECONFIG, --kubeconfig\)/],
    [
      { contexts, clusters },
      [],
      /names no current context: choose one with the setting context \(WINDLASS_CONTEXT, --context\), one of prod, test/,
    ],
    [
      { contexts, clusters },
      ['--context=other'],
      /no context "other": choose one with the setting context \(WINDLASS_CONTEXT, --context\), one of prod, test/,
    ],
  ] as const) {
    const env = { KUBECONFIG: kubeconfig(t, content), HCLOUD_TOKEN: 'k'.repeat(64) }
    const { code, output, errors } = await windlass(['plan', ...argv], env)
    t.equal(code, 1)
    t.match(errors, /^windlass plan, cluster default: The kubeconfig/)
    t.match(errors, fault)
    t.notMatch(errors + output, /fatal|stack|\.ts:/)
  }
})

t.test('a port that is taken is told with the setting that says which', async (t) => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address() as AddressInfo
  const redis = await startRedis()
  const kubernetes = await startKubernetesSimulator()
  const hcloud = await startHcloudSimulator({ token: 'k'.repeat(64) })
  t.teardown(() => Promise.all([taken.close(), redis.stop(), kubernetes.close(), hcloud.close()]))
  const path = join(t.testdir(), 'kubeconfig')
  writeFileSync(path, kubernetes.kubeconfig)
  const env = {
    KUBECONFIG: path,
    HCLOUD_TOKEN: 'k'.repeat(64),
    HCLOUD_ENDPOINT: hcloud.apiUrl,
    HCLOUD_METRICS_ENABLED: 'false',
    WINDLASS_REDIS_URL: redis.url,
    WINDLASS_WEBHOOK_KEYS: KEY,
    WINDLASS_SERVER_URL: `http://127.0.0.1:${port}`,
    WINDLASS_LISTEN: `127.0.0.1:${port}`,
  }
  for (const role of ['server', 'worker', 'forwarder']) {
    const { code, output } = await windlass([role], env)
    t.equal(code, 1)
    const fatal = lines(output).find(({ level }) => level === 'fatal')
    t.equal(
      fatal?.error,
      `WINDLASS_LISTEN: 127.0.0.1:${port} can't be listened on (EADDRINUSE): port ${port} is taken by another process: end that, or choose another port`,
      role,
    )
    t.equal(fatal?.stack, undefined)
  }
  const nowhere = await windlass(['server'], { ...env, WINDLASS_LISTEN: '192.0.2.1:8080' })
  t.match(lines(nowhere.output).at(-1)?.error, /^WINDLASS_LISTEN: .*192\.0\.2\.1 is no address of this machine/)

  const refused = await windlass(['worker'], { ...env, HCLOUD_TOKEN: 'x'.repeat(64) })
  t.equal(refused.code, 1)
  t.match(lines(refused.output).at(-1), { msg: 'command failed', error: /check HCLOUD_TOKEN/ })
  t.notMatch(refused.output, '"stack"', 'a sentence for an admin needs no stack')
})

t.test('flags of the replaced controllers that have no effect are no warning, a slip is', async (t) => {
  const env = { WINDLASS_REDIS_URL: 'redis://127.0.0.1:1', WINDLASS_LISTEN: '192.0.2.1:1', WINDLASS_WEBHOOK_KEYS: KEY }
  const { output } = await windlass(['server', '--leader-elect=true'], { ...env, WINDLASS_REDIS_URLL: 'x' })
  const noticed = lines(output).filter(({ msg }) => msg === 'setting noticed')
  t.match(noticed, [
    { level: 'info', setting: '--leader-elect', notice: /^has no effect: / },
    { level: 'warn', setting: 'WINDLASS_REDIS_URLL' },
  ])
})

t.test('without the package for lines that people read, lines are JSON and say so', async (t) => {
  // Not below a folder with all packages.
  const root = mkdtempSync(join(tmpdir(), 'windlass-without-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  cpSync(join(ROOT, 'src'), join(root, 'src'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(root, 'package.json'))
  mkdirSync(join(root, 'node_modules'))
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name !== 'pino-pretty') symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name))
  const env = { WINDLASS_REDIS_URL: 'redis://127.0.0.1:1', WINDLASS_LISTEN: '192.0.2.1:1', WINDLASS_WEBHOOK_KEYS: KEY }
  const without = await windlass(['server', '--log-format=pretty'], env, root)
  t.notMatch(without.errors, 'ERR_MODULE_NOT_FOUND')
  t.match(lines(without.output)[0], { level: 'warn', setting: 'WINDLASS_LOG_FORMAT', notice: /pino-pretty/ })
  const withIt = await windlass(['server', '--log-format=pretty'], env)
  t.same(lines(withIt.output), [])
  t.match(withIt.output, /command failed/)
})
