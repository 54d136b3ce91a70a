import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { transient, WindlassError } from '../../errors.ts'
import type { Backlog } from '../../queue/types.ts'
import type { ServerDeps } from '../deps.ts'
import { requireBearer } from '../plugins/bearer.ts'
import { ALWAYS } from '../plugins/pressure.ts'
import { Failure } from './failure.ts'

const Jobs = {
  due: Type.Integer({ description: 'Jobs that run, could run, or can within a minute: what to scale workers by.' }),
  waiting: Type.Integer(),
  active: Type.Integer(),
  dueSoon: Type.Integer({ description: 'Delayed jobs that are due within a minute.' }),
  delayed: Type.Integer(),
  failed: Type.Integer(),
  oldestWaitingMs: Type.Integer({ description: 'How long the oldest job that could run has waited.' }),
}

/** `GET /v1/backlog`, for autoscalers. */
export async function backlogRoute(instance: FastifyInstance, { deps }: { deps: ServerDeps }): Promise<void> {
  instance.withTypeProvider<TypeBoxTypeProvider>().get(
    '/v1/backlog',
    {
      config: ALWAYS,
      onRequest: requireBearer(deps.metricsToken),
      schema: {
        summary: 'How much work there is',
        security: [{ bearer: [] }, {}],
        response: {
          200: Type.Object(
            { ...Jobs, clusters: Type.Array(Type.Object({ cluster: Type.String(), ...Jobs })) },
            { description: 'Of all clusters together, and of each.' },
          ),
          401: Failure('Without the token.'),
          503: Failure('Redis can not be read now.'),
        },
      },
    },
    async () => {
      const clusters = await Promise.all([...deps.clusters.keys()].map(read))
      const sum = (field: keyof typeof Jobs) => clusters.reduce((total, one) => total + one[field], 0)
      return {
        due: sum('due'),
        waiting: sum('waiting'),
        active: sum('active'),
        dueSoon: sum('dueSoon'),
        delayed: sum('delayed'),
        failed: sum('failed'),
        oldestWaitingMs: Math.max(0, ...clusters.map((one) => one.oldestWaitingMs)),
        clusters,
      }
    },
  )

  async function read(cluster: string): Promise<Backlog & { due: number }> {
    try {
      const backlog = await deps.backlog(cluster)
      return { ...backlog, due: backlog.waiting + backlog.active + backlog.dueSoon }
    } catch (error) {
      if (error instanceof WindlassError) throw error
      throw transient('Redis could not be read: check that it runs', { cause: error })
    }
  }
}
