import {
  durationBetween,
  durationFrom,
  integerBetween,
  isQualifiedName,
  oneOf,
  type Parser,
  parseBool,
  parseDnsLabel,
  parseHeaderText,
  parseHttpUrl,
  parseListen,
  parseText,
} from '../grammar.ts'
import { parseBearerTokens, parseTrustedUrl } from '../knative.ts'
import { parseRedisUrl } from '../redis-url.ts'
import { COMMANDS, optional, secret, setting } from '../setting.ts'
import { parseWebhookKeys } from '../webhook-keys.ts'

const DAY_MS = 86_400_000
const SERVING = ['server', 'all'] as const
const RUNNING = ['forwarder', 'server', 'worker', 'all'] as const
const WORKING = ['worker', 'all'] as const
const PLACING = ['worker', 'all', 'plan', 'doctor'] as const
const TALKING_TO_KUBERNETES = ['forwarder', 'worker', 'all', 'plan', 'doctor'] as const

const parseShare: Parser<number> = (text) => {
  const value = Number(text)
  return /^\d*\.?\d+$/.test(text) && value <= 1
    ? { value }
    : { fault: 'is no share, write a number from 0 to 1, such as 0.1' }
}

const parsePrefix: Parser<string> = (text) =>
  /^[A-Za-z0-9_.-]{1,64}$/.test(text)
    ? { value: text }
    : { fault: 'is no prefix, write at most 64 letters, digits, dots, dashes and underscores, without colon' }

const parseUser: Parser<string> = (text) =>
  /^[^:\s]+$/.test(text) ? { value: text } : { fault: 'is no user name, write one without colon and blanks' }

/** Kubernetes' rule for `spec.loadBalancerClass`. */
const parseClass: Parser<string> = (text) =>
  isQualifiedName(text)
    ? { value: text }
    : { fault: 'is no load balancer class, write for example example.com/internal' }

const parsePaths: Parser<string[]> = (text) => {
  const paths = text.split(':').filter((path) => path !== '')
  return paths.length > 0 ? { value: paths } : { fault: 'names no file' }
}

