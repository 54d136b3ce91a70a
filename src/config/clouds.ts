import { parseCherryLoadBalancer } from './cherry-load-balancer.ts'
import { type Fault, type Notice, quoted } from './fault.ts'
import { readJson } from './files.ts'
import { type Found, find, type Resolution, resolve } from './resolve.ts'
import { parseSelector } from './selector.ts'
import type { Command, Group } from './setting.ts'
import { jsonSource, type Source } from './source.ts'
import { CHERRY } from './table/cherry.ts'
import type { CloudName } from './table/framework.ts'
import { HCLOUD } from './table/hcloud.ts'
import type { CherrySettings, ClusterSettings, HcloudSettings, RobotSettings } from './types.ts'

export interface CloudsInput extends Resolution {
  /** Clouds that were asked for by name. */
  wanted: ReadonlySet<CloudName>
  /** Clouds that have a block in a file. */
  blocks: ReadonlySet<CloudName>
  /** How faults call a key of a cloud's block, in a file of clusters. */
  placeOf?: (cloud: CloudName) => (key: string) => string
  /** What the cluster is called in faults, in a file of clusters. */
  clusterPlace?: string
}

/** A cloud is on when it has credentials, when it was asked for by name, or when a file has a block for it. */
export function resolveClouds(input: CloudsInput): ClusterSettings['clouds'] {
  const { wanted, blocks, command, faults } = input
  const named = (cloud: CloudName) => wanted.has(cloud) || blocks.has(cloud)
  const cherry = cherryInput(input, !named('cherryservers') && wanted.has('hcloud'))
  const on = new Set<CloudName>()
  if (named('hcloud') || isFilled(find('token', HCLOUD.token, input))) on.add('hcloud')
  if (named('cherryservers') || isFilled(find('apiKey', CHERRY.apiKey, cherry.resolution))) on.add('cherryservers')

  if (on.size === 0 && NEEDS_CLOUD.has(command)) {
    // Somebody who set anything of a cloud meant it: then its missing credentials are the fault, together with all others.
    if (anyGiven(HCLOUD, input)) on.add('hcloud')
    if (anyGiven(CHERRY, cherry.resolution)) on.add('cherryservers')
    if (on.size === 0 && cherry.path === undefined) faults.push(noCloud(input.clusterPlace))
  }
  noticeUnused(HCLOUD, 'HCLOUD_TOKEN', on.has('hcloud'), input)
  noticeUnused(CHERRY, 'CHERRY_API_KEY', on.has('cherryservers'), cherry.resolution)
  return {
    hcloud: on.has('hcloud') ? hcloudOf({ ...input, place: input.placeOf?.('hcloud') }) : undefined,
    cherry: on.has('cherryservers') ? cherryOf(cherry.resolution) : undefined,
  }
}

const NEEDS_CLOUD: ReadonlySet<Command> = new Set(['worker', 'all', 'plan'])

/** What each cloud needs to be on. */
export const CREDENTIALS =
  'Set HCLOUD_TOKEN for Hetzner, or CHERRY_API_KEY and CHERRY_PROJECT_ID for Cherry Servers (HCLOUD_TOKEN_FILE and CHERRY_API_KEY_FILE take files)'

function noCloud(clusterPlace: string | undefined): Fault {
  return clusterPlace === undefined
    ? {
        name: 'HCLOUD_TOKEN and CHERRY_API_KEY',
        message: `are missing: no cloud is set up. ${CREDENTIALS}`,
      }
    : {
        name: clusterPlace,
        message: 'has no cloud, give it a block hcloud (with token) or cherry (with apiKey and projectId)',
      }
}

/** An empty variable is what a template leaves of one that nobody set. */
const isFilled = (found: Found) => isGiven(found) && found.kind !== 'empty'

function isGiven(found: Found): boolean {
  return found.kind !== 'none'
}

function noticeUnused(group: Group, credential: string, isOn: boolean, resolution: Resolution): void {
  if (isOn) return
  for (const [key, setting] of Object.entries(group)) {
    const found = find(key, setting, { ...resolution, faults: [] })
    if (found.kind === 'none' || key === 'cloudConfig') continue
    resolution.notices.push({ name: found.given.name, message: `is not used: without ${credential} that cloud is off` })
  }
}

