import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

interface Definition {
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  labels: readonly string[]
  buckets?: readonly number[]
}

/** 1 s, doubled 14 times: the framework's buckets for load balancers. */
const DOUBLED = Array.from({ length: 15 }, (_, i) => 2 ** i)
/** 1 s, quadrupled 5 times: the framework's buckets for a node's first minutes. */
const QUADRUPLED = Array.from({ length: 6 }, (_, i) => 4 ** i)
const REQUEST = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const WORK = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/**
 * Every metric of every role but the forwarder, which counts by itself to stay small. Names without `windlass_` are those of the replaced
 * controllers, so that their dashboards and alerts go on.
 */
export const METRICS = {
  // The framework's names.
  service_controller_loadbalancer_sync_total: counter('Updates of the targets of a load balancer, without full syncs.'),
  service_controller_nodesync_error_total: counter(
    'Failed updates of the targets of load balancers after a node change.',
  ),
  service_controller_update_loadbalancer_host_latency_seconds: histogram(
    'Duration of an update of the targets of one load balancer.',
    DOUBLED,
  ),
  node_controller_cloud_provider_taint_removal_delay_seconds: histogram(
    'From the creation of a node until it is no longer uninitialised.',
    QUADRUPLED,
  ),
  node_controller_initial_node_sync_delay_seconds: histogram(
    'From the creation of a node until its first successful sync.',
    QUADRUPLED,
  ),
  route_controller_route_sync_total: counter('Syncs of pod routes.'),
  running_managed_controllers: gauge('Controllers that run in this process.', ['name', 'manager']),
  workqueue_adds_total: counter('Triggers that were enqueued.', ['name']),
  workqueue_queue_duration_seconds: histogram('From when a job could run until it ran.', WORK, ['name']),
  workqueue_work_duration_seconds: histogram('Duration of runs.', WORK, ['name']),
  workqueue_retries_total: counter('Runs that failed and are tried again.', ['name']),
  rest_client_requests_total: counter('Requests to Kubernetes; code `<error>` had no answer.', [
    'code',
    'method',
    'host',
  ]),
  rest_client_request_duration_seconds: histogram('Duration of requests to Kubernetes.', REQUEST, ['verb', 'host']),

  // The Hetzner controller's names.
  hcloud_api_requests_total: counter('Answers of the Hetzner Cloud API.', ['code', 'method', 'api_endpoint']),
  hcloud_api_request_duration_seconds: histogram('Duration of requests to the Hetzner Cloud API.', REQUEST, ['method']),

  // The server's.
  windlass_events_received_total: counter('Events in accepted batches, by type.', ['cluster', 'type']),
  windlass_event_batches_total: counter('Batches of events, by the status of the answer.', ['cluster', 'status']),
  windlass_event_batch_duration_seconds: histogram('From the arrival of a batch until its answer.', REQUEST, [
    'cluster',
  ]),
  windlass_knative_events_total: counter('Events of Knative, by the status of the answer.', ['cluster', 'status']),
  windlass_events_handled_total: counter('Events that cost no job: the state was what our own last run left.', [
    'cluster',
  ]),
  windlass_events_stale_total: counter('Events that told of an older state than is known.', ['cluster']),
  windlass_snapshots_total: counter('Finished snapshots; `incomplete` ones were not believed.', [
    'cluster',
    'kind',
    'result',
  ]),
  windlass_triggers_total: counter('Triggers enqueued by the server.', ['cluster', 'kind', 'urgency']),
  windlass_epochs_total: counter('Times that Redis was found to have begun anew.'),
  windlass_redis_up: gauge('1 when Redis takes writes and is set up so that jobs are safe, else 0.'),

  // The queue's.
  windlass_jobs: gauge('Jobs by state.', ['cluster', 'state']),
  windlass_oldest_waiting_seconds: gauge('How long the oldest job that could run has waited.', ['cluster']),
  windlass_runs_total: counter(
    'Runs by kind of work and outcome: done, retry, throttled, permanent, aborted or lost.',
    ['cluster', 'kind', 'outcome'],
  ),
  windlass_run_duration_seconds: histogram('Duration of runs by kind of work.', WORK, ['cluster', 'kind']),
  windlass_change_to_run_seconds: histogram('From a trigger until the run that it asked for began.', WORK, [
    'cluster',
    'kind',
  ]),
  windlass_claims_lost_total: counter('Runs that lost their claim and stopped writing.', ['cluster']),

  // The controllers' and the clouds'.
  windlass_cloud_requests_total: counter('Requests to a cloud; code `error` had no answer.', [
    'cloud',
    'endpoint',
    'method',
    'code',
  ]),
  windlass_cloud_request_duration_seconds: histogram('Duration of requests to a cloud.', REQUEST, ['cloud', 'method']),
  windlass_cloud_budget_remaining: gauge('Requests that the account may still make before its limit resets.', [
    'cloud',
    'credential',
  ]),
  windlass_changes_applied_total: counter('Changes carried out at clouds and in Kubernetes, by kind.', [
    'cluster',
    'controller',
    'change',
  ]),
  windlass_orphans: gauge(
    'Load balancers, certificates and floating IPs of this cluster at a cloud that belong to no Service, as of the last resync.',
    ['cluster', 'cloud'],
  ),
  windlass_network_routes: gauge(
    'Routes in the network of the cluster, anybody’s, before the last look changed them.',
    ['cluster'],
  ),
  windlass_network_routes_limit: gauge('Routes that the network of the cluster can have.', ['cluster']),
  windlass_nodes_outside_cluster_cidr: gauge(
    'Nodes with a pod CIDR outside the cluster CIDR: it gets no route. As of the last look.',
    ['cluster'],
  ),
  windlass_nodes_missed_total: counter(
    'Nodes of which events have not told what the API lists, as a resync found them. It puts them right.',
    ['cluster'],
  ),
  windlass_node_deletions_total: counter('Nodes deleted since their machine is gone.', ['cluster']),
  windlass_node_deletions_held: gauge('1 while deletions of Nodes wait for a human, else 0.', ['cluster']),
} as const

