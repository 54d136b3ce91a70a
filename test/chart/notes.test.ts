import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { CHART, helm, render } from '../../infra/helm.ts'
import { deploymentsOf, objectsOf, rolesOf, type Secrets, startOf, WEBHOOK_KEY } from './pods.ts'

const IMAGE = { repository: 'registry.example.com/windlass' }

const SECRETS: Secrets = {
  hcloud: { token: 'k'.repeat(64), network: 'prod' },
  'windlass-internal': { WINDLASS_WEBHOOK_KEYS: WEBHOOK_KEY, WINDLASS_REDIS_PASSWORD: 'secret' },
}

/** What helm prints after an install with these values. */
async function notesOf(values: object): Promise<string> {
  const args = ['install', 'windlass', CHART, '--namespace', 'windlass', '--dry-run=client']
  const { code, stdout, stderr } = await helm(args, { values: { image: IMAGE, ...values } })
  if (code !== 0) throw new Error(stderr)
  return stdout.slice(stdout.indexOf('NOTES:'))
}

/** The words that a shell makes of a line, of which it runs nothing. */
const wordsOf = (line: string): string[] =>
  execFileSync('sh', ['-c', `printf '%s\\0' ${line}`])
    .toString()
    .split('\0')
    .slice(0, -1)

for (const mode of ['single', 'split'])
  t.test(`${mode}: the doctor that is recommended has the settings of the Pod in which it runs`, async (t) => {
    const dir = t.testdir({ 'cloud-sa.json': JSON.stringify({ apiKey: 'k', projectID: 1, region: "it's" }) })
    const values = {
      mode,
      clouds: ['hcloud', 'cherryservers'],
      networking: { enabled: true, clusterCIDR: '10.42.0.0/16' },
      args: { controllers: '*,-route', 'node-status-update-frequency': '7m', 'allow-untagged-cloud': '', v: 4 },
      additionalCommands: ['--log-level=warn', '--concurrency=3'],
      env: { HCLOUD_LOAD_BALANCERS_LOCATION: 'fsn1', WINDLASS_CLUSTER: 'prod' },
    }
    const [line = ''] = /^ *kubectl .* doctor.*$/m.exec(await notesOf(values)) ?? []
    const words = wordsOf(line)
    const deployment = mode === 'single' ? ['deploy/windlass', '-c', 'windlass'] : ['deploy/windlass-worker']
    const command = ['kubectl', '-n', 'windlass', 'exec', ...deployment, '--', 'node', 'src/main.ts']
    t.same(words.slice(0, command.length), command)

    const objects = objectsOf(await render({ image: IMAGE, ...values }))
    const [container] = deploymentsOf(objects)
      .filter(({ metadata }) => `deploy/${metadata.name}` === deployment[0])
      .flatMap(rolesOf)
    const startWith = (args: string[]) => {
      container.args = args.map((arg) => arg.replace('/etc/cloud-sa/', join(dir, '/')))
      return startOf(container, objects, SECRETS)
    }
    const worker = await startWith(container.args)
    const doctor = await startWith(words.slice(command.length))
    t.equal(doctor.command, 'doctor')
    t.match(doctor.settings.clusters, [
      { id: 'prod', clouds: { cherry: { region: "it's" } }, framework: { clusterCidrs: ['10.42.0.0/16'] } },
    ])
    const told = ({ settings: { clusters, redis } }: typeof doctor) =>
      // Tokens are read from a folder that is made for each start.
      JSON.parse(JSON.stringify({ clusters, redis }, (key, value) => (key === 'token' ? undefined : value)))
    t.same(told(doctor), told(worker))
    t.same(doctor.settings.log, worker.settings.log)
  })

t.test('a flag reaches the recommended doctor as it is written, whatever it is for a shell', async (t) => {
  const controllers = '* $(echo) it\'s "a" `b` \\ ;&'
  const [line = ''] = /^ *kubectl .* doctor.*$/m.exec(await notesOf({ args: { controllers } })) ?? []
  t.same(wordsOf(line).slice(-1), [`--controllers=${controllers}`])
})

