import type { Urgency } from '../call.ts'

/** What kind of work a job is; the job's name in BullMQ. */
export type WorkKind =
  /** One Node: initialise it, keep its labels and addresses true, and its life at the cloud. */
  | 'node'
  /** One Service: its load balancer. Work that only new nodes ask for has the same kind and key, so it can't run beside it. */
  | 'service'
  /** The cluster's node set changed: find the Services whose targets change with it, and enqueue those. */
  | 'targets'
  /** Pod routes of one network. */
  | 'route'
  /** Addresses of all nodes of a cluster. */
  | 'addresses'
  /** Everything of a cluster once more, at the lowest priority: drift repair, and what lost triggers left behind. */
  | 'resync'

/** What a trigger asks for. Jobs name an object and never carry its state as truth. */
export interface Trigger {
  kind: WorkKind
  /**
   * The object: a subject (`Node/worker-1`, `Service/default/web`), or `Cluster/<what>` for work on all of it.
   * At most one active and one waiting job of a cluster have the same key.
   */
  key: string
  /** Why, for people: the event's type, `resync`, `dashboard`, … */
  cause: string
  urgency: Urgency
  /** uid of the object at the time of the trigger, if known: a deleted object can be cleaned up by it. */
  uid?: string
  /** The CloudEvent that asked. */
  eventId?: string
  traceparent?: string
  /** Start no earlier than this many milliseconds from now (gathers bursts). A trigger without delay overtakes. */
  delayMs?: number
}

/** A job's data in Redis. N and N−1 of Windlass run side by side: fields are only added, and `v` tells. */
export interface JobData extends Omit<Trigger, 'delayMs'> {
  v: 1
  cluster: string
  enqueuedAtMs: number
}

export interface Enqueued {
  key: string
  jobId: string
  generation: number
}

export interface Enqueuer {
  /**
   * Makes sure that for each trigger a run starts that reads the object after this call. Resolves only when the Redis primary
   * holds all of it; rejects with `transient` within 2 s when Redis can't take it, however much it took before.
   */
  enqueue(cluster: string, triggers: readonly Trigger[]): Promise<Enqueued[]>
}

/** Jobs of a cluster by state, for `/v1/backlog` and the metrics. */
export interface Backlog {
  cluster: string
  waiting: number
  active: number
  /** Delayed jobs that are due within a minute. */
  dueSoon: number
  delayed: number
  failed: number
  /** Milliseconds that the oldest job which could run has waited; 0 when none waits. */
  oldestWaitingMs: number
}
