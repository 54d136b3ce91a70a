import type { Settings } from '../config/types.ts'
import { startControlPlaneIp } from '../controllers/control-plane-ip/controller.ts'
import { createHealth } from '../controllers/control-plane-ip/health.ts'
import type { Reconcile } from '../controllers/reconcile.ts'
import { controllersOf, STANDING_WORK } from '../controllers/registry.ts'
import { tellObject } from '../controllers/tell-object.ts'
import { messageOf, throttled } from '../errors.ts'
import { openClusterQueues } from '../queue/cluster-queue.ts'
import { createEnqueuer } from '../queue/enqueue.ts'
import { producerConnection, whyAway } from '../queue/redis.ts'
import type { WorkKind } from '../queue/types.ts'
import { createStores } from '../state/stores.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { inSpan } from '../telemetry/traces.ts'
import { type Handler, type RunEnded, startWorker } from '../worker/host.ts'
import { type OpenCluster, openCluster } from './cluster.ts'
import { FirstContact } from './first-contact.ts'
import { GUARDED_RETRY_MS, type Guarded, guardCluster } from './guarded-cluster.ts'
import { resyncUnderNewSettings, watchCredentials } from './new-settings.ts'
import { readOnlyCall } from './read-only.ts'
import { redisAtStart } from './redis-at-start.ts'
import type { Role } from './role.ts'
import { secretFaults } from './secret-faults.ts'

export interface WorkerRole extends Role {
  isAlive(): boolean
  problems(): string[]
}

interface Served extends Partial<Omit<Guarded<OpenCluster>, 'cluster'>> {
  cluster: OpenCluster
  contact: FirstContact
  controllers: Record<WorkKind, Reconcile>
}

/** While a cloud has not answered once, the work of its cluster looks again after this time. */
const UNCONTACTED_RETRY_MS = 2000
/** A worker without any sign of life from Redis for so long has gone deaf, and should be restarted. */
const DEAF_MS = 120_000

/**
 * Runs the controllers of all clusters. With one cluster a credential that is refused at first contact throws, so that the process ends;
 * with several the bad one waits (readiness red) while the others go on.
 */
