import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { messageOf } from '../../errors.ts'
import type { ServerDeps } from '../deps.ts'
import { requireBearer } from '../plugins/bearer.ts'
import { ALWAYS } from '../plugins/pressure.ts'
import { Failure } from './failure.ts'

/** `GET /metrics`; numbers of the queue are taken when they are asked for. */
export async function metricsRoute(instance: FastifyInstance, { deps }: { deps: ServerDeps }): Promise<void> {
  const app = instance.withTypeProvider<TypeBoxTypeProvider>()
  const { metrics } = deps
  app.get(
    '/metrics',
    {
      config: ALWAYS,
      onRequest: requireBearer(deps.metricsToken),
      schema: {
        summary: 'Metrics in the text form of Prometheus',
        security: [{ bearer: [] }, {}],
        produces: ['text/plain'],
        response: { 200: Type.String({ description: 'The metrics.' }), 401: Failure('Without the token.') },
      },
    },
    async (_request, reply) => {
      await refresh()
      return reply.type(metrics.contentType).send(await metrics.text())
    },
  )

  async function refresh(): Promise<void> {
    metrics.set('windlass_redis_up', (await deps.stores.problems()).length === 0 ? 1 : 0)
    metrics.clear('windlass_jobs')
    metrics.clear('windlass_oldest_waiting_seconds')
    metrics.clear('windlass_node_deletions_held')
    await Promise.all(
      [...deps.clusters.keys()].map(async (cluster) => {
        try {
          const { waiting, active, delayed, failed, oldestWaitingMs } = await deps.backlog(cluster)
          for (const [state, jobs] of Object.entries({ waiting, active, delayed, failed }))
            metrics.set('windlass_jobs', jobs, { cluster, state })
          metrics.set('windlass_oldest_waiting_seconds', oldestWaitingMs / 1000, { cluster })
          const held = (await deps.stores.deletions.heldSinceMs(cluster)) !== undefined
          metrics.set('windlass_node_deletions_held', held ? 1 : 0, { cluster })
        } catch (error) {
          // The other numbers are worth having, and windlass_redis_up says why these are not there.
          deps.log.warn({ cluster, reason: messageOf(error) }, 'the backlog could not be read')
        }
      }),
    )
  }
}
