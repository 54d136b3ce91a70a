import { parseControllers } from '../controllers.ts'
import { durationFrom, type Parsed, parseBool, parseClusterCidrs } from '../grammar.ts'
import { nearest } from '../nearest.ts'
import { type Group, ignored, optional, setting } from '../setting.ts'

const WORKING = ['worker', 'all', 'plan', 'doctor'] as const

export type CloudName = 'hcloud' | 'cherryservers'
const CLOUDS: readonly CloudName[] = ['hcloud', 'cherryservers']

export const WATCHED_ROUTES = 'CloudControllerManagerWatchBasedRoutesReconciliation'

export const FRAMEWORK = {
  cloudProvider: setting({
    shared: true,
    flag: 'cloud-provider',
    ofOneCluster: true,
    parse: parseClouds,
    form: '`hcloud`, `cherryservers` or both',
    default: '',
    defaultNote: 'each cloud whose credentials are set',
    commands: WORKING,
    doc: 'Clouds that must be there: without credentials for them the start fails.',
  }),
  controllers: setting({
    shared: true,
    flag: 'controllers',
    repeats: true,
    parse: parseControllers,
    form: 'list of `*`, `name` and `-name`',
    default: '*',
    commands: [...WORKING, 'server'],
    doc: 'Which controllers run: `cloud-node-controller`, `cloud-node-lifecycle-controller`, `service-lb-controller`, `node-route-controller`, or short `cloud-node`, `cloud-node-lifecycle`, `service`, `route`.',
  }),
  clusterCidr: optional({
    shared: true,
    flag: 'cluster-cidr',
    parse: parseClusterCidrs,
    form: 'CIDR, or one of IPv4 and one of IPv6',
    commands: WORKING,
    doc: 'Where pod addresses come from. Only routes inside it are touched.',
  }),
  configureCloudRoutes: setting({
    shared: true,
    flag: 'configure-cloud-routes',
    parse: parseBool,
    form: '`true` or `false`',
    default: 'true',
    emptyIsValue: true,
    commands: [...WORKING, 'server'],
    doc: 'Whether pod routes are kept at the cloud.',
  }),
  nodeMonitorPeriod: setting({
    shared: true,
    flag: 'node-monitor-period',
    parse: durationFrom(1),
    form: 'duration',
    default: '5s',
    emptyIsValue: true,
    commands: WORKING,
    doc: 'How often a node that is not ready is looked up at its cloud; less often, down to once a minute, as it stays so.',
  }),
  nodeStatusUpdateFrequency: setting({
    shared: true,
    flag: 'node-status-update-frequency',
    parse: durationFrom(1),
    form: 'duration',
    default: '5m',
    emptyIsValue: true,
    commands: WORKING,
    doc: 'How often the addresses of nodes are compared with their cloud.',
  }),
  routeReconciliationPeriod: optional({
    shared: true,
    flag: 'route-reconciliation-period',
    parse: durationFrom(1),
    form: 'duration',
    commands: WORKING,
    doc: 'How often pod routes are compared with the network, beside after each change of nodes. Without it, or with the feature gate below, that is done at each `--resync-period`.',
  }),
  featureGates: optional({
    shared: true,
    flag: 'feature-gates',
    repeats: true,
    parse: parseFeatureGates,
    form: 'list of `name=true` and `name=false`',
    commands: WORKING,
    doc: `\`${WATCHED_ROUTES}=true\` switches \`--route-reconciliation-period\` off, as in the replaced controllers. Gates of any other name are taken, have no effect, and are told at start.`,
  }),
}

const LEASE = 'jobs have one run at a time by a lock in Redis; no process leads'
const SERVING = 'Windlass serves plain HTTP on `--listen`'
const WEBHOOKS = 'Windlass hosts no admission webhooks'
const QUEUE = 'the queue decides, see `--concurrency`'
const CLIENT = 'requests to Kubernetes are few, and limited by `--concurrency`'
const LOGS = 'see `--log-level` and `--log-format`'
const OBSOLETE = 'the replaced controllers make nothing of it either'
const METRICS = 'metrics are always all there'
const VERSIONS = 'Windlass has no versioned behaviour'

