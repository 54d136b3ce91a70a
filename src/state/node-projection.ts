import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { fingerprint, type NodeProjection } from '../events/projection.ts'
import { subjectOf } from '../events/subject.ts'
import { createVersionedIndex, type KnownVersions, type SnapshotResult } from './versioned-index.ts'

/** Queue key of the work that finds the Services whose targets change with the nodes. */
export const TARGETS_KEY = 'Cluster/targets'
/** Queue key of the work on pod routes. */
export const ROUTES_KEY = 'Cluster/routes'

export interface NodePut {
  /** `stale`: something newer is known, this version or the node's deletion. */
  outcome: 'stale' | 'unchanged' | 'changed'
  /** Facts that decide about load balancer targets changed; the outbox says so too. */
  targetsChanged: boolean
  /** Facts that decide about pod routes changed. */
  routesChanged: boolean
  /** The node is part of a snapshot that looks at everything again. */
  recheck: boolean
}

/** What informers keep in memory, in Redis. A cache: adding a target may trust it, removing one needs a fresh read of that node. */
export interface NodeProjections {
  /** `snapshots[i]` is the snapshot that names `nodes[i]`, if any. */
  put(
    cluster: string,
    nodes: readonly NodeProjection[],
    snapshots?: readonly (string | undefined)[],
  ): Promise<NodePut[]>
  remove(cluster: string, name: string, uid: string, resourceVersion: string): Promise<'removed' | 'stale' | 'unknown'>
  beginSnapshot(cluster: string, snapshot: string): Promise<void>
  endSnapshot(
    cluster: string,
    snapshot: string,
    end: { items: number; listVersion: string; epoch: string },
  ): Promise<SnapshotResult>
  /** Without `complete`, page the list at Kubernetes instead. */
  all(cluster: string): Promise<{ complete: boolean; nodes: NodeProjection[] }>
  /** Without `complete`, a later state may not have been told: read the node itself. */
  get(cluster: string, name: string): Promise<{ complete: boolean; node: NodeProjection | undefined }>
  /** Events may have been lost: nothing counts as complete until the next finished snapshot. */
  doubt(cluster: string): Promise<void>
  versions(cluster: string): Promise<KnownVersions>
  /** What is known is of a former life of the cluster. */
  beginLife(cluster: string): Promise<void>
}

export function createNodeProjections(redis: Redis, prefix: string): NodeProjections {
  const index = createVersionedIndex(redis, prefix, 'nodes')
  return {
    async put(cluster, nodes, snapshots = []) {
      const puts = await index.put(
        cluster,
        nodes.map((node, i) => ({
          name: node.name,
          uid: node.uid,
          resourceVersion: node.resourceVersion,
          fingerprint: fingerprint(node),
          aspects: [
            { outboxKey: subjectOf({ kind: 'Node', name: node.name }), value: 'exists' },
            { outboxKey: TARGETS_KEY, value: digest(targetFacts(node)) },
            { outboxKey: ROUTES_KEY, value: digest(routeFacts(node)) },
          ],
          body: JSON.stringify(node),
          snapshot: snapshots[i],
        })),
      )
      return puts.map(({ outcome, changedAspects, recheck }) => ({
        outcome,
        targetsChanged: changedAspects.includes(TARGETS_KEY),
        routesChanged: changedAspects.includes(ROUTES_KEY),
        recheck,
      }))
    },
    remove: index.remove,
    beginSnapshot: index.beginSnapshot,
    endSnapshot: index.endSnapshot,
    async all(cluster) {
      const { complete, bodies } = await index.all(cluster)
      return { complete, nodes: bodies.map((body) => JSON.parse(body) as NodeProjection) }
    },
    async get(cluster, name) {
      const { complete, body } = await index.get(cluster, name)
      return { complete, node: body === undefined ? undefined : (JSON.parse(body) as NodeProjection) }
    },
    doubt: index.doubt,
    versions: index.versions,
    beginLife: index.beginLife,
  }
}

const AUTOSCALER_TAINT = 'ToBeDeletedByClusterAutoscaler'

/**
 * What decides whether and how a node is a target. All labels count, since selectors may name any. Readiness does not: a flap must not
 * touch load balancers.
 */
function targetFacts(node: NodeProjection): unknown {
  return [
    node.deleting,
    sorted(node.labels),
    node.taints.some(({ key }) => key === AUTOSCALER_TAINT),
    node.providerId ?? '',
    routable(node),
    node.networkUnavailable?.status === 'True',
  ]
}

/** What decides about a node's pod routes. */
function routeFacts(node: NodeProjection): unknown {
  return [node.podCidrs, node.providerId ?? '', routable(node)]
}

function routable(node: NodeProjection) {
  return node.addresses
    .filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP')
    .map(({ type, address }) => [type, address])
}

function sorted(labels: Record<string, string>) {
  return Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
}

function digest(facts: unknown): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('base64url').slice(0, 22)
}
