import { accessSync, constants } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { messageOf } from '../errors.ts'
import { resolveClouds } from './clouds.ts'
import { conceal } from './conceal.ts'
import { type Fault, type Notice, quoted } from './fault.ts'
import { faultOfCertificates, faultOfDirectory, isMapping, readYaml } from './files.ts'
import { type Listen, parseDnsLabel, parseList } from './grammar.ts'
import { faultsBetween, knativeOf } from './knative.ts'
import { nearest } from './nearest.ts'
import { placingOf } from './placing.ts'
import { withPassword } from './redis-url.ts'
import { find, missing, type Resolution, resolve } from './resolve.ts'
import { type Command, fileEnvOf, type Group, type Setting, type Values } from './setting.ts'
import { blockSource, directorySource, type Env, envSource, flagSource, type Source } from './source.ts'
import { CHERRY } from './table/cherry.ts'
import { type CloudName, FRAMEWORK, WATCHED_ROUTES } from './table/framework.ts'
import { HCLOUD } from './table/hcloud.ts'
import { CLUSTER, PROCESS } from './table/windlass.ts'
import { FLAGS, SETTINGS, TABLE } from './table.ts'
import type { ClusterSettings, Settings } from './types.ts'
import { withHint } from './unknown-key.ts'

export interface LoadInput {
  command: Command
  /** By name without dashes; a switch alone is `true`. */
  flags: ReadonlyMap<string, string>
  env: Env
}

export type Loaded = { settings: Settings; json: boolean; notices: Notice[] } | { faults: Fault[] }

/** Reads, checks and joins all settings that a command uses: flag, then environment, then file, then default. All faults at once. */
export async function loadSettings({ command, flags, env }: LoadInput): Promise<Loaded> {
  const faults: Fault[] = []
  const slips = misspelt(env)
  const notices: Notice[] = [...noticesOfIgnored(flags, env), ...slips]
  const given = [flagSource(flags), envSource(env)]
  const shared: Resolution = { command, sources: withDirectory(command, given, faults), faults, notices }

  const config = await configOf(shared)
  const values = resolve(PROCESS, { ...shared, sources: [...shared.sources, config.own] })
  const entries = await entriesOf(values.clustersFile, config, shared)
  const clusters = entries.map((entry) => clusterOf(entry, shared, env))
  faults.push(...faultsBetween(clusters, (key, id) => `${key} of cluster ${id}`))
  for (const [name, path] of [
    ['WINDLASS_REDIS_CA_FILE', values.redisCaFile],
    ['WINDLASS_SERVER_CA_FILE', values.serverCaFile],
  ] as const) {
    const fault = path === undefined ? undefined : faultOfCertificates(path)
    if (fault !== undefined) faults.push({ name, message: `${JSON.stringify(path)} ${fault}` })
  }
  // A slip may be why something is missing.
  return faults.length > 0
    ? { faults: [...faults, ...slips] }
    : { settings: settingsOf(values, clusters), json: values.json, notices }
}

/** What a mounted Secret says wins over the variables that a Pod got from it at its start, since it may have changed. */
function withDirectory(command: Command, [flags = NOTHING, ...others]: readonly Source[], faults: Fault[]): Source[] {
  const found = find('credentialsDir', PROCESS.credentialsDir, { sources: [flags, ...others], faults })
  if (found.kind !== 'plain' || !PROCESS.credentialsDir.commands.includes(command)) return [flags, ...others]
  const { name, text: dir } = found.given
  const fault = faultOfDirectory(dir)
  if (fault === undefined) return [flags, directorySource(dir, { ...HCLOUD, ...CHERRY }), ...others]
  faults.push({ name, message: `${JSON.stringify(dir)} ${fault}` })
  return [flags, ...others]
}

type Mapping = Readonly<Record<string, unknown>>

const NOTHING: Source = () => ({})

/** One cluster as it was written down. */
interface Entry {
  /** Key in a file of clusters. */
  id?: string
  path: string
  /** Its settings outside of blocks. */
  own: Source
  blocks: Mapping
}

interface ConfigFile extends Entry {
  clusters?: Mapping
}

const BLOCKS: readonly string[] = ['framework', 'hcloud', 'cherry']