/** Flags of the framework and variables of the clouds' controllers that have nothing to act on here, each with the reason. */
export const IGNORED: Group = Object.fromEntries([
  ...flags('allow-untagged-cloud', OBSOLETE, true),
  ...flags('allocate-node-cidrs', 'kube-controller-manager gives nodes their CIDRs', true),
  ...flags('cidr-allocator-type', 'kube-controller-manager gives nodes their CIDRs'),
  ...flags('external-cloud-volume-plugin node-sync-period', OBSOLETE),
  ...flags('concurrent-service-syncs concurrent-node-syncs concurrent-node-status-updates', QUEUE),
  ...flags('cluster-name', 'neither cloud asks for it'),
  ...flags('min-resync-period', 'see `--resync-period`'),
  ...flags('controller-start-interval', 'controllers have no loops that start'),
  ...flags('kube-api-qps kube-api-burst kube-api-content-type', CLIENT),
  ...flags('use-service-account-credentials', 'all controllers of a worker share its account', true),
  ...flags('leader-elect enable-leader-migration', LEASE, true),
  ...flags(
    'leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace leader-migration-config',
    LEASE,
  ),
  ...flags('bind-address secure-port cert-dir http2-max-streams-per-connection', SERVING),
  ...flags(
    'tls-cert-file tls-private-key-file tls-cipher-suites tls-min-version tls-sni-cert-key tls-curve-preferences',
    SERVING,
  ),
  ...flags('permit-address-sharing permit-port-sharing disable-http2-serving', SERVING, true),
  ...flags(
    'authentication-kubeconfig authentication-token-webhook-cache-ttl client-ca-file requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers requestheader-username-headers authorization-kubeconfig authorization-always-allow-paths authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl',
    'see `--metrics-token-file`',
  ),
  ...flags('authentication-skip-lookup authentication-tolerate-lookup-failure', 'see `--metrics-token-file`', true),
  ...flags('profiling contention-profiling', 'there is no Go profiler', true),
  ...flags(
    'webhooks webhook-bind-address webhook-secure-port webhook-cert-dir webhook-tls-cert-file webhook-tls-private-key-file webhook-tls-cipher-suites webhook-tls-min-version webhook-tls-sni-cert-key webhook-tls-curve-preferences',
    WEBHOOKS,
  ),
  ...flags('v vmodule log-flush-frequency logging-format log-json-info-buffer-size log-text-info-buffer-size', LOGS),
  ...flags('log-json-split-stream log-text-split-stream', LOGS, true),
  ...flags(
    'show-hidden-metrics-for-version disabled-metrics allow-metric-labels allow-metric-labels-manifest',
    METRICS,
  ),
  ...flags('emulated-version min-compatibility-version', VERSIONS),
  ...flags('emulation-forward-compatible runtime-config-emulation-forward-compatible', VERSIONS, true),
  ...variables('CHERRY_DEBUG', 'it would print the API key; see `--log-level`'),
  ...variables('CHERRY_AUTH_TOKEN', 'only `CHERRY_API_KEY` was ever used'),
  ...variables('NODE_NAME', 'the replaced controller makes nothing of it either since its version 1.19'),
])

function flags(names: string, why: string, isSwitch = false) {
  return names.split(' ').map((flag) => [camel(flag), ignored({ flag, isSwitch, why })] as const)
}

function variables(names: string, why: string) {
  return names.split(' ').map((env) => [camel(env.toLowerCase()), ignored({ env, why })] as const)
}

function camel(name: string): string {
  return name.replace(/[-_](.)/g, (_, letter: string) => letter.toUpperCase())
}

/** Names may be of any gate, since the replaced controllers have many. */
function parseFeatureGates(text: string): Parsed<ReadonlyMap<string, boolean>> {
  const gates = new Map<string, boolean>()
  for (const item of text.split(',').map((one) => one.trim())) {
    if (item === '') continue
    const [, name, value = ''] = /^([^=]+)=(.*)$/.exec(item) ?? []
    const on = parseBool(value.trim())
    if (name === undefined || 'fault' in on)
      return { fault: `is not a list of feature gates, write for example ${WATCHED_ROUTES}=true` }
    gates.set(name.trim(), on.value)
  }
  return { value: gates }
}

function parseClouds(text: string): Parsed<ReadonlySet<CloudName>> {
  const names = text === '' ? [] : text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !CLOUDS.some((cloud) => cloud === name))
  if (unknown === undefined) return { value: new Set(CLOUDS.filter((cloud) => names.includes(cloud))) }
  const hint = nearest(unknown, CLOUDS)
  return {
    fault: hint === undefined ? 'is unknown, write hcloud or cherryservers' : `is unknown, the nearest is ${hint}`,
  }
}
