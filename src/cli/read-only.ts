import type { Call } from '../call.ts'
import type { ClusterSettings, FrameworkSettings } from '../config/types.ts'
import type { Cluster } from '../controllers/cluster.ts'
import type { ApiServerTrust } from '../controllers/control-plane-ip/health.ts'
import { YOUNG_NODE_MS } from '../controllers/node-lifecycle/decide.ts'
import type { ClusterState } from '../controllers/state.ts'
import { WindlassError } from '../errors.ts'
import { createKubernetesApi, type KubernetesApi } from '../kubernetes/api.ts'
import { connect } from '../kubernetes/connection.ts'
import { EventRecorder } from '../kubernetes/events.ts'
import type { Absence } from '../state/sightings.ts'
import type { Logger } from '../telemetry/log.ts'
import { openClouds } from './cluster.ts'

export interface ReadOnlyCluster extends Cluster {
  trust(): ApiServerTrust
  close(): Promise<void>
}

/** Code of the error with which a write is refused that a read-only command came to. */
export const READ_ONLY = 'read_only'

/** A call that may read and never write. */
export function readOnlyCall(log: Logger, signal: AbortSignal = new AbortController().signal): Call {
  return {
    signal,
    urgency: 'user',
    log,
    async beforeWrite(what) {
      throw refusal(what)
    },
  }
}

/** A cluster that works, for planning only: nothing is written, and no budget is spent. */
export const readOnlyView = <C extends Cluster>(cluster: C): C => ({
  ...cluster,
  kubernetes: readOnlyApi(cluster.kubernetes),
  state: emptyState(),
  nowMs: afterWaits(cluster.framework),
})

/**
 * A cluster as its controllers see it, of which nothing can be written: neither cloud nor Kubernetes, and Redis is not asked. What
 * workers keep there is empty, so what they have seen before does not count.
 */
export async function openReadOnly(settings: ClusterSettings, log: Logger): Promise<ReadOnlyCluster> {
  const connection = await connect(settings.kubernetes, log)
  const kubernetes = readOnlyApi(createKubernetesApi(connection))
  const recorder = new EventRecorder({ api: kubernetes, log })
  const clouds = await openClouds(settings, { prefix: 'windlass', log, kubernetes, onlyPlans: true })
  return {
    id: settings.id,
    kubernetes,
    clouds,
    recorder,
    framework: settings.framework,
    placing: settings.placing,
    state: emptyState(),
    enqueuer: { enqueue: async () => [] },
    resyncPeriodMs: Number.POSITIVE_INFINITY,
    nowMs: afterWaits(settings.framework),
    trust: () => connection.trust,
    async close() {
      recorder.close()
      await Promise.allSettled(clouds.map((cloud) => cloud.close()))
      connection.close()
    },
  }
}

/** Past every wait before a deletion: a plan says what comes of a machine's absence if it lasts. */
const afterWaits =
  ({ nodeMonitorPeriodMs }: FrameworkSettings) =>
  () =>
    Date.now() + YOUNG_NODE_MS + nodeMonitorPeriodMs

function readOnlyApi(api: KubernetesApi): KubernetesApi {
  const refuse = (verb: string) => async () => {
    throw refusal(`${verb} an object of Kubernetes`)
  }
  return {
    get: (resource, name, call) => api.get(resource, name, call),
    list: (resource, options, call) => api.list(resource, options, call),
    create: refuse('create'),
    patch: refuse('patch'),
    patchMetadata: refuse('patch'),
    delete: refuse('delete'),
  }
}

const refusal = (what: string) =>
  new WindlassError('permanent', `${what}: not done, since this command only reads`, { code: READ_ONLY })

function emptyState(): ClusterState {
  const deleted = new Set<string>()
  return {
    nodes: {
      get: async () => undefined,
      all: async () => ({ complete: false, nodes: [] }),
      put: async () => {},
      remove: async () => {},
    },
    life: {
      versions: async () => ({
        nodes: { highest: undefined, byName: new Map() },
        services: { highest: undefined, byName: new Map() },
      }),
      begin: async () => {},
    },
    handled: { begin: async () => '', record: async () => {} },
    services: {
      get: async () => undefined,
      all: async () => new Map(),
      put: async () => {},
      remove: async () => {},
      comparisons: async () => '',
      beginComparison: async () => {},
    },
    sightings: {
      seen: async (providerIds) => providerIds.map(() => 0),
      lastSeen: async () => undefined,
      knows: async () => false,
      notFound: async (): Promise<Absence> => ({ firstAtMs: Date.now(), lastAtMs: Date.now() }),
    },
    async allowDeletion(nodeUid, nodeCount) {
      const limit = Math.max(2, Math.floor(nodeCount / 5))
      if (deleted.size >= limit && !deleted.has(nodeUid)) return { allowed: false, used: deleted.size, limit }
      deleted.add(nodeUid)
      return { allowed: true, used: deleted.size, limit }
    },
    releaseDeletions: async () => deleted.clear(),
  }
}
