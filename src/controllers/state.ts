import type { NodeProjection } from '../events/projection.ts'
import type { Subject } from '../events/subject.ts'
import type { DeletionVerdict } from '../state/deletion-budget.ts'
import type { ServiceRecord } from '../state/service-record.ts'
import type { Absence, Sighting } from '../state/sightings.ts'
import type { Stores } from '../state/stores.ts'
import type { KnownVersions } from '../state/versioned-index.ts'

/** The part of Redis that the controllers of one cluster read and write. All of it is a cache: empty answers cost work, never correctness. */
export interface ClusterState {
  nodes: {
    /** As events told it last; undefined also when they may not have told all. */
    get(name: string): Promise<NodeProjection | undefined>
    /** `complete` only after a finished snapshot: without it the API is asked for the list. */
    all(): Promise<{ complete: boolean; nodes: NodeProjection[] }>
    /** What an event should have told. What is newer stands. */
    put(nodes: readonly NodeProjection[]): Promise<void>
    remove(name: string, uid: string, resourceVersion: string): Promise<void>
  }
  /** What is known of the versions of a cluster's objects, and the beginning of a life in which they mean nothing. */
  life: {
    versions(): Promise<{ nodes: KnownVersions; services: KnownVersions }>
    begin(): Promise<void>
  }
  /** The state in which the last good run left an object: an event that shows just this costs no job. */
  handled: {
    /** Before the object is observed. */
    begin(subject: Subject): Promise<string>
    record(subject: Subject, token: string, fingerprint: string): Promise<void>
  }
  services: {
    /** `name` is `namespace/name`. */
    get(name: string): Promise<ServiceRecord | undefined>
    all(): Promise<ReadonlyMap<string, ServiceRecord>>
    put(name: string, record: ServiceRecord): Promise<void>
    remove(name: string): Promise<void>
    /** Changes with each comparison of all Services with the nodes that begins. */
    comparisons(): Promise<string>
    beginComparison(): Promise<void>
  }
  sightings: {
    /**
     * `ageMs` is how old the read may be that showed them. Returns when each was seen last before, in Unix milliseconds; 0 for never.
     */
    seen(providerIds: readonly string[], credentialId: string, ageMs: number): Promise<number[]>
    lastSeen(providerId: string): Promise<Sighting | undefined>
    knows(credentialId: string): Promise<boolean>
    notFound(providerId: string): Promise<Absence>
  }
  allowDeletion(nodeUid: string, nodeCount: number): Promise<DeletionVerdict>
  /** A human said that the deletions that are held are right. */
  releaseDeletions(): Promise<void>
}

export function clusterState(stores: Stores, cluster: string, nowMs: () => number): ClusterState {
  const { nodes, handled, serviceRecords, sightings, deletions } = stores
  return {
    nodes: {
      async get(name) {
        const { complete, node } = await nodes.get(cluster, name)
        return complete ? node : undefined
      },
      all: () => nodes.all(cluster),
      put: async (list) => void (await nodes.put(cluster, list)),
      remove: async (...node) => void (await nodes.remove(cluster, ...node)),
    },
    life: {
      async versions() {
        const [ofNodes, ofServices] = await Promise.all([nodes.versions(cluster), stores.services.versions(cluster)])
        return { nodes: ofNodes, services: ofServices }
      },
      async begin() {
        await nodes.beginLife(cluster)
        await handled.reset(cluster)
        await stores.services.beginLife(cluster)
        await stores.epochs.end()
      },
    },
    handled: {
      begin: (subject) => handled.begin(cluster, subject),
      record: async (subject, token, fingerprint) => void (await handled.record(cluster, subject, token, fingerprint)),
    },
    services: {
      get: (name) => serviceRecords.get(cluster, name),
      all: () => serviceRecords.all(cluster),
      put: (name, record) => serviceRecords.put(cluster, name, record),
      remove: (name) => serviceRecords.remove(cluster, name),
      comparisons: () => serviceRecords.comparisons(cluster),
      beginComparison: () => serviceRecords.beginComparison(cluster),
    },
    sightings: {
      seen: (providerIds, credentialId, ageMs) => sightings.seen(cluster, providerIds, credentialId, nowMs() - ageMs),
      lastSeen: (providerId) => sightings.lastSeen(cluster, providerId),
      knows: (credentialId) => sightings.knows(cluster, credentialId),
      notFound: (providerId) => sightings.notFound(cluster, providerId, nowMs()),
    },
    allowDeletion: (nodeUid, nodeCount) => deletions.allow(cluster, nodeUid, nodeCount, nowMs()),
    releaseDeletions: () => deletions.release(cluster),
  }
}