function anyGiven(group: Group, resolution: Resolution): boolean {
  return Object.entries(group).some(([key, setting]) => isGiven(find(key, setting, { ...resolution, faults: [] })))
}

function hcloudOf(resolution: Resolution): HcloudSettings | undefined {
  const { faults, notices } = resolution
  const name = (key: string, env = '') => resolution.place?.(key) ?? env
  const values = resolve(HCLOUD, resolution)
  const routes = values.network !== undefined && values.networkRoutesEnabled
  if (values.loadBalancersLocation !== undefined && values.loadBalancersNetworkZone !== undefined) {
    faults.push({
      name: `${name('loadBalancersLocation', 'HCLOUD_LOAD_BALANCERS_LOCATION')} and ${name('loadBalancersNetworkZone', 'HCLOUD_LOAD_BALANCERS_NETWORK_ZONE')}`,
      message: 'exclude each other, set only one of them',
    })
  }
  if (values.robotEnabled && routes) {
    faults.push({
      name: name('robotEnabled', 'ROBOT_ENABLED'),
      message: 'excludes routes: Robot’s servers are in no cloud network. Set HCLOUD_NETWORK_ROUTES_ENABLED=false',
    })
  }
  if (values.robotEnabled && (values.robotUser === undefined) !== (values.robotPassword === undefined)) {
    faults.push({
      name: `${name('robotUser', 'ROBOT_USER')} and ${name('robotPassword', 'ROBOT_PASSWORD')}`,
      message: 'belong together, set both or neither',
    })
  }
  if (values.token === undefined) return undefined
  const length = values.token.read().length
  if (length !== 64) {
    notices.push({ name: values.token.name, message: `has ${length} characters where Hetzner’s tokens have 64` })
  }
  const listen = values.metricsAddress
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host
  const ownMetrics =
    resolution.place === undefined || isGiven(find('metricsAddress', HCLOUD.metricsAddress, resolution))
  return {
    token: values.token,
    endpoint: values.endpoint,
    metadataEndpoint: values.metadataEndpoint,
    debug: values.debug,
    network: values.network,
    networkDisableAttachedCheck: values.networkDisableAttachedCheck,
    networkRoutesEnabled: routes,
    addressFamily: values.instancesAddressFamily,
    zoneLabelEnabled: values.instancesZoneLabelEnabled,
    serverCacheMode: values.serverCacheMode,
    serverCacheMaxAgeMs: values.serverCacheMaxAge,
    loadBalancers: {
      enabled: values.loadBalancersEnabled,
      location: values.loadBalancersLocation,
      networkZone: values.loadBalancersNetworkZone,
      type: values.loadBalancersType,
      algorithmType: values.loadBalancersAlgorithmType,
      disablePublicNetwork: values.loadBalancersDisablePublicNetwork,
      usesProxyProtocol: values.loadBalancersUsesProxyprotocol,
      disablePrivateIngress: values.loadBalancersDisablePrivateIngress,
      disableIpv6: values.loadBalancersDisableIpv6,
      usePrivateIp: values.loadBalancersUsePrivateIp,
      privateSubnetIpRange: values.loadBalancersPrivateSubnetIpRange,
      healthCheckIntervalMs: values.loadBalancersHealthCheckInterval || undefined,
      healthCheckTimeoutMs: values.loadBalancersHealthCheckTimeout || undefined,
      healthCheckRetries: values.loadBalancersHealthCheckRetries || undefined,
    },
    robot: values.robotEnabled ? robotOf(values) : undefined,
    metricsAddress: values.metricsEnabled && ownMetrics ? `${host}:${listen.port}` : undefined,
  }
}

function robotOf(values: ReturnType<typeof resolve<typeof HCLOUD>>): RobotSettings {
  return {
    user: values.robotUser,
    password: values.robotPassword,
    endpoint: values.robotEndpoint,
    cacheTimeoutMs: values.robotCacheTimeout,
    rateLimitWaitTimeMs: values.robotRateLimitWaitTime,
    forwardInternalIps: values.robotForwardInternalIps,
  }
}

