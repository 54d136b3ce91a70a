import type { Json } from '../../apiserver/admin.ts'
import type { RecordedEvent } from '../case.ts'
import { tidy } from './tidy.ts'

/** A Node without what differs by run, and without what a kubelet or kube-controller-manager owns. */
export function normalNode(node: Json): Json {
  return tidy({
    ...normalMetadata(node.metadata),
    providerID: node.spec.providerID,
    podCIDRs: node.spec.podCIDRs,
    unschedulable: node.spec.unschedulable,
    taints: (node.spec.taints ?? [])
      .filter((taint: Json) => !foreignTaints.has(taint.key))
      .map(({ key, value, effect }: Json) => ({ key, value, effect }))
      .sort((a: Json, b: Json) => (a.key + a.effect).localeCompare(b.key + b.effect)),
    // A stable sort: the order within a type is kept.
    addresses: [...(node.status.addresses ?? [])].sort(byType),
    conditions: normalConditions(
      (node.status.conditions ?? []).filter((condition: Json) => !kubeletConditions.has(condition.type)),
    ),
  })
}

export function normalService(service: Json): Json {
  return tidy({
    ...normalMetadata(service.metadata),
    type: service.spec.type,
    ingress: service.status?.loadBalancer?.ingress,
    conditions: normalConditions(service.status?.conditions ?? []),
  })
}

/** The Events of Nodes and Services as a set: no texts, no counts, no times. */
export function normalEvents(events: Json[]): RecordedEvent[] {
  const found = new Map<string, RecordedEvent>()
  for (const event of events) {
    const { kind, namespace, name } = event.involvedObject ?? event.regarding ?? {}
    if (kind !== 'Node' && kind !== 'Service') continue
    const object = kind === 'Node' ? `Node/${name}` : `Service/${namespace}/${name}`
    const normal = { object, type: event.type, reason: event.reason }
    found.set(JSON.stringify(normal), normal)
  }
  const key = (event: RecordedEvent) => `${event.object} ${event.reason} ${event.type}`
  return [...found.values()].sort((a, b) => key(a).localeCompare(key(b)))
}

const kubeletConditions = new Set(['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'])

const foreignTaints = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/network-unavailable',
  'node.kubernetes.io/unschedulable',
])

function normalMetadata(metadata: Json) {
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...annotations } = metadata.annotations ?? {}
  return {
    labels: metadata.labels,
    annotations,
    finalizers: metadata.finalizers?.length ? [...metadata.finalizers].sort() : undefined,
    deleting: metadata.deletionTimestamp ? true : undefined,
  }
}

function normalConditions(conditions: Json[]) {
  return conditions.map(({ type, status, reason }) => ({ type, status, reason })).sort(byType)
}

function byType(a: { type: string }, b: { type: string }): number {
  return a.type.localeCompare(b.type)
}