export const PROCESS = {
  config: optional({
    env: 'WINDLASS_CONFIG',
    parse: parseText,
    form: 'path',
    commands: COMMANDS,
    doc: 'YAML file of settings: variables or flags by their names or keys, and the blocks `framework`, `hcloud`, `cherry`, or `clusters` for many.',
  }),
  credentialsDir: optional({
    env: 'WINDLASS_CREDENTIALS_DIR',
    parse: parseText,
    form: 'path',
    commands: ['worker', 'all', 'plan', 'doctor'],
    doc: 'Directory of files `HCLOUD_TOKEN`, `ROBOT_USER`, `ROBOT_PASSWORD`, `CHERRY_API_KEY`, such as a mounted Kubernetes Secret. Those that are there win over the variables, and are read again when they change.',
  }),
  clustersFile: optional({
    env: 'WINDLASS_CLUSTERS_FILE',
    parse: parseText,
    form: 'path',
    commands: COMMANDS,
    doc: 'YAML file of many clusters, each id with its kubeconfig, webhook keys and blocks `framework`, `hcloud`, `cherry`.',
  }),
  logLevel: setting({
    env: 'WINDLASS_LOG_LEVEL',
    parse: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    form: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`',
    default: 'info',
    commands: COMMANDS,
    doc: 'Least weight of what is logged.',
  }),
  logFormat: setting({
    env: 'WINDLASS_LOG_FORMAT',
    parse: oneOf('json', 'pretty'),
    form: '`json` or `pretty`',
    default: 'json',
    commands: COMMANDS,
    doc: 'One JSON object a line, or lines for people. These need the package pino-pretty, which the image does not have: without it lines are JSON.',
  }),
  tracesEndpoint: optional({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    ambient: true,
    parse: parseHttpUrl,
    form: 'URL',
    commands: RUNNING,
    doc: 'Base address of an OpenTelemetry receiver (OTLP over HTTP, `/v1/traces` is added): every change is a trace from forwarder to cloud. `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_EXPORTER_OTLP_HEADERS` are heeded too.',
  }),
  tracesRatio: setting({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    ambient: true,
    parse: parseShare,
    form: 'number from 0 to 1',
    default: '1',
    commands: RUNNING,
    doc: 'Share of traces that are kept.',
  }),
  redisUrl: secret({
    env: 'WINDLASS_REDIS_URL',
    flag: 'redis-url',
    parse: parseRedisUrl,
    commands: ['server', 'worker', 'all', 'plan', 'doctor'],
    required: ['server', 'worker', 'all'],
    doc: '`redis://`, `rediss://` or, with sentinels, `redis+sentinel://host:port,host:port/master`. No Redis Cluster. A password belongs into the setting below, or into variable or file: all on a machine can read a flag.',
  }),
  redisPassword: secret({
    env: 'WINDLASS_REDIS_PASSWORD',
    parse: parseText,
    commands: ['server', 'worker', 'all', 'plan', 'doctor'],
    doc: 'Password of Redis, in place of one in its address.',
  }),
  redisPrefix: setting({
    env: 'WINDLASS_REDIS_PREFIX',
    parse: parsePrefix,
    form: 'text',
    default: 'windlass',
    commands: ['server', 'worker', 'all', 'plan', 'doctor'],
    doc: 'What every key in Redis begins with. Servers and workers that belong together have the same.',
  }),
  redisCaFile: optional({
    env: 'WINDLASS_REDIS_CA_FILE',
    parse: parseText,
    form: 'path',
    commands: ['server', 'worker', 'all', 'plan', 'doctor'],
    doc: 'PEM file of further certificate authorities for `rediss://`.',
  }),
  listen: optional({
    env: 'WINDLASS_LISTEN',
    parse: parseListen,
    form: '`host:port`, or `:port` for all addresses',
    defaults: { server: '127.0.0.1:8080', worker: '127.0.0.1:0', all: '127.0.0.1:0' },
    commands: RUNNING,
    doc: 'Where events, probes, metrics and the dashboard are served. Port 0 lets the OS choose. A forwarder serves probes only if this is set.',
  }),
  serverUrl: optional({
    env: 'WINDLASS_SERVER_URL',
    parse: parseHttpUrl,
    form: 'URL',
    commands: ['forwarder', 'doctor'],
    required: ['forwarder'],
    doc: 'Base address of the server that events go to.',
  }),
  serverCaFile: optional({
    env: 'WINDLASS_SERVER_CA_FILE',
    parse: parseText,
    form: 'path',
    commands: ['forwarder', 'doctor'],
    doc: 'PEM file of further certificate authorities for an `https` server.',
  }),
  dashboardUser: setting({
    env: 'WINDLASS_DASHBOARD_USER',
    parse: parseUser,
    form: 'text',
    default: 'windlass',
    commands: SERVING,
    doc: 'Login of the queue dashboard.',
  }),
  dashboardPassword: secret({
    env: 'WINDLASS_DASHBOARD_PASSWORD',
    parse: parseText,
    commands: SERVING,
    doc: 'Password of the queue dashboard, read at start. Without it there is no dashboard.',
  }),
  metricsToken: secret({
    env: 'WINDLASS_METRICS_TOKEN',
    parse: parseHeaderText,
    commands: SERVING,
    doc: 'Bearer token that `/metrics` and `/v1/backlog` ask for, read at start. Without it they are open.',
  }),
  bodyLimitBytes: setting({
    env: 'WINDLASS_BODY_LIMIT_BYTES',
    parse: integerBetween(64 * 1024, 256 * 1024 * 1024),
    form: 'whole number',
    default: String(8 * 1024 * 1024),
    commands: SERVING,
    doc: 'Longest batch of events that is taken.',
  }),
  concurrency: setting({
    env: 'WINDLASS_CONCURRENCY',
    parse: integerBetween(1, 1000),
    form: 'whole number',
    default: '32',
    commands: WORKING,
    doc: 'How many objects a worker reconciles at a time, over all clusters.',
  }),
  gracePeriod: setting({
    env: 'WINDLASS_GRACE_PERIOD',
    parse: durationBetween(0, DAY_MS),
    form: 'duration',
    default: '25s',
    commands: ['server', 'worker', 'all'],
    doc: 'From SIGTERM until requests are cut and runs handed back that still go. Shorter than the Pod’s termination grace period.',
  }),
  resyncPeriod: setting({
    env: 'WINDLASS_RESYNC_PERIOD',
    parse: durationFrom(1000),
    form: 'duration',
    default: '10m',
    commands: WORKING,
    doc: 'How often everything is looked at again without a change.',
  }),
  untilIdle: setting({
    env: 'WINDLASS_UNTIL_IDLE',
    parse: parseBool,
    form: '`true` or `false`',
    default: 'false',
    commands: ['worker'],
    doc: 'End when no job is due or running.',
  }),
  json: setting({
    flag: 'json',
    parse: parseBool,
    form: '`true` or `false`',
    default: 'false',
    commands: ['plan', 'doctor'],
    doc: 'Print JSON.',
  }),
}

