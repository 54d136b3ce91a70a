import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { messageOf } from '../../errors.ts'
import type { ServerDeps } from '../deps.ts'
import { ALWAYS } from '../plugins/pressure.ts'

const Readiness = (description: string) =>
  Type.Object({ ready: Type.Boolean(), problems: Type.Array(Type.String()) }, { description })

/** `GET /healthz` and `GET /readyz` */
export async function healthRoutes(
  instance: FastifyInstance,
  { deps, draining }: { deps: ServerDeps; draining: { readonly since: number | undefined } },
): Promise<void> {
  const app = instance.withTypeProvider<TypeBoxTypeProvider>()

  app.get(
    '/healthz',
    {
      config: ALWAYS,
      schema: {
        summary: 'Is the process alive?',
        response: { 200: Type.Object({ alive: Type.Boolean() }, { description: 'It is.' }) },
      },
    },
    async () => ({ alive: true }),
  )

  app.get(
    '/readyz',
    {
      config: ALWAYS,
      schema: {
        summary: 'Can changes be taken?',
        response: { 200: Readiness('They can.'), 503: Readiness('Why they can not.') },
      },
    },
    async (_request, reply) => {
      const problems =
        draining.since === undefined
          ? [...(await redisProblems()), ...(deps.problems?.() ?? [])]
          : ['The server is shutting down']
      return reply.code(problems.length === 0 ? 200 : 503).send({ ready: problems.length === 0, problems })
    },
  )

  /** Probes of several sides at once ask once. */
  let asking: Promise<string[]> | undefined
  function redisProblems(): Promise<string[]> {
    asking ??= ask().finally(() => {
      asking = undefined
    })
    return asking
  }

  async function ask(): Promise<string[]> {
    const problems = await deps.stores.problems()
    if (problems.length === 0)
      await deps.stores.epochs.current().catch((error) => problems.push(`Redis does not answer: ${messageOf(error)}`))
    deps.metrics.set('windlass_redis_up', problems.length === 0 ? 1 : 0)
    return problems
  }
}
