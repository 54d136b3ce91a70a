import t from 'tap'
import { parseArgs } from '../../src/cli/args.ts'

function run(...argv: string[]) {
  const invocation = parseArgs(argv)
  if (invocation.kind !== 'run') throw new Error(`${argv.join(' ')} comes to ${invocation.kind}`)
  return { ...invocation, flags: Object.fromEntries(invocation.flags) }
}

const messages = (...argv: string[]) => run(...argv).faults.map(({ name, message }) => `${name} ${message}`)

t.test('a command line is a command and its flags, in any order', async (t) => {
  t.match(run('worker'), { command: 'worker', flags: {}, subjects: [], faults: [] })
  t.match(run('--concurrency', '4', 'worker', '--log-level=debug'), {
    command: 'worker',
    flags: { concurrency: '4', 'log-level': 'debug' },
    faults: [],
  })
})

t.test('flags are read as Go does', async (t) => {
  const cases: [string[], Record<string, string>][] = [
    [['--leader-elect'], { 'leader-elect': 'true' }],
    [['--leader-elect=false'], { 'leader-elect': 'false' }],
    [['--node_monitor_period=1s'], { 'node-monitor-period': '1s' }],
    [['--node-monitor-period', '1s'], { 'node-monitor-period': '1s' }],
    [['--controllers', '-route'], { controllers: '-route' }],
    [['--controllers=*', '--controllers=-route'], { controllers: '*,-route' }],
    [['--cluster-cidr=a', '--cluster-cidr=b'], { 'cluster-cidr': 'b' }],
    [['--cluster-cidr='], { 'cluster-cidr': '' }],
    [['--cluster-name=a=b'], { 'cluster-name': 'a=b' }],
    [['-v=4'], { v: '4' }],
    [['-v4'], { v: '4' }],
    [['-v', '4'], { v: '4' }],
    [['--v=4'], { v: '4' }],
    [['--hcloud-debug', '--robot-enabled'], { 'hcloud-debug': 'true', 'robot-enabled': 'true' }],
  ]
  for (const [argv, flags] of cases) t.match(run('all', ...argv), { flags, faults: [] }, argv.join(' '))
})

t.test('the replaced controllers’ arguments are taken as they are', async (t) => {
  const hetzner =
    '--allow-untagged-cloud --cloud-provider=hcloud --feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true --leader-elect=false --route-reconciliation-period=30s --webhook-secure-port=0 --allocate-node-cidrs=true --cluster-cidr=10.244.0.0/16'
  const cherry =
    '--cloud-provider=cherryservers --leader-elect=false --authentication-skip-lookup=true --cloud-config=/etc/cloud-sa/cloud-sa.json'
  for (const line of [hetzner, cherry]) {
    t.same(run('worker', ...line.split(' ')).faults, [])
    t.same(run('forwarder', ...line.split(' ')).faults, [], 'by commands that have no use for them too')
  }
})

t.test('a flag that is unknown, of another command or without value is refused', async (t) => {
  t.match(messages('all', '--hcloud-netwrk=x'), [
    /^--hcloud-netwrk is no flag of all, the nearest is --hcloud-network$/,
  ])
  t.match(messages('server', '--until-idle'), [/^--until-idle is no flag of server, only of worker$/])
  t.match(messages('all', '--listen'), [/^--listen lacks its value: host:port, or/])
  t.match(messages('all', '--nope', '--neither', '--log-level=info'), [/--nope/, /--neither/])
})

t.test('what may be a secret in the wrong place is not repeated', async (t) => {
  for (const argv of [
    ['all', '--hcloud-token', 'planted'],
    ['all', '--hcloud-token=planted'],
    ['all', '--hcloud-token:planted'],
    ['all', 'planted'],
    ['planted'],
  ]) {
    const invocation = parseArgs(argv)
    t.ok('faults' in invocation && invocation.faults.length === 1, argv.join(' '))
    t.notMatch(JSON.stringify('faults' in invocation && invocation.faults), /planted/)
  }
  t.match(messages('all', '--hcloud-token=planted'), [/set HCLOUD_TOKEN, or --hcloud-token-file/])
})

t.test('only a plan takes arguments', async (t) => {
  t.match(run('plan', 'Service/default/web', '--json', '--', '--odd'), {
    subjects: ['Service/default/web', '--odd'],
    flags: { json: 'true' },
    faults: [],
  })
  t.match(messages('all', '--leader-elect', 'false'), [/belong to no flag.*--leader-elect=false/])
})

t.test('help, version, and no command at all', async (t) => {
  t.same(parseArgs(['--help']), { kind: 'help', command: undefined })
  t.same(parseArgs(['help', 'server']), { kind: 'help', command: 'server' })
  t.same(parseArgs(['server', '--listen=nonsense', '-h']), { kind: 'help', command: 'server' })
  t.same(parseArgs(['--version']), { kind: 'version' })
  t.match(parseArgs([]), {
    kind: 'wrong',
    faults: [{ name: 'a command', message: /is missing, write one of forwarder/ }],
  })
  t.match(parseArgs(['wroker']), { kind: 'wrong', faults: [{ name: '"wroker"', message: /nearest is worker/ }] })
})