async function configOf(resolution: Resolution): Promise<ConfigFile> {
  const none = { own: NOTHING, blocks: {}, path: '' }
  const found = find('config', PROCESS.config, resolution)
  if (found.kind !== 'plain') return none
  const { name, text: path } = found.given
  const parsed = await readYaml(path)
  if ('fault' in parsed) {
    resolution.faults.push({ name, message: `${JSON.stringify(path)} ${parsed.fault}` })
    return none
  }
  const { clusters, ...rest } = parsed.value
  if (clusters !== undefined && clusters !== null && !isMapping(clusters)) {
    resolution.faults.push({ name: `clusters in ${path}`, message: 'does not hold ids and clusters' })
  }
  return {
    ...entryOf(rest, { ...PROCESS, ...CLUSTER }, path, (key) => `${key} in ${path}`, resolution.faults),
    clusters: isMapping(clusters) ? clusters : undefined,
  }
}

function entryOf(mapping: Mapping, group: Group, path: string, place: (key: string) => string, faults: Fault[]): Entry {
  const entries = Object.entries(mapping)
  const own = Object.fromEntries(entries.filter(([key]) => !BLOCKS.includes(key)))
  const sourced = blockSource(own, group, place)
  faults.push(...sourced.faults.map((fault) => withHint(fault, group)))
  return { path, own: sourced.source, blocks: Object.fromEntries(entries.filter(([key]) => BLOCKS.includes(key))) }
}

async function entriesOf(
  clustersFile: string | undefined,
  config: ConfigFile,
  resolution: Resolution,
): Promise<Entry[]> {
  const { faults } = resolution
  let { clusters, path } = config
  if (clustersFile !== undefined) {
    if (clusters !== undefined) {
      faults.push({ name: 'WINDLASS_CLUSTERS_FILE', message: `is set, and ${path} has clusters too: keep one of them` })
    }
    const parsed = await readYaml(clustersFile)
    if ('fault' in parsed) {
      faults.push({ name: 'WINDLASS_CLUSTERS_FILE', message: `${JSON.stringify(clustersFile)} ${parsed.fault}` })
      return []
    }
    clusters = isMapping(parsed.value.clusters) ? parsed.value.clusters : parsed.value
    path = clustersFile
  }
  if (clusters === undefined) return [config]
  for (const name of Object.keys(config.blocks)) {
    faults.push({ name: `${name} in ${config.path}`, message: 'belongs to one cluster: move it to that cluster' })
  }
  if (Object.keys(clusters).length === 0) faults.push({ name: path, message: 'names no cluster' })
  const all = { ...resolution, sources: [...resolution.sources, config.own] }
  refuseOfOneCluster(all)
  return chosen(clusters, path, all).flatMap(([id, mapping]) => {
    const where = `cluster ${id} in ${path}`
    const label = parseDnsLabel(id)
    if ('fault' in label) faults.push({ name: where, message: label.fault })
    if (mapping !== null && !isMapping(mapping)) {
      faults.push({ name: where, message: 'does not hold keys and values' })
      return []
    }
    return [{ ...entryOf(mapping ?? {}, CLUSTER, path, (key) => `${key} of ${where}`, faults), id }]
  })
}

/** Commands that work on one cluster at a time: `--cluster` chooses it. */
const CHOOSING: readonly Command[] = ['forwarder', 'plan', 'doctor']

function chosen(clusters: Mapping, path: string, resolution: Resolution): [string, unknown][] {
  const { command, faults } = resolution
  const entries = Object.entries(clusters)
  if (!CHOOSING.includes(command)) return entries
  const found = find('cluster', CLUSTER.cluster, resolution)
  if (found.kind !== 'none') {
    const { name, text } = found.given
    const one = entries.filter(([id]) => id === text)
    const hint = nearest(text, Object.keys(clusters))
    if (one.length === 0) {
      faults.push({
        name,
        message: `${quoted(text)} is not in ${path}${hint === undefined ? '' : `, the nearest is ${hint}`}`,
      })
    }
    return one
  }
  if (command !== 'forwarder' || entries.length < 2) return entries
  faults.push({
    name: 'WINDLASS_CLUSTER',
    message: `is missing: a forwarder works for one cluster, and ${path} has several`,
  })
  return []
}

/** A token in the environment would win over the tokens of all clusters. */
function refuseOfOneCluster({ command, sources, faults, notices }: Resolution): void {
  for (const [key, setting] of Object.entries({ ...CLUSTER, ...FRAMEWORK, ...HCLOUD, ...CHERRY } as Group)) {
    if (setting.ofOneCluster !== true || !setting.commands.includes(command)) continue
    if (key === 'cluster' && CHOOSING.includes(command)) continue
    const found = find(key, setting, { sources, faults })
    if (found.kind === 'none') continue
    const { name } = found.given
    if (setting.ambient === true && name === setting.env)
      notices.push({ name, message: 'is not used beside a file of clusters' })
    else
      faults.push({
        name,
        message: 'is set beside a file of clusters: move it into the file, to the cluster that it belongs to',
      })
  }
}

