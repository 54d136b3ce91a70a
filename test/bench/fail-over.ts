import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parse, stringify } from 'yaml'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { cherryState } from '../integration/cherry-burst.ts'
import { eventually, isInitialised, type KubernetesFlavour, startWorld, type World } from '../integration/world.ts'
import { type Figures, seconds } from './report.ts'

/** What happens to the machine that has the address. */
const KINDS = [
  'answers 500',
  'refuses connections',
  'is silent',
  'is deleted',
  'is cordoned',
  'is silent, and its worker dies',
] as const
type Kind = (typeof KINDS)[number]

/** Worlds beside each other: all of them wait nearly all the time. */
const WORLDS = 2
/** Before a run: the address has been where it is for longer than Windlass lets it settle. */
const REST_MS = 11_000
/** Runs begin at any time between two looks. */
const PERIOD_MS = 5000
const LIMIT_MS = 60_000
const PORT_OF_SERVICE = 443

interface Run {
  kind: Kind
  /** Until the request that moves the address was done; undefined if that never came. */
  ms: number | undefined
  moves: number
}

/** The machine of the control plane that has the floating address fails in several ways: how long until another has it, and how often it moves. */
export async function benchFailOver({
  kubernetes,
  runs,
}: {
  kubernetes: KubernetesFlavour
  runs: number
}): Promise<Figures> {
  const kinds = Array.from({ length: runs }, (_, i) => KINDS[i % KINDS.length] ?? 'answers 500')
  const all = await Promise.all(
    Array.from({ length: WORLDS }, (_, n) =>
      runsIn(
        kubernetes,
        n,
        kinds.filter((_, i) => i % WORLDS === n),
      ),
    ),
  )
  const done = all.flat()
  const times = (kind?: Kind) =>
    done
      .flatMap((run) => ((kind ?? run.kind) === run.kind && run.ms !== undefined ? [run.ms] : []))
      .sort((a, b) => a - b)
  const wrong = done.flatMap(({ kind, ms, moves }) => [
    ...(ms === undefined ? [`a machine ${kind}, and the address stayed`] : []),
    ...(ms !== undefined && moves !== 1 ? [`a machine ${kind}, and the address moved ${moves} times`] : []),
  ])
  const never = { replaced: 'never' }
  return {
    title: `fail-over of the control plane's address: ${runs} runs, three machines, ${kubernetes}`,
    rows: [
      { what: 'until it has moved, median', value: seconds(quantile(times(), 0.5)), ...never },
      { what: '90 of 100', value: seconds(quantile(times(), 0.9)), ...never },
      { what: 'longest', value: seconds(quantile(times(), 1)), ...never, aim: '10 s' },
      ...KINDS.filter((kind) => times(kind).length > 0).map((kind) => ({
        what: `it ${kind}: median / longest`,
        value: `${(quantile(times(kind), 0.5) / 1000).toFixed(2)} / ${seconds(quantile(times(kind), 1))}`,
        ...never,
      })),
      {
        what: 'moves, of so many failures',
        value: `${done.reduce((sum, { moves }) => sum + moves, 0)} of ${done.length}`,
        replaced: '0',
      },
    ],
    limit: `each failure comes at any time of a period, when the address was where it is for ${REST_MS / 1000} s or longer`,
    wrong,
  }
}

async function runsIn(kubernetes: KubernetesFlavour, n: number, kinds: readonly Kind[]): Promise<Run[]> {
  const world = await startWorld({ kubernetes, clouds: ['cherry'] })
  try {
    const machines = await prepare(world, n)
    const standby = await startPair(world)
    const done: Run[] = []
    for (const kind of kinds) {
      await delay(REST_MS + Math.random() * PERIOD_MS)
      const before = movesOf(world)
      const ms = await failOver(world, machines, kind, standby)
      // It must stay there, also when the machine is back.
      await delay(2000)
      await repair(world, machines)
      await delay(REST_MS)
      done.push({ kind, ms, moves: movesOf(world) - before })
    }
    return done
  } finally {
    await world.stop()
  }
}

interface Machine {
  id: number
  hostname: string
  ip_addresses: { address: string; type: string }[]
  apiserver: string
}

/** Three machines whose API servers answer at loopback addresses, and an address that leads to the first of them. */
async function prepare(world: World, n: number): Promise<Machine[]> {
  const machines = [1, 2, 3].map((i) => ({
    id: 383540 + i,
    hostname: `cp-${i}`,
    ip_addresses: [{ address: `127.0.${10 + n}.${40 + i}`, type: 'primary-ip' }],
    apiserver: 'ok',
  }))
  const port = await apiServerPort(world)
  await world.cherry.control.seed({
    servers: machines,
    ips: [{ address: `127.0.${10 + n}.50`, region: 'LT-Siauliai', tags: { role: 'cp' }, targeted_to: machines[0]?.id }],
    ...(port === undefined ? {} : { settings: { apiserver_port: port } }),
  })
  if (port === undefined) await tellPort(world)
  const labels = { 'node-role.kubernetes.io/control-plane': '' }
  for (const { hostname } of machines) await world.addNode(hostname, { labels })
  return machines
}