/** Cherry's sources with its cloud configuration file, unless that is there for Hetzner, which ignores it. */
function cherryInput(input: CloudsInput, hetznerOnly: boolean): { resolution: Resolution; path?: string } {
  const place = input.placeOf?.('cherryservers')
  const config = find('cloudConfig', CHERRY.cloudConfig, input)
  if (config.kind !== 'plain') return { resolution: { ...input, place } }
  const { name, text: path } = config.given
  if (hetznerOnly && !isGiven(find('apiKey', CHERRY.apiKey, input))) {
    input.notices.push({ name, message: 'is not read: Hetzner has no use for it' })
    return { resolution: { ...input, place } }
  }
  const parsed = readJson(path)
  if ('fault' in parsed) {
    input.faults.push({ name, message: `${JSON.stringify(path)} ${parsed.fault}` })
    return { resolution: { ...input, place, unread: true }, path }
  }
  const { source, faults, unknown } = jsonSource(parsed.value, CHERRY, (key) => `${key} in ${path}`)
  input.faults.push(...faults)
  for (const key of unknown) input.notices.push({ name: `${JSON.stringify(key)} in ${path}`, message: 'is no setting' })
  input.notices.push(...newlyHonoured(source, path))
  return { resolution: { ...input, place, sources: [...input.sources, source] }, path }
}

/** Keys that the replaced controller read and dropped: whoever has them in the file gets what they asked for, and should know. */
function newlyHonoured(source: Source, path: string): Notice[] {
  return Object.entries(CHERRY)
    .filter(
      ([key, { jsonKey }]) =>
        /^annotation|^base-url$/.test(jsonKey ?? '') && source(key, CHERRY[key as keyof typeof CHERRY]).plain?.text,
    )
    .map(([, { jsonKey }]) => ({
      name: `${jsonKey} in ${path}`,
      message: 'takes effect; the replaced controller did not look at it',
    }))
}

function cherryOf(resolution: Resolution): CherrySettings | undefined {
  const values = resolve(CHERRY, resolution)
  const balancer = parseCherryLoadBalancer(values.loadBalancer ?? '')
  const selector = parseSelector(values.bgpNodeSelector ?? '')
  const compares = 'value' in selector && selector.value.some(({ operator }) => operator === '>' || operator === '<')
  if (compares && 'value' in balancer && balancer.value.kind === 'metallb') {
    resolution.faults.push({
      name: resolution.place?.('bgpNodeSelector') ?? 'CHERRY_BGP_NODE_SELECTOR',
      message: 'has > or <, which MetalLB’s own selectors can’t say: use in or notin',
    })
  }
  if ('value' in balancer && balancer.value.kind === 'metallb' && balancer.value.idle !== undefined) {
    const { idle, namespace } = balancer.value
    resolution.notices.push({
      name: resolution.place?.('loadBalancer') ?? 'CHERRY_LOAD_BALANCER',
      message: `has ${quoted(idle)} where a host stands, which means nothing: the namespace is ${namespace}. Write three slashes before a namespace`,
    })
  }
  if (!values.annotationPeerIp.includes('{{n}}')) {
    resolution.notices.push({
      name: resolution.place?.('annotationPeerIp') ?? 'CHERRY_ANNOTATION_PEER_IP',
      message: 'lacks {{n}}, the place of the peer’s number: only the last peer’s address is annotated',
    })
  }
  if (values.apiKey === undefined || values.projectId === undefined) return undefined
  return {
    apiKey: values.apiKey,
    projectId: values.projectId,
    apiUrl: values.apiUrl,
    region: values.regionName,
    loadBalancer: values.loadBalancer,
    annotations: {
      localAsn: values.annotationLocalAsn,
      peerAsn: values.annotationPeerAsn,
      peerIp: values.annotationPeerIp,
      srcIp: values.annotationSrcIp,
      multiHop: values.annotationMultiHop,
      fipRegion: values.annotationFipRegion,
    },
    fipTag: values.fipTag,
    apiServerPort: values.apiServerPort,
    bgpNodeSelector: values.bgpNodeSelector,
    fipHealthCheckUseHostIp: values.fipHealthCheckUseHostIp,
  }
}