function clusterOf(
  { own, blocks: { framework, hcloud, cherry }, path, id }: Entry,
  shared: Resolution,
  env: Env,
): ClusterSettings {
  const { command, faults, notices } = shared
  const many = id !== undefined
  const where = many ? ` of cluster ${id} in ${path}` : ` in ${path}`
  const outer = many ? shared.sources.map(withoutOfOneCluster) : shared.sources
  const placed = many ? (prefix: string) => (key: string) => `${prefix}${key}${where}` : () => undefined

  const section = (value: unknown, group: Group, prefix: string): Source => {
    if (value === undefined || value === null) return NOTHING
    if (!isMapping(value)) {
      faults.push({ name: `${prefix.slice(0, -1)}${where}`, message: 'does not hold keys and values' })
      return NOTHING
    }
    const sourced = blockSource(value, group, (key) => `${prefix}${key}${where}`)
    faults.push(...sourced.faults.map((fault) => withHint(fault, group)))
    return sourced.source
  }
  const ofFramework = section(framework, { ...FRAMEWORK, ...TABLE.ignored.settings }, 'framework.')
  const resolution = (source: Source, prefix: string): Resolution => ({
    command,
    sources: [...outer, source],
    place: placed(prefix),
    faults,
    notices,
  })

  const basics = resolve(CLUSTER, resolution(own, ''))
  const settings = resolve(FRAMEWORK, resolution(ofFramework, 'framework.'))
  notices.push(...noticesOfGates(settings.featureGates, notices))
  const blocks = new Set<CloudName>()
  if (isMapping(hcloud)) blocks.add('hcloud')
  if (isMapping(cherry)) blocks.add('cherryservers')
  const hcloudSource = section(hcloud, HCLOUD, 'hcloud.')
  const cherrySource = section(cherry, CHERRY, 'cherry.')
  const clouds = HCLOUD.token.commands.some((name) => name === command)
    ? resolveClouds({
        ...resolution((key, setting) => ({ ...hcloudSource(key, setting), ...cherrySource(key, setting) }), ''),
        wanted: settings.cloudProvider,
        blocks,
        placeOf: many ? (cloud) => (key) => `${cloud === 'hcloud' ? cloud : 'cherry'}.${key}${where}` : undefined,
        clusterPlace: many ? `cluster ${id} in ${path}` : undefined,
      })
    : {}

  checkReachable(basics, { many, where, command, env, faults })
  const keys = basics.webhookKeys === undefined ? undefined : parseList(basics.webhookKeys.read())
  return conceal(
    {
      id: id ?? basics.cluster,
      kubernetes: { kubeconfig: basics.kubeconfig, context: basics.context, server: basics.master },
      ignoreOtherController: basics.ignoreOtherController,
      placing: placingOf(basics, clouds, { command, place: placed('') ?? (() => undefined), faults }),
      webhookKeys: keys !== undefined && 'value' in keys ? keys.value : [],
      knative: knativeOf(basics, { place: placed('') ?? envOf, faults }),
      framework: {
        controllers: settings.controllers,
        clusterCidrs: settings.clusterCidr ?? [],
        configureCloudRoutes: settings.configureCloudRoutes,
        nodeMonitorPeriodMs: settings.nodeMonitorPeriod,
        nodeStatusUpdateFrequencyMs: settings.nodeStatusUpdateFrequency,
        ...(settings.featureGates?.get(WATCHED_ROUTES) === true
          ? {}
          : { routeReconciliationPeriodMs: settings.routeReconciliationPeriod }),
      },
      clouds,
    },
    'webhookKeys',
  )
}

const envOf = (key: keyof typeof CLUSTER) => (CLUSTER[key] as Setting).env ?? key

const withoutOfOneCluster =
  (source: Source): Source =>
  (key, setting) =>
    setting.ofOneCluster === true ? {} : source(key, setting)

interface ReachContext {
  many: boolean
  where: string
  command: Command
  env: Env
  faults: Fault[]
}