/** Kills the process that looks after the address, so that the other one has to; yet another stands by from then on. */
type KillKeeper = () => Promise<void>

async function startPair(world: World): Promise<KillKeeper> {
  const env = { CHERRY_FIP_TAG: 'role=cp', KUBECONFIG: trusting(world) }
  const start = async () => {
    const one = world.start('all', { env })
    await one.logged('the server listens')
    return one
  }
  const leaseHeld = async () =>
    ((await world.redis.command('KEYS', '*:control-plane-ip:*:lease')) as string[]).length > 0
  let keeper = await start()
  await eventually(leaseHeld, 'somebody looks after the address')
  let other = await start()
  await eventually(async () => (await world.nodes()).filter(isInitialised).length === 3, 'all nodes are initialised')
  return async () => {
    keeper.signal('SIGKILL')
    await keeper.exited
    keeper = other
    other = await start()
  }
}

/** Of the cluster's own Service, which the real API server makes; undefined where there is none. */
async function apiServerPort(world: World): Promise<number | undefined> {
  const service = await world.api.get(SERVICES, { namespace: 'default', name: 'kubernetes' }, world.call)
  const [port] = (service?.spec.ports ?? []) as { targetPort?: number }[]
  return port?.targetPort
}

async function tellPort(world: World): Promise<void> {
  const { apiserver_port: targetPort } = cherryState(world).settings
  const spec = { type: 'ClusterIP', ports: [{ name: 'https', port: PORT_OF_SERVICE, protocol: 'TCP', targetPort }] }
  await world.api.create(SERVICES, { metadata: { name: 'kubernetes', namespace: 'default' }, spec }, world.call)
}

/** A kubeconfig that trusts the API servers of the machines as it does its own. */
function trusting(world: World): string {
  const config = parse(readFileSync(world.kubeconfigFor('all'), 'utf8')) as {
    clusters: { cluster: { 'certificate-authority-data'?: string } }[]
  }
  for (const { cluster } of config.clusters) {
    const own = Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64').toString()
    cluster['certificate-authority-data'] = Buffer.from(`${own.trimEnd()}\n${world.cherry.ca}`).toString('base64')
  }
  const path = join(world.dir, 'trusting.kubeconfig')
  writeFileSync(path, stringify(config), { mode: 0o600 })
  return path
}

const holderOf = (world: World) => cherryState(world).ips.find(({ tags }) => tags.role === 'cp')?.target_server_id

const movesOf = (world: World) => world.cherry.control.counters().calls['PUT /ips/{id}'] ?? 0

/** Milliseconds until another machine has the address. */
async function failOver(
  world: World,
  machines: readonly Machine[],
  kind: Kind,
  killKeeper: KillKeeper,
): Promise<number | undefined> {
  const id = holderOf(world)
  const hostname = machines.find((machine) => machine.id === id)?.hostname ?? ''
  const begun = performance.now()
  if (kind === 'is cordoned') await cordon(world, hostname, true)
  else await world.cherry.control.mutate({ servers: [{ hostname, ...FAULTS[kind] }] })
  const killed = kind === 'is silent, and its worker dies' ? killKeeper() : undefined
  while (holderOf(world) === id || !holderOf(world)) {
    if (performance.now() - begun > LIMIT_MS) return undefined
    await delay(10)
  }
  const ms = performance.now() - begun
  await killed
  return ms
}

const FAULTS = {
  'answers 500': { apiserver: 500 },
  'refuses connections': { apiserver: 'refuse' },
  'is silent': { apiserver: 'hang' },
  'is deleted': { $delete: true },
  'is silent, and its worker dies': { apiserver: 'hang' },
} as const

async function repair(world: World, machines: readonly Machine[]): Promise<void> {
  const present = new Set(cherryState(world).servers.map(({ hostname }) => hostname))
  await world.cherry.control.mutate({
    servers: machines.map((machine) =>
      present.has(machine.hostname) ? { hostname: machine.hostname, apiserver: 'ok' } : { create: machine },
    ),
  })
  for (const { hostname } of machines) await cordon(world, hostname, false)
}

async function cordon(world: World, name: string, unschedulable: boolean): Promise<void> {
  await world.api.patch(NODES, { name }, { type: 'merge', body: { spec: { unschedulable } } }, world.call)
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN
}
