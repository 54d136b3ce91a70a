import type { Redis } from 'ioredis'
import type { Call } from '../call.ts'
import type { CloudProvider } from '../cloud/provider.ts'
import type { ClusterSettings } from '../config/types.ts'
import type { Cluster } from '../controllers/cluster.ts'
import type { ApiServerTrust } from '../controllers/control-plane-ip/health.ts'
import { clusterState } from '../controllers/state.ts'
import { transient } from '../errors.ts'
import { createKubernetesApi, type KubernetesApi } from '../kubernetes/api.ts'
import { connect } from '../kubernetes/connection.ts'
import { EventRecorder } from '../kubernetes/events.ts'
import { NAMESPACES } from '../kubernetes/resources.ts'
import type { Enqueuer } from '../queue/types.ts'
import type { Stores } from '../state/stores.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { VERSION } from '../version.ts'
import { type CloudRequest, countCloudRequests } from './cloud-metrics.ts'
import { createRefusals } from './refusals.ts'

export interface OpenCluster extends Cluster {
  /** Whom to believe to be the API server, for those who ask for its health without our credentials. */
  trust(): ApiServerTrust
  /** Credentials of its clouds that are refused now, in sentences. */
  refusals(): string[]
  close(): Promise<void>
}

export interface ClusterParts {
  redis: Redis
  prefix: string
  stores: Stores
  enqueuer: Enqueuer
  resyncPeriodMs: number
  log: Logger
  metrics: Metrics
}

/** Connects a cluster's controllers to its API server, its clouds and Redis. Makes no request yet. */
export async function openCluster(settings: ClusterSettings, parts: ClusterParts): Promise<OpenCluster> {
  const log = parts.log.child({ cluster: settings.id })
  const connection = await connect(settings.kubernetes, log)
  const kubernetes = createKubernetesApi(connection, {
    onRequest({ verb, status, ms }) {
      const code = status === 0 ? '<error>' : String(status)
      parts.metrics.increment('rest_client_requests_total', 1, { code, method: verb, host: connection.server })
      parts.metrics.observe('rest_client_request_duration_seconds', ms / 1000, { verb, host: connection.server })
    },
  })
  const recorder = new EventRecorder({ api: kubernetes, log })
  const refusals = createRefusals()
  const count = countCloudRequests(parts.metrics)
  const onRequest = (seen: CloudRequest) => {
    count(seen)
    refusals.note(seen)
  }
  const clouds = await openClouds(settings, { ...parts, log, kubernetes, onRequest })
  const nowMs = () => Date.now()
  return {
    id: settings.id,
    kubernetes,
    clouds,
    recorder,
    framework: settings.framework,
    placing: settings.placing,
    state: clusterState(parts.stores, settings.id, nowMs),
    enqueuer: parts.enqueuer,
    resyncPeriodMs: parts.resyncPeriodMs,
    nowMs,
    metrics: parts.metrics,
    trust: () => connection.trust,
    refusals: () => refusals.problems(),
    async close() {
      await recorder.flush(2000)
      recorder.close()
      await Promise.allSettled(clouds.map((cloud) => cloud.close()))
      connection.close()
    },
  }
}

/** The clouds of a cluster's settings; what a cluster does not use is not loaded. Without Redis each keeps what it reads to itself. */
export async function openClouds(
  { clouds }: ClusterSettings,
  {
    redis,
    prefix,
    log,
    kubernetes,
    onRequest,
    onlyPlans = false,
  }: Partial<Pick<ClusterParts, 'redis'>> &
    Pick<ClusterParts, 'prefix' | 'log'> & {
      kubernetes: KubernetesApi
      onRequest?: (seen: CloudRequest) => void
      onlyPlans?: boolean
    },
): Promise<CloudProvider[]> {
  const open: CloudProvider[] = []
  const shared = {
    ...(redis ? { redis } : {}),
    ...(onRequest ? { onRequest } : {}),
    prefix,
    log,
    version: VERSION,
  }
  if (clouds.hcloud) {
    const { createHcloudProvider } = await import('../cloud/hcloud/provider.ts')
    open.push(createHcloudProvider({ settings: clouds.hcloud, onlyPlans, ...shared }))
  }
  if (clouds.cherry) {
    const { createCherryProvider } = await import('../cloud/cherry/provider.ts')
    const clusterUid = uidOfCluster(kubernetes)
    open.push(createCherryProvider({ settings: clouds.cherry, clusterUid, ...shared }))
  }
  return open
}

/** Kubernetes gives a cluster no id; the uid of this namespace, which none is without, has become it. It never changes. */
function uidOfCluster(kubernetes: KubernetesApi): (call: Call) => Promise<string> {
  let known: string | undefined
  return async (call) => {
    known ??= (await kubernetes.get(NAMESPACES, { name: 'kube-system' }, call))?.metadata.uid
    if (known !== undefined) return known
    throw transient('The namespace kube-system is not there, and its uid is what tells this cluster from others')
  }
}
