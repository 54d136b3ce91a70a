import { type NodeProjection, projectNode, projectService, type ServiceProjection } from '../events/projection.ts'
import type { KubernetesConnection } from '../kubernetes/connection.ts'
import { listWatch } from '../kubernetes/list-watch.ts'
import { NODES, SERVICES } from '../kubernetes/resources.ts'
import type { Logger } from '../telemetry/log.ts'

export type WatchedKind = 'Node' | 'Service'
export type Projection = NodeProjection | ServiceProjection

/** What a watch tells, in order. Objects are cut down to their projections before a list is whole, which keeps it small. */
export interface WatchSink {
  /** All objects: at first, and again after every gap. What is not among them is gone. */
  onList(items: readonly Projection[], resourceVersion: string): void
  onEvent(event: {
    type: 'ADDED' | 'MODIFIED' | 'DELETED'
    object: Projection
    /** The version at which it happened. */
    resourceVersion: string
  }): void
  /** Everything up to this version has been told. */
  onBookmark(resourceVersion: string): void
}

/** A watch that goes on until its signal fires, whatever happens to the other side. */
export interface Watching {
  /** Resolves when the signal has fired and the sink is told nothing any more. */
  readonly done: Promise<void>
  /** Watches that broke. */
  readonly restarts: number
  /** Unix time in milliseconds of the last byte from the other side; 0 before the first. */
  readonly lastSignOfLifeMs: number
}

/** Where objects come from. */
export interface ObjectSource {
  watch(kind: WatchedKind, sink: WatchSink, signal: AbortSignal): Watching
}

/** Objects per page of a list. A Node may have 10 KiB and more of images, and a page is held as a whole before it is cut down. */
const PAGE_SIZE = 100

export function kubernetesSource(connection: KubernetesConnection, log: Logger): ObjectSource {
  return {
    watch(kind, sink, signal) {
      const shared = { connection, signal, log, pageSize: PAGE_SIZE, ...sink }
      return kind === 'Node'
        ? listWatch({ ...shared, resource: NODES, project: projectNode })
        : listWatch({ ...shared, resource: SERVICES, project: projectService })
    },
  }
}