export const CLUSTER = {
  cluster: setting({
    env: 'WINDLASS_CLUSTER',
    parse: parseDnsLabel,
    form: 'DNS label',
    default: 'default',
    ofOneCluster: true,
    commands: COMMANDS,
    doc: 'Id of the cluster, the same for forwarder, server and worker. In a file of clusters the ids are its keys, and `forwarder`, `plan` and `doctor` choose one by it.',
  }),
  kubeconfig: optional({
    env: 'KUBECONFIG',
    flag: 'kubeconfig',
    shared: true,
    separator: ':',
    parse: parsePaths,
    form: 'paths, colons between them',
    defaultNote: 'in-cluster credentials',
    ofOneCluster: true,
    ambient: true,
    commands: TALKING_TO_KUBERNETES,
    doc: 'How to reach the cluster. In a Pod of the cluster none is needed: its service account serves.',
  }),
  context: optional({
    env: 'WINDLASS_CONTEXT',
    parse: parseText,
    form: 'text',
    defaultNote: 'the kubeconfig’s current context',
    ofOneCluster: true,
    commands: TALKING_TO_KUBERNETES,
    doc: 'Context of the kubeconfig.',
  }),
  master: optional({
    flag: 'master',
    shared: true,
    parse: parseHttpUrl,
    form: 'URL',
    ofOneCluster: true,
    commands: TALKING_TO_KUBERNETES,
    doc: 'Address of the API server, in place of the kubeconfig’s.',
  }),
  ignoreOtherController: setting({
    env: 'WINDLASS_IGNORE_OTHER_CONTROLLER',
    parse: parseBool,
    form: '`true` or `false`',
    default: 'false',
    ofOneCluster: true,
    commands: WORKING,
    doc: 'Write even while another cloud controller manager holds the lease `cloud-controller-manager` or writes to Nodes and Services. Without it workers only plan until that one is gone.',
  }),
  hcloudLoadBalancerClass: setting({
    env: 'WINDLASS_HCLOUD_LOAD_BALANCER_CLASS',
    parse: parseClass,
    form: 'class',
    default: 'windlass.dev/hcloud',
    commands: ['server', ...PLACING],
    doc: '`spec.loadBalancerClass` of Services whose load balancer is made at Hetzner.',
  }),
  cherryLoadBalancerClass: setting({
    env: 'WINDLASS_CHERRY_LOAD_BALANCER_CLASS',
    parse: parseClass,
    form: 'class',
    default: 'windlass.dev/cherryservers',
    commands: ['server', ...PLACING],
    doc: '`spec.loadBalancerClass` of Services whose load balancer is made at Cherry Servers.',
  }),
  defaultLoadBalancer: optional({
    env: 'WINDLASS_DEFAULT_LOAD_BALANCER',
    parse: oneOf('hcloud', 'cherryservers', 'none'),
    form: '`hcloud`, `cherryservers` or `none`',
    defaultNote: 'the first of these that has load balancers',
    commands: PLACING,
    doc: 'Where Services without a class get their load balancer; with `none` they are somebody else’s. Those that have one stay where they are.',
  }),
  webhookKeys: secret({
    env: 'WINDLASS_WEBHOOK_KEYS',
    parse: parseWebhookKeys,
    ofOneCluster: true,
    commands: ['forwarder', 'server', 'all', 'doctor'],
    required: ['forwarder', 'server'],
    doc: 'Standard Webhooks secrets with commas between, read at start: the first signs, all verify. `all` makes one of its own.',
  }),
  knativeTokens: secret({
    env: 'WINDLASS_KNATIVE_TOKENS',
    parse: parseBearerTokens,
    ofOneCluster: true,
    commands: ['server'],
    doc: 'Bearer tokens of 24 or more characters each, with commas between, read at start: who has one may send events of Knative for this cluster. Knative itself sends none: a gateway before the server has to add it.',
  }),
  knativeOidcIssuer: optional({
    env: 'WINDLASS_KNATIVE_OIDC_ISSUER',
    parse: parseTrustedUrl,
    form: 'URL',
    ofOneCluster: true,
    commands: ['server'],
    doc: 'Issuer of the tokens that Knative sends along with this cluster’s events, as `kubectl get --raw /.well-known/openid-configuration` in that cluster tells it.',
  }),
  knativeOidcAudience: optional({
    env: 'WINDLASS_KNATIVE_OIDC_AUDIENCE',
    parse: parseText,
    form: 'text',
    ofOneCluster: true,
    commands: ['server'],
    doc: 'Audience of these tokens, as the ApiServerSource has it at its sink. Clusters of one issuer have different ones.',
  }),
  knativeOidcSubject: optional({
    env: 'WINDLASS_KNATIVE_OIDC_SUBJECT',
    parse: parseText,
    form: 'text',
    defaultNote: 'any',
    ofOneCluster: true,
    commands: ['server'],
    doc: 'Subject of these tokens: `system:serviceaccount:NAMESPACE:NAME`, where `status.auth` of the ApiServerSource has the name.',
  }),
  knativeOidcJwksUrl: optional({
    env: 'WINDLASS_KNATIVE_OIDC_JWKS_URL',
    parse: parseTrustedUrl,
    form: 'URL',
    defaultNote: 'what the issuer’s discovery document says',
    ofOneCluster: true,
    commands: ['server'],
    doc: 'Where the issuer’s keys are, if the server can’t reach what the issuer is called; at an API server `/openid/v1/jwks`.',
  }),
  knativeOidcCaFile: optional({
    env: 'WINDLASS_KNATIVE_OIDC_CA_FILE',
    parse: parseText,
    form: 'path',
    ofOneCluster: true,
    commands: ['server'],
    doc: 'PEM file of further certificate authorities for the issuer.',
  }),
}
