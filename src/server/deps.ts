import type { Queue } from 'bullmq'
import type { Logger } from 'pino'
import type { KnativeSettings, Placing } from '../config/types.ts'
import type { Backlog, Enqueuer } from '../queue/types.ts'
import type { Stores } from '../state/stores.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export interface ServedCluster {
  /** Standard Webhooks secrets; any of them verifies. */
  webhookKeys: readonly string[]
  /** Who may send events by way of Knative; nobody if absent. */
  knative?: KnativeSettings
  /** Pod routes are kept for this cluster, so node changes that concern them are worth a job. */
  routes: boolean
  /** Which Services are ours. */
  placing: Placing
}

/** All that the server needs; it opens nothing by itself. */
export interface ServerDeps {
  clusters: ReadonlyMap<string, ServedCluster>
  enqueuer: Enqueuer
  stores: Stores
  /** Makes sure that the job schedulers of all clusters exist: Redis may have lost them. */
  assertSchedules(): Promise<void>
  backlog(cluster: string): Promise<Backlog>
  metrics: Metrics
  log: Logger
  bodyLimitBytes: number
  /** Bytes of bodies that are held at a time, over all connections; eight of the longest if absent. */
  bodiesLimitBytes?: number
  /** Until a request must have arrived whole. */
  requestTimeoutMs?: number
  /** Bearer token for `/metrics` and `/v1/backlog`; open if absent. */
  metricsToken?: string
  /** Not served if absent. */
  dashboard?: { user: string; password: string; queues: readonly Queue[] }
  /** What else in this process makes it unready, in sentences. */
  problems?(): readonly string[]
  /** Unix time in milliseconds. */
  now?: () => number
}
