import type { NodeProjection, ServiceProjection } from './projection.ts'
import type { Subject } from './subject.ts'

/** The `type` of each CloudEvent between forwarder and server. */
export const EVENT_TYPE = {
  nodeChanged: 'dev.windlass.node.changed',
  nodeDeleted: 'dev.windlass.node.deleted',
  serviceChanged: 'dev.windlass.service.changed',
  serviceDeleted: 'dev.windlass.service.deleted',
  /** A complete list follows: its items are `*.changed` events that carry the snapshot's id. */
  snapshotBegin: 'dev.windlass.snapshot.begin',
  /** The list is complete: what the server knows and the snapshot did not name is gone. */
  snapshotEnd: 'dev.windlass.snapshot.end',
} as const

export type EventType = (typeof EVENT_TYPE)[keyof typeof EVENT_TYPE]

export interface Deleted {
  uid: string
  /** The version at which the object was last seen, or of its deletion when the watch told it. */
  resourceVersion: string
}

export interface SnapshotBegin {
  kind: 'Node' | 'Service'
  snapshot: string
}

export interface SnapshotEnd {
  kind: 'Node' | 'Service'
  snapshot: string
  /** How many different objects the snapshot named: a server that saw fewer does not believe the end. */
  items: number
  /** resourceVersion of the list. */
  listVersion: string
}

interface Envelope<T extends EventType, D> {
  specversion: '1.0'
  id: string
  /** `/clusters/{cluster}`: must equal the cluster of the path that it is posted to. */
  source: string
  type: T
  time: string
  datacontenttype: 'application/json'
  data: D
  /** W3C trace context, so that one trace id leads from the change to the patch. */
  traceparent?: string
}

export type WindlassEvent =
  | (Envelope<typeof EVENT_TYPE.nodeChanged, NodeProjection> & { subject: Subject; snapshot?: string })
  | (Envelope<typeof EVENT_TYPE.nodeDeleted, Deleted> & { subject: Subject })
  | (Envelope<typeof EVENT_TYPE.serviceChanged, ServiceProjection> & { subject: Subject; snapshot?: string })
  | (Envelope<typeof EVENT_TYPE.serviceDeleted, Deleted> & { subject: Subject })
  | Envelope<typeof EVENT_TYPE.snapshotBegin, SnapshotBegin>
  | Envelope<typeof EVENT_TYPE.snapshotEnd, SnapshotEnd>

/** `source` of every event of a cluster. */
export const sourceOf = (cluster: string) => `/clusters/${cluster}`

/** Where a cluster's events are posted to. */
export const eventsPath = (cluster: string) => `/v1/clusters/${encodeURIComponent(cluster)}/events`

export const BATCH_CONTENT_TYPE = 'application/cloudevents-batch+json'

/** Answer header that names the life of the Redis behind the server; a new value means: send everything again. */
export const EPOCH_HEADER = 'windlass-epoch'

/** Answer header of a 401 for a stale timestamp: the server's unix time in seconds. */
export const SERVER_TIME_HEADER = 'windlass-server-time'

/** One thing that is wrong with a batch. */
export interface Fault {
  /** JSON path from the batch, e.g. `$[3].data.ports[0].port`. */
  path: string
  /** What would be right. */
  message: string
}

/** Body of an answer with status 400. Every event that `faults` does not name may be good: it is worth sending without the others. */
export interface Refusal {
  message: string
  faults: Fault[]
}