function checkReachable(
  { kubeconfig, master }: Values<typeof CLUSTER>,
  { many, where, command, env, faults }: ReachContext,
): void {
  if (!CLUSTER.kubeconfig.commands.some((name) => name === command)) return
  const name = many ? `kubeconfig${where}` : 'KUBECONFIG'
  const whyNot = kubeconfig?.map(whyUnreadable)
  if (kubeconfig !== undefined && whyNot?.every((why) => why !== undefined)) {
    const why = [...new Set(whyNot)].join(', ')
    faults.push({ name, message: `${JSON.stringify(kubeconfig.join(':'))} names no file that can be read (${why})` })
  }
  const inCluster = env.KUBERNETES_SERVICE_HOST !== undefined && env.KUBERNETES_SERVICE_HOST !== ''
  if (kubeconfig === undefined && master === undefined && !inCluster && command !== 'doctor') {
    faults.push(
      missing('kubeconfig', CLUSTER.kubeconfig, { command, place: many ? (key) => `${key}${where}` : undefined }),
    )
  }
}

function settingsOf(values: Values<typeof PROCESS>, clusters: ClusterSettings[]): Settings {
  const listen = values.listen === undefined ? undefined : boundTo(values.listen)
  const url = values.redisUrl?.read() ?? ''
  const password = values.redisPassword?.read()
  const dashboardPassword = values.dashboardPassword?.read()
  return {
    log: { level: values.logLevel, format: values.logFormat },
    ...(values.tracesEndpoint === undefined
      ? {}
      : { traces: { endpoint: values.tracesEndpoint, ratio: values.tracesRatio } }),
    redis: conceal(
      {
        url: url === '' || password === undefined ? url : withPassword(url, password),
        prefix: values.redisPrefix,
        caFile: values.redisCaFile,
      },
      'url',
    ),
    server: conceal(
      {
        listen: listen ?? { host: '127.0.0.1', port: 0 },
        dashboard:
          dashboardPassword === undefined
            ? undefined
            : conceal({ user: values.dashboardUser, password: dashboardPassword }, 'password'),
        metricsToken: values.metricsToken?.read(),
        bodyLimitBytes: values.bodyLimitBytes,
      },
      'metricsToken',
    ),
    forwarder: { serverUrl: values.serverUrl ?? '', caFile: values.serverCaFile, listen },
    worker: {
      concurrency: values.concurrency,
      untilIdle: values.untilIdle,
      graceMs: values.gracePeriod,
      resyncPeriodMs: values.resyncPeriod,
      listen,
    },
    clusters,
  }
}

/** All addresses: of IPv6 and IPv4 where the machine has IPv6, else of IPv4. */
function boundTo({ host, port }: Listen): Listen {
  if (host !== '') return { host, port }
  const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ family }) => family === 'IPv6'),
  )
  return { host: hasIpv6 ? '::' : '0.0.0.0', port }
}

/** The system's code, such as `ENOENT` (there is none) or `EACCES` (this user may not). */
function whyUnreadable(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? messageOf(error)
  }
}

function noticesOfIgnored(flags: ReadonlyMap<string, string>, env: Env): Notice[] {
  const fromFlags = [...flags.keys()].flatMap((flag) => noticeOf(`--${flag}`, FLAGS.get(flag)))
  const fromEnv = SETTINGS.filter((setting) => setting.env !== undefined && env[setting.env] !== undefined)
  return [...fromFlags, ...fromEnv.flatMap((setting) => noticeOf(setting.env ?? '', setting))]
}

/** Names may be of any gate of the replaced controllers: those that nothing here has are told once. */
function noticesOfGates(gates: ReadonlyMap<string, boolean> | undefined, told: readonly Notice[]): Notice[] {
  return [...(gates?.keys() ?? [])]
    .filter((gate) => gate !== WATCHED_ROUTES)
    .map((gate) => ({ name: '--feature-gates', message: `has no effect for ${gate}: Windlass has no such gate` }))
    .filter(({ message }) => !told.some((one) => one.message === message))
}

function noticeOf(name: string, setting: Setting | undefined): Notice[] {
  return setting?.ignored === undefined ? [] : [{ name, message: `has no effect: ${setting.ignored}`, harmless: true }]
}

/** Variables that look like a setting with a slip. Others may begin so too: Kubernetes makes some from the names of Services. */
function misspelt(env: Env): Notice[] {
  const known = new Set(SETTINGS.flatMap((setting) => [setting.env, fileEnvOf(setting), ...(setting.formerEnvs ?? [])]))
  const names = [...known].filter((name) => name !== undefined)
  return Object.keys(env)
    .filter((name) => /^(WINDLASS|HCLOUD|ROBOT|CHERRY)_/.test(name) && !known.has(name))
    .flatMap((name) => {
      const hint = nearest(name, names, 2)
      return hint === undefined ? [] : [{ name, message: `is no setting, the nearest is ${hint}` }]
    })
}