export async function startWorkerRole(settings: Settings, log: Logger, metrics: Metrics): Promise<WorkerRole> {
  const redis = producerConnection(settings.redis, 'worker-state', { gather: true })
  const queueRedis = producerConnection(settings.redis, 'worker-queue')
  const queues = openClusterQueues(queueRedis, settings.redis.prefix)
  const clusters: Served[] = []
  /** Clusters that could not be opened, and why: their work waits for a worker with better settings. */
  const unopened: string[] = []
  const watched: (() => void)[] = []
  const close = async () => {
    for (const end of watched) end()
    for (const { contact, guard } of clusters) {
      contact.stop()
      guard?.stop()
    }
    await Promise.allSettled(clusters.map(({ cluster }) => cluster.close()))
    await queues.close()
    redis.disconnect()
    queueRedis.disconnect()
  }
  try {
    await redisAtStart(redis, log)
    const stores = createStores(redis, settings.redis.prefix)
    const enqueuer = createEnqueuer(queues)
    for (const one of settings.clusters) {
      const clusterLog = log.child({ cluster: one.id })
      let cluster: OpenCluster
      try {
        cluster = await openCluster(one, {
          redis,
          prefix: settings.redis.prefix,
          stores,
          enqueuer,
          resyncPeriodMs: settings.worker.resyncPeriodMs,
          log,
          metrics,
        })
      } catch (error) {
        if (settings.clusters.length === 1) throw error
        unopened.push(`Cluster ${one.id}: ${messageOf(error)}`)
        clusterLog.error({ error: messageOf(error) }, 'a cluster can not be worked for, the others go on')
        continue
      }
      const contact = new FirstContact(cluster, clusterLog)
      const guarded = one.ignoreOtherController ? undefined : guardCluster(cluster, clusterLog)
      clusters.push({ cluster, contact, ...guarded, controllers: controllersOf(guarded?.cluster ?? cluster) })
      const { resyncPeriodMs } = settings.worker
      const parts = { applied: stores.settings, enqueuer, resyncPeriodMs, log: clusterLog }
      await resyncUnderNewSettings(one, parts)
      watched.push(watchCredentials(one, parts))
    }
    await Promise.all([contactAll(clusters, log), ...clusters.map(({ guard }) => guard?.look())])
    for (const { guard } of clusters) void guard?.watch()
  } catch (error) {
    await close()
    throw error
  }

  for (const { cluster } of clusters)
    for (const name of cluster.framework.controllers)
      metrics.set('running_managed_controllers', 1, { name, manager: 'cloud-controller-manager' })

  const byId = new Map(clusters.map((one) => [one.cluster.id, one]))
  const handler =
    (kind: WorkKind): Handler =>
    async (run) => {
      const served = byId.get(run.cluster)
      if (!served) return {}
      const { contact, guard, controllers, guarded = (call) => call } = served
      if (contact.obstacle !== undefined)
        throw throttled(
          `Cluster ${run.cluster} waits for its cloud: ${contact.obstacle}`,
          Date.now() + UNCONTACTED_RETRY_MS,
        )
      if (guard?.problem !== undefined)
        throw throttled(`Cluster ${run.cluster} waits: ${guard.problem}`, Date.now() + GUARDED_RETRY_MS)
      const { cluster, key, cause, attempt, traceparent: parent } = run
      const attributes = {
        'windlass.cluster': cluster,
        'windlass.object': key,
        'windlass.cause': cause,
        'windlass.attempt': attempt,
      }
      return await inSpan(`reconcile ${kind}`, { kind: 'CONSUMER', parent, attributes }, () =>
        controllers[kind]({ ...run, call: guarded(run.call) }),
      )
    }
  const stopped = new AbortController()
  const host = startWorker({
    redis: settings.redis,
    clusters: [...byId.keys()],
    handlers: {
      node: handler('node'),
      service: handler('service'),
      targets: handler('targets'),
      route: handler('route'),
      addresses: handler('addresses'),
      resync: handler('resync'),
    },
    concurrency: settings.worker.concurrency,
    log,
    graceMs: settings.worker.graceMs,
    untilIdle: settings.worker.untilIdle,
    standing: STANDING_WORK,
    onRun(ended) {
      countRun(metrics, ended)
      const cluster = byId.get(ended.cluster)?.cluster
      if (cluster && ended.givenUp !== undefined) {
        const call = readOnlyCall(log, stopped.signal)
        void tellObject(cluster, ended.key, { reason: 'GivenUp', message: ended.givenUp }, call)
      }
    },
  })

  // A loop that lasts, for clusters of which an address is kept on the control plane.
  const residents = settings.worker.untilIdle
    ? []
    : clusters.flatMap(({ cluster, guard }) =>
        cluster.clouds.flatMap(({ controlPlaneAddress: address }) =>
          address
            ? [
                startControlPlaneIp({
                  cluster,
                  address,
                  redis,
                  prefix: settings.redis.prefix,
                  log: log.child({ cluster: cluster.id }),
                  health: createHealth(() => cluster.trust()),
                  problem: () => guard?.rival,
                }),
              ]
            : [],
        ),
      )

  let stopping: Promise<void> | undefined
  const stop = async () => {
    stopped.abort()
    await Promise.all([host.stop(), ...residents.map((resident) => resident.stop())])
    await close()
  }
  return {
    ended: settings.worker.untilIdle ? host.idle : undefined,
    stop: () => (stopping ??= stop()),
    // Without Redis there is no progress to make, and a restart would not bring it back.
    isAlive: () => redis.status !== 'ready' || Date.now() - host.stats().lastProgressMs < DEAF_MS,
    problems: () => [
      ...(redis.status === 'ready' ? [] : [whyAway(redis)]),
      ...unopened,
      ...settings.clusters.flatMap(secretFaults),
      ...clusters.flatMap(({ cluster, contact, guard }) =>
        [contact.problem, guard?.problem, ...cluster.refusals()].flatMap((problem) =>
          problem ? [`Cluster ${cluster.id}: ${problem}`] : [],
        ),
      ),
    ],
  }
}

async function contactAll(
  clusters: readonly { cluster: OpenCluster; contact: FirstContact }[],
  log: Logger,
): Promise<void> {
  const answers = await Promise.allSettled(clusters.map(({ contact }) => contact.attempt()))
  const refused = answers.find((answer) => answer.status === 'rejected')
  if (refused && clusters.length === 1) throw refused.reason
  for (const { cluster, contact } of clusters) {
    if (contact.problem === undefined) continue
    log.error({ cluster: cluster.id, problem: contact.problem }, 'a cluster waits for its cloud')
    void contact.persist()
  }
}

function countRun(metrics: Metrics, { cluster, kind, outcome, ms, waitedMs }: RunEnded): void {
  metrics.increment('windlass_runs_total', 1, { cluster, kind, outcome })
  metrics.observe('windlass_run_duration_seconds', ms / 1000, { cluster, kind })
  metrics.observe('workqueue_work_duration_seconds', ms / 1000, { name: kind })
  if (outcome === 'retry') metrics.increment('workqueue_retries_total', 1, { name: kind })
  if (outcome === 'lost') metrics.increment('windlass_claims_lost_total', 1, { cluster })
  if (waitedMs === undefined) return
  metrics.observe('windlass_change_to_run_seconds', waitedMs / 1000, { cluster, kind })
  metrics.observe('workqueue_queue_duration_seconds', waitedMs / 1000, { name: kind })
}
