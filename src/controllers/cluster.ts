import type { CloudProvider, Note } from '../cloud/provider.ts'
import type { FrameworkSettings, Placing } from '../config/types.ts'
import type { NodeProjection, ServiceProjection } from '../events/projection.ts'
import type { KubernetesApi } from '../kubernetes/api.ts'
import type { EventRecorder } from '../kubernetes/events.ts'
import type { Enqueuer } from '../queue/types.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ClusterState } from './state.ts'

/** Everything that the controllers of one cluster work with. */
export interface Cluster {
  id: string
  kubernetes: KubernetesApi
  clouds: readonly CloudProvider[]
  recorder: EventRecorder
  framework: FrameworkSettings
  placing: Placing
  state: ClusterState
  enqueuer: Enqueuer
  resyncPeriodMs: number
  nowMs(): number
  /** Absent where nothing is carried out. */
  metrics?: Metrics
}

/** Component names of Events, as the framework's controllers sign them. */
export const COMPONENT = {
  node: 'cloud-node-controller',
  lifecycle: 'cloud-node-lifecycle-controller',
  service: 'service-controller',
  route: 'route_controller',
  windlass: 'windlass',
} as const

/** Counts what was carried out. */
export function countChanges(
  { id, metrics }: Cluster,
  controller: keyof typeof COMPONENT,
  changes: readonly { kind: string }[],
): void {
  for (const { kind } of changes)
    metrics?.increment('windlass_changes_applied_total', 1, {
      cluster: id,
      controller: COMPONENT[controller],
      change: kind,
    })
}

type Object_ = { kind: 'Node' | 'Service'; namespace?: string; name: string; uid: string }

/** A cloud's notes become Events on the object, or on the node that a note names. */
export function recordNotes(
  cluster: Cluster,
  object: Object_,
  notes: readonly Note[],
  nodes: ReadonlyMap<string, NodeProjection> = new Map(),
): void {
  for (const { type, reason, message, node } of notes) {
    const about = node === undefined ? undefined : nodes.get(node)
    if (node !== undefined && !about && !(object.kind === 'Node' && object.name === node)) continue
    cluster.recorder.record({
      object: about ? { kind: 'Node', name: about.name, uid: about.uid } : object,
      type,
      reason,
      message,
      component: COMPONENT.windlass,
    })
  }
}

export const serviceObject = ({ namespace, name, uid }: Pick<ServiceProjection, 'namespace' | 'name' | 'uid'>) =>
  ({ kind: 'Service', namespace, name, uid }) as const

export const nodeObject = ({ name, uid }: Pick<NodeProjection, 'name' | 'uid'>) =>
  ({ kind: 'Node', name, uid }) as const
