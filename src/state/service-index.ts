import type { Redis } from 'ioredis'
import { fingerprint, type ServiceProjection } from '../events/projection.ts'
import { subjectOf } from '../events/subject.ts'
import { createVersionedIndex, type KnownVersions, type Put, type SnapshotResult } from './versioned-index.ts'

export interface KnownService {
  service: ServiceProjection
  /** There is, or should be, a load balancer of ours for it: its end must not be missed. */
  concernsUs: boolean
  /** The snapshot that names it, if any. */
  snapshot?: string
}

/**
 * Which Services exist, so that a deletion nobody saw is noticed. When a Service that concerned us goes, vanishes from a snapshot, or
 * stops to concern us, the outbox has an entry with its uid.
 */
export interface ServiceIndex {
  put(cluster: string, services: readonly KnownService[]): Promise<Put[]>
  /** @param name `namespace/name` */
  remove(cluster: string, name: string, uid: string, resourceVersion: string): Promise<'removed' | 'stale' | 'unknown'>
  beginSnapshot(cluster: string, snapshot: string): Promise<void>
  endSnapshot(
    cluster: string,
    snapshot: string,
    end: { items: number; listVersion: string; epoch: string },
  ): Promise<SnapshotResult>
  versions(cluster: string): Promise<KnownVersions>
  /** What is known is of a former life of the cluster. */
  beginLife(cluster: string): Promise<void>
}

export function createServiceIndex(redis: Redis, prefix: string): ServiceIndex {
  const index = createVersionedIndex(redis, prefix, 'services')
  return {
    put: (cluster, services) =>
      index.put(
        cluster,
        services.map(({ service, concernsUs, snapshot }) => ({
          name: `${service.namespace}/${service.name}`,
          uid: service.uid,
          resourceVersion: service.resourceVersion,
          fingerprint: fingerprint(service),
          aspects: [
            {
              outboxKey: subjectOf({ kind: 'Service', namespace: service.namespace, name: service.name }),
              value: concernsUs ? 'ours' : '',
            },
          ],
          body: '',
          snapshot,
        })),
      ),
    remove: index.remove,
    beginSnapshot: index.beginSnapshot,
    endSnapshot: index.endSnapshot,
    versions: index.versions,
    beginLife: index.beginLife,
  }
}