type Table = typeof METRICS
type NameOf<T extends Definition['type']> = { [N in keyof Table]: Table[N]['type'] extends T ? N : never }[keyof Table]
export type Labels<N extends keyof Table> = Record<Table[N]['labels'][number], string>
type LabelArgument<N extends keyof Table> = Table[N]['labels'] extends readonly [] ? [] : [labels: Labels<N>]

/** The metrics of one process. */
export interface Metrics {
  readonly contentType: string
  /** All of them, in the text form of Prometheus. */
  text(): Promise<string>
  /** Text of metrics that others keep: asked for each time. */
  add(more: () => string): void
  increment<N extends NameOf<'counter'>>(name: N, by: number, ...labels: LabelArgument<N>): void
  set<N extends NameOf<'gauge'>>(name: N, value: number, ...labels: LabelArgument<N>): void
  /** Forgets all values of a gauge, so that what is gone is not reported for ever. */
  clear(name: NameOf<'gauge'>): void
  observe<N extends NameOf<'histogram'>>(name: N, seconds: number, ...labels: LabelArgument<N>): void
}

/** @param options.process also report the process' own CPU, memory and event loop; one registry of a process should */
export function createMetrics(options: { process?: boolean } = {}): Metrics {
  const registry = new Registry()
  if (options.process) collectDefaultMetrics({ register: registry })
  const counters = new Map<string, Counter>()
  const gauges = new Map<string, Gauge>()
  const histograms = new Map<string, Histogram>()
  for (const [name, { type, help, labels, buckets }] of Object.entries<Definition>(METRICS)) {
    const common = { name, help, labelNames: labels, registers: [registry] }
    if (type === 'counter') counters.set(name, new Counter(common))
    else if (type === 'gauge') {
      const created = new Gauge(common)
      // A gauge that this process never sets is not 0.
      if (labels.length === 0) created.remove()
      gauges.set(name, created)
    } else histograms.set(name, new Histogram({ ...common, buckets: [...(buckets ?? [])] }))
  }
  const others: (() => string)[] = []
  return {
    contentType: registry.contentType,
    text: async () => [(await registry.metrics()).trimEnd(), ...others.map((more) => more())].join('\n'),
    add: (more) => void others.push(more),
    increment: (name, by, labels: Record<string, string> = {}) => counters.get(name)?.inc(labels, by),
    set: (name, value, labels: Record<string, string> = {}) => gauges.get(name)?.set(labels, value),
    clear: (name) => gauges.get(name)?.reset(),
    observe: (name, seconds, labels: Record<string, string> = {}) => histograms.get(name)?.observe(labels, seconds),
  }
}

function counter<const L extends readonly string[] = []>(help: string, labels?: L) {
  return { type: 'counter' as const, help, labels: (labels ?? []) as L }
}

function gauge<const L extends readonly string[] = []>(help: string, labels?: L) {
  return { type: 'gauge' as const, help, labels: (labels ?? []) as L }
}

function histogram<const L extends readonly string[] = []>(help: string, buckets: readonly number[], labels?: L) {
  return { type: 'histogram' as const, help, labels: (labels ?? []) as L, buckets }
}
