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