/** The Secrets of the notes, by name, with their keys. */
const secretsOf = (notes: string) =>
  Object.fromEntries(
    [...notes.matchAll(/^ {2}([a-z-]+): (.+) \(is not there yet\)$/gm)].map(([, name, keys]) => [
      name,
      keys?.split(', ').sort(),
    ]),
  )

t.test('the Secrets that are read are told, those of what is on', async (t) => {
  const shared = ['WINDLASS_REDIS_PASSWORD', 'WINDLASS_WEBHOOK_KEYS']
  const hcloud = ['robot-password', 'robot-user', 'token']
  const cherry = { clouds: ['cherryservers'] }
  const redis = { enabled: false }
  const env = { WINDLASS_REDIS_URL: { valueFrom: { secretKeyRef: { name: 'redis', key: 'url' } } } }
  for (const [values, secrets] of [
    [{}, { hcloud }],
    [{ networking: { enabled: true } }, { hcloud: ['network', ...hcloud] }],
    [{ mode: 'split' }, { hcloud, 'windlass-internal': shared }],
    [cherry, { 'cherry-cloud-config': ['cloud-sa.json'] }],
    [{ ...cherry, config: { apiKey: 'k', projectID: 1 } }, {}],
    [
      { ...cherry, configSecret: { name: '' }, envFrom: [{ secretRef: { name: 'mine' } }] },
      { mine: ['settings by their names'] },
    ],
    [
      { ...cherry, configSecret: { name: '' }, internalSecret: 'in', server: { metricsToken: true } },
      { in: ['WINDLASS_METRICS_TOKEN'] },
    ],
    [
      { mode: 'split', redis, env },
      { hcloud, redis: ['url'], 'windlass-internal': ['WINDLASS_WEBHOOK_KEYS'] },
    ],
  ] as const) {
    const told = secretsOf(await notesOf(values))
    t.same(told, secrets, JSON.stringify(values))
  }
})

t.test('the command that makes the shared Secret gives it all that Pods wait for, and nothing twice', async (t) => {
  for (const [values, keys] of [
    [{ mode: 'split' }, ['WINDLASS_WEBHOOK_KEYS', 'WINDLASS_REDIS_PASSWORD']],
    [
      { mode: 'split', server: { metricsToken: true } },
      ['WINDLASS_WEBHOOK_KEYS', 'WINDLASS_REDIS_PASSWORD', 'WINDLASS_METRICS_TOKEN'],
    ],
    [{ server: { metricsToken: true } }, ['WINDLASS_METRICS_TOKEN']],
    [{}, undefined],
  ] as const) {
    const [command] = /^ *kubectl .* create secret (?:.*\\\n)*.*$/m.exec(await notesOf(values)) ?? []
    if (command === undefined || keys === undefined) {
      t.equal(command, keys, 'nobody waits for it')
      continue
    }
    // Run by a shell in which the programs only tell what they are given.
    const script = `openssl() { echo "$2.$3"; }; kubectl() { printf '%s\\n' "$@"; }; ${command}`
    const words = execFileSync('sh', ['-c', script]).toString().trim().split('\n')
    const head = ['-n', 'windlass', 'create', 'secret', 'generic', 'windlass-internal']
    const made = (key: string) => (key === 'WINDLASS_WEBHOOK_KEYS' ? 'whsec_-base64.32' : '-hex.24')
    t.same(words, [...head, ...keys.flatMap((key) => ['--from-literal', `${key}=${made(key)}`])])
  }
})

t.test('a number of workers that somebody else says is not passed over in silence', async (t) => {
  const told = async (values: object) =>
    /no effect here: .*replicaCount/.test(await notesOf({ mode: 'split', ...values }))
  t.equal(await told({ replicaCount: 3, keda: { enabled: true } }), true)
  t.equal(await told({ replicaCount: 3, worker: { replicas: 5 } }), true)
  t.equal(await told({ replicaCount: 3 }), false, 'it is the number of workers')
  t.equal(await told({ replicaCount: 1, keda: { enabled: true } }), false, 'the default of the replaced chart')
})
