import { Redis } from 'ioredis'
import type { Call } from '../../src/call.ts'
import { createCherryProvider } from '../../src/cloud/cherry/provider.ts'
import { createHcloudProvider } from '../../src/cloud/hcloud/provider.ts'
import type { CloudProvider } from '../../src/cloud/provider.ts'
import { loadSettings } from '../../src/config/load.ts'
import type { ClusterSettings } from '../../src/config/types.ts'
import type { Cluster } from '../../src/controllers/cluster.ts'
import { controllersOf } from '../../src/controllers/registry.ts'
import { clusterState } from '../../src/controllers/state.ts'
import { aborted, kindOf, WindlassError } from '../../src/errors.ts'
import { EventRecorder } from '../../src/kubernetes/events.ts'
import { NAMESPACES } from '../../src/kubernetes/resources.ts'
import type { WorkKind } from '../../src/queue/types.ts'
import { createStores } from '../../src/state/stores.ts'
import type { World } from '../integration/world.ts'

export interface Point {
  write: number
  happens?(): Promise<void>
}

export interface ShortLived {
  /**
   * One run of a worker that has just started, and ends with it: nothing is remembered but what is in Redis. Before its write number
   * `point.write` (from 1) something happens; without anything to happen, the worker dies. Resolves to whether it died, or failed in
   * passing, or came to its end.
   */
  run(
    kind: WorkKind,
    key: string,
    point?: Point,
  ): Promise<{ writes: string[]; end: 'died' | 'failed' | 'done'; error?: unknown }>
  /** Runs until one comes to its end; throws what the last one failed with if none does, or what none would get over soon. */
  settle(kind: WorkKind, key: string, tries?: number): Promise<void>
  close(): void
}

const TRIES = 40

/** Controllers without queue and processes, so that a run can be cut off at any of its writes and many runs take seconds. */
export async function shortLived(
  world: World,
  env: Record<string, string> = {},
  flags: Record<string, string> = {},
): Promise<ShortLived> {
  const loaded = await loadSettings({
    command: 'worker',
    flags: new Map(Object.entries(flags)),
    env: { ...world.env, KUBECONFIG: world.kubeconfigFor('worker'), ...env },
  })
  if ('faults' in loaded) throw new Error(JSON.stringify(loaded.faults))
  const [settings] = loaded.settings.clusters
  if (!settings) throw new Error('no cluster')
  const redis = new Redis(world.redis.url)
  const { prefix } = loaded.settings.redis

  function openCluster(): { cluster: Cluster; close(): Promise<void> } {
    const recorder = new EventRecorder({ api: world.api, log: world.call.log })
    const clouds = openClouds(world, settings as ClusterSettings, redis, prefix)
    const { id, framework, placing } = settings as ClusterSettings
    const nowMs = () => Date.now()
    const cluster: Cluster = {
      ...{ id, framework, placing, clouds, recorder, nowMs },
      kubernetes: world.api,
      state: clusterState(createStores(redis, prefix), id, nowMs),
      enqueuer: { enqueue: async () => [] },
      resyncPeriodMs: 600_000,
    }
    return {
      cluster,
      async close() {
        await recorder.flush(1000)
        recorder.close()
        await Promise.all(clouds.map((cloud) => cloud.close()))
      },
    }
  }

  const run: ShortLived['run'] = async (kind, key, point) => {
    const { cluster, close } = openCluster()
    const writes: string[] = []
    let dead = false
    const call: Call = {
      ...world.call,
      async beforeWrite(what) {
        const reached = writes.length + 1 === point?.write
        if (reached && point?.happens) await point.happens()
        else if (reached) dead = true
        if (dead) throw aborted(`died before ${what}`)
        writes.push(what)
      },
    }
    try {
      await controllersOf(cluster)[kind]({ key, cause: 'test', urgency: 'user', call })
      return { writes, end: dead ? 'died' : 'done' }
    } catch (error) {
      if (!dead && kindOf(error) === 'permanent') throw error
      return { writes, end: dead ? 'died' : 'failed', error }
    } finally {
      await close()
    }
  }

  return {
    run,
    async settle(kind, key, tries = TRIES) {
      let error: unknown
      for (let i = 0; i < tries; i++) {
        const ran = await run(kind, key)
        if (ran.end === 'done') return
        error = ran.error
        if (error instanceof WindlassError && error.code === 'address_in_doubt') throw error
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
      throw error
    },
    close: () => redis.disconnect(),
  }
}

function openClouds(world: World, { clouds }: ClusterSettings, redis: Redis, prefix: string): CloudProvider[] {
  const shared = { redis, prefix, log: world.call.log }
  const clusterUid = async () =>
    (await world.api.get(NAMESPACES, { name: 'kube-system' }, world.call))?.metadata.uid ?? ''
  // Without the pace of the real API, which would take minutes.
  const pace = () => ({ take: async () => {}, block: async () => {} })
  return [
    ...(clouds.hcloud ? [createHcloudProvider({ settings: clouds.hcloud, ...shared })] : []),
    ...(clouds.cherry ? [createCherryProvider({ settings: clouds.cherry, clusterUid, pace, ...shared })] : []),
  ]
}
