/** What settings come to after validation. One row of `table.ts` per leaf; this is the shape that the code uses. */
export interface Settings {
  log: { level: string; format: 'json' | 'pretty' }
  /** Where traces are sent; absent when they are not. */
  traces?: { endpoint: string; ratio: number }
  redis: RedisSettings
  server: ServerSettings
  forwarder: ForwarderSettings
  worker: WorkerSettings
  clusters: ClusterSettings[]
}

export interface RedisSettings {
  /** Empty for a command that does not need it. `redis://`, `rediss://`, or `redis+sentinel://host:port,host:port/master` and `rediss+sentinel://…`. */
  url: string
  /** Before every key of ours, without trailing colon. */
  prefix: string
  /** PEM file of extra certificate authorities for `rediss://`. */
  caFile?: string
}

export interface ServerSettings {
  listen: { host: string; port: number }
  /** Login of the queue dashboard; without a password it is not mounted. */
  dashboard?: { user: string; password: string }
  /** Bearer token for `/metrics` and `/v1/backlog`; open if absent. */
  metricsToken?: string
  bodyLimitBytes: number
}

export interface ForwarderSettings {
  /** Base URL of the server, without trailing slash. Empty for a command that does not need it: `all` knows it once it listens. */
  serverUrl: string
  caFile?: string
  /** Where the forwarder answers probes; it does not if absent. */
  listen?: { host: string; port: number }
}

export interface WorkerSettings {
  /** Runs at a time in this process, over all clusters. */
  concurrency: number
  untilIdle: boolean
  /** Milliseconds from SIGTERM until runs that still go are handed back. */
  graceMs: number
  resyncPeriodMs: number
  /** Where the worker (or `all`) answers probes and metrics when it has no server; port 0 is chosen by the OS. */
  listen?: { host: string; port: number }
}

export interface ClusterSettings {
  /** DNS label. `default` when there is only one and nobody named it. */
  id: string
  kubernetes: KubernetesSettings
  /** Standard Webhooks secrets (`whsec_…` or base64); the first signs, all verify. Empty for `all` when none is set, and where none is needed. */
  webhookKeys: string[]
  /** Who may send events by way of Knative; nobody if absent. */
  knative?: KnativeSettings
  framework: FrameworkSettings
  /** Work beside another cloud controller manager. */
  ignoreOtherController: boolean
  placing: Placing
  clouds: { hcloud?: HcloudSettings; cherry?: CherrySettings }
}

export interface KnativeSettings {
  /** Bearer tokens; any of them will do. */
  tokens: string[]
  /** Tokens of this issuer will do too. */
  oidc?: OidcSettings
}

export interface OidcSettings {
  /** As its tokens name it. */
  issuer: string
  audience: string
  /** Any if absent. */
  subject?: string
  /** Where its keys are, if its discovery document is not to be asked. */
  jwksUrl?: string
  /** PEM file of extra certificate authorities. */
  caFile?: string
}

/** At which cloud the load balancer of a Service is made; clouds by the names that their providers have. */
export interface Placing {
  /** By `spec.loadBalancerClass`. A Service of any other class is somebody else's. */
  classes: Readonly<Record<string, string>>
  /** Of Services without a class: a cloud, or `none` for nowhere; the first cloud that has load balancers if absent. */
  unclassed?: string
}

export interface KubernetesSettings {
  /** Paths of kubeconfig files (`KUBECONFIG` may list several); in-cluster credentials if absent. */
  kubeconfig?: string[]
  context?: string
  /** `--master`: overrides the server's address. */
  server?: string
}

/** The controllers by the framework's canonical names. */
export type ControllerName =
  | 'cloud-node-controller'
  | 'cloud-node-lifecycle-controller'
  | 'service-lb-controller'
  | 'node-route-controller'

/** Flags of the cloud controller framework that change behaviour. */
export interface FrameworkSettings {
  controllers: ReadonlySet<ControllerName>
  clusterCidrs: string[]
  configureCloudRoutes: boolean
  nodeMonitorPeriodMs: number
  nodeStatusUpdateFrequencyMs: number
  /** Absent: routes are looked at when nodes change, and at each resync. */
  routeReconciliationPeriodMs?: number | undefined
}

export type AddressFamily = 'ipv4' | 'ipv6' | 'dualstack'

export interface HcloudSettings {
  /** The token, or the file that holds it and is read again when it changes. */
  token: Secret
  /** Version path included, no trailing slash. */
  endpoint: string
  metadataEndpoint: string
  debug: boolean
  network?: string
  networkDisableAttachedCheck: boolean
  networkRoutesEnabled: boolean
  addressFamily: AddressFamily
  zoneLabelEnabled: boolean
  serverCacheMode: 'all' | 'one' | 'off'
  serverCacheMaxAgeMs: number
  loadBalancers: HcloudLoadBalancerDefaults
  robot?: RobotSettings
  /** Address to serve `/metrics` on beside Windlass' own, as the replaced controller did; undefined when switched off. */
  metricsAddress?: string
}

export interface HcloudLoadBalancerDefaults {
  enabled: boolean
  location?: string
  networkZone?: string
  type?: string
  algorithmType?: 'round_robin' | 'least_connections'
  disablePublicNetwork?: boolean
  usesProxyProtocol?: boolean
  disablePrivateIngress: boolean
  disableIpv6: boolean
  usePrivateIp: boolean
  privateSubnetIpRange?: string
  healthCheckIntervalMs?: number
  healthCheckTimeoutMs?: number
  healthCheckRetries?: number
}

export interface RobotSettings {
  user?: Secret
  password?: Secret
  endpoint: string
  cacheTimeoutMs: number
  rateLimitWaitTimeMs: number
  forwardInternalIps: boolean
}

export interface CherrySettings {
  apiKey: Secret
  projectId: number
  /** Version path included, no trailing slash. */
  apiUrl: string
  region?: string
  loadBalancer?: string
  annotations: {
    localAsn: string
    peerAsn: string
    peerIp: string
    srcIp: string
    multiHop: string
    fipRegion: string
  }
  fipTag?: string
  apiServerPort: number
  bgpNodeSelector?: string
  fipHealthCheckUseHostIp: boolean
}

/** A secret that may live in a file. `read` returns its present value; nothing prints it. */
export interface Secret {
  /** Name of the setting, for messages. */
  readonly name: string
  /** What is wrong with its file now, while the last good value is still in use. */
  readonly fault?: string
  /** Costs a look at the file at most once a second. */
  read(): string
}
