import type { ClusterSettings, Settings } from '../config/types.ts'
import { STANDING_WORK } from '../controllers/registry.ts'
import { backlog } from '../queue/backlog.ts'
import { openClusterQueues } from '../queue/cluster-queue.ts'
import { createEnqueuer } from '../queue/enqueue.ts'
import { producerConnection, whyAway } from '../queue/redis.ts'
import { ensureStanding } from '../queue/schedulers.ts'
import { startServer } from '../server/listen.ts'
import { createStores } from '../state/stores.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { listening } from './listening.ts'
import { redisAtStart } from './redis-at-start.ts'
import type { Role } from './role.ts'

export interface ServerRole extends Role {
  readonly host: string
  readonly port: number
}

/** Endpoints need so long to hear that this one goes away. */
const NOTICE_MS = 500

export interface ServerRoleOptions {
  listen: { host: string; port: number }
  /** False where the only client is in this process, and hears of the end first. */
  notice?: boolean
  /** Of what runs beside it in this process. */
  problems?(): readonly string[]
}

export async function startServerRole(
  settings: Settings,
  { listen, notice = true, problems }: ServerRoleOptions,
  log: Logger,
  metrics: Metrics,
): Promise<ServerRole> {
  const { prefix } = settings.redis
  const redis = producerConnection(settings.redis, 'server-state', { gather: true })
  const queueRedis = producerConnection(settings.redis, 'server-queue')
  const queues = openClusterQueues(queueRedis, prefix)
  const close = async () => {
    await queues.close()
    redis.disconnect()
    queueRedis.disconnect()
  }
  try {
    await redisAtStart(redis, log)
    const ids = settings.clusters.map(({ id }) => id)
    const { dashboard, metricsToken, bodyLimitBytes } = settings.server
    const stores = createStores(redis, prefix)
    const serving = await listening('WINDLASS_LISTEN', listen, () =>
      startServer(
        {
          clusters: new Map(
            settings.clusters.map((one) => [
              one.id,
              { webhookKeys: one.webhookKeys, knative: one.knative, routes: routesOn(one), placing: one.placing },
            ]),
          ),
          enqueuer: createEnqueuer(queues),
          stores: {
            ...stores,
            // A command that found no connection does not know why there is none.
            problems: async () => (redis.status === 'ready' ? await stores.problems() : [whyAway(redis)]),
          },
          assertSchedules: async () => {
            for (const id of ids) await ensureStanding(queues.of(id), STANDING_WORK)
          },
          backlog: (cluster) => backlog(queues.of(cluster)),
          metrics,
          log,
          bodyLimitBytes,
          metricsToken,
          problems,
          dashboard: dashboard && { ...dashboard, queues: ids.map((id) => queues.of(id).queue) },
        },
        listen,
      ),
    )
    let stopping: Promise<void> | undefined
    return {
      host: serving.host,
      port: serving.port,
      stop: () =>
        (stopping ??= serving
          .close({ noticeMs: notice ? NOTICE_MS : 0, limitMs: settings.worker.graceMs })
          .then(close)),
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Whether node changes that concern pod routes may be worth a job. A server of its own knows no cloud's settings: the worker decides. */
function routesOn({ clouds: { hcloud }, framework }: ClusterSettings): boolean {
  const cloudHasRoutes = hcloud === undefined || (hcloud.network !== undefined && hcloud.networkRoutesEnabled)
  return framework.configureCloudRoutes && framework.controllers.has('node-route-controller') && cloudHasRoutes
}
