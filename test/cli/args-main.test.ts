import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Runs the executable with nothing in its environment but what is given, until it ends. */
async function windlass(argv: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, ...argv], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, output, errors }
}

t.jobs = 2

t.test('help and version', async (t) => {
  const overall = await windlass(['--help'])
  t.equal(overall.code, 0)
  for (const command of ['forwarder', 'server', 'worker', 'all', 'plan', 'doctor']) t.match(overall.output, command)
  t.match(await windlass(['--version']), { code: 0, output: /^windlass \d+\.\d+\.\d+\n$/ })
})

t.test('help of a command lists its settings, and prints no value that is set', async (t) => {
  const { code, output } = await windlass(['all', '--help'], { HCLOUD_TOKEN: 'planted', WINDLASS_LISTEN: 'planted' })
  t.equal(code, 0)
  t.match(output, '--redis-url  WINDLASS_REDIS_URL  WINDLASS_REDIS_URL_FILE')
  t.match(output, 'HCLOUD_NETWORK')
  t.match(output, 'CHERRY_LOAD_BALANCER')
  t.match(output, /HCLOUD_TOKEN_FILE .*\n.*Required for Hetzner, if used\./)
  t.match(output, /CHERRY_PROJECT_ID .*\n.*Required for Cherry Servers, if used\./)
  t.match(output, /WINDLASS_REDIS_URL_FILE .*\n.*Required\.\n/)
  t.match(output, '--leader-elect')
  t.notMatch(output, 'planted')
  t.notMatch((await windlass(['server', '--help'])).output, 'HCLOUD_NETWORK')
  t.match((await windlass(['plan', '--help'])).output, /Exit codes: 0 .*; 1 .*; 2 something would change/)
})

t.test('a wrong command line ends with 1: 2 is what plan says of changes', async (t) => {
  t.match(await windlass([]), { code: 1, errors: /a command is missing/ })
  t.match(await windlass(['serv']), { code: 1, errors: /no command/ })
  t.match(await windlass(['plan', '--nonsense']), { code: 1, errors: /--nonsense/ })
})

t.test('all faults are told at once, of flags, environment and files, and no secret', async (t) => {
  const { code, output, errors } = await windlass(['all', '--hcloud-token=planted', '--node-monitor-period=5'], {
    WINDLASS_REDIS_URL: 'redis+cluster://:planted@redis',
    HCLOUD_TOKEN: 'planted',
    HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE: 'fastest',
    HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL: '10 seconds',
    CHERRY_API_KEY: 'planted',
    CHERRY_PROJECT_ID: 'lab',
    CHERRY_CLOUD_CONFIG: '/nowhere.json',
    WINDLASS_WEBHOOK_KEYS: 'planted',
  })
  t.equal(code, 1)
  t.equal(output, '')
  const names = [
    '--hcloud-token ',
    'WINDLASS_REDIS_URL ',
    '--node-monitor-period "5"',
    'ALGORITHM_TYPE "fastest"',
    'HEALTH_CHECK_INTERVAL "10 seconds"',
    'CHERRY_PROJECT_ID "lab"',
    'CHERRY_CLOUD_CONFIG "/nowhere.json"',
    'WINDLASS_WEBHOOK_KEYS ',
    'KUBECONFIG ',
  ]
  for (const name of names) t.match(errors, name)
  t.equal(errors.trim().split('\n').length, names.length + 1)
  t.notMatch(errors, 'planted')
})

t.test('wrong settings end with 1', async (t) => {
  const env = { WINDLASS_REDIS_URL: 'redis://127.0.0.1:1', KUBERNETES_SERVICE_HOST: '127.0.0.1' }
  t.match(await windlass(['worker'], env), { code: 1, errors: /HCLOUD_TOKEN and CHERRY_API_KEY are missing/ })
})

t.test('what every command loads is small: no server, queue, validation or Kubernetes client', async (t) => {
  const packages = new Set<string>()
  const seen = new Set<string>()
  const visit = (path: string) => {
    if (seen.has(path)) return
    seen.add(path)
    for (const [, clause = '', from = ''] of readFileSync(path, 'utf8').matchAll(
      /^(?:import|export)\s([^;'"]*?)\sfrom '([^']+)'/gm,
    )) {
      if (clause.startsWith('type ')) continue
      if (from.startsWith('.')) visit(resolve(dirname(path), from))
      else if (!from.startsWith('node:')) packages.add(from)
    }
  }
  visit(MAIN)
  t.same([...packages].sort(), ['fastest-levenshtein', 'ipaddr.js', 'pino'])
})
