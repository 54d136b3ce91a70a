import swagger from '@fastify/swagger'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { dashboard, dashboardOff } from './dashboard/plugin.ts'
import type { ServerDeps } from './deps.ts'
import { createFoldedLog } from './folded-log.ts'
import { createEpochKeeper } from './ingest/epoch-keeper.ts'
import { LONGEST_BODIES, limitBodies, REQUEST_TIMEOUT_MS } from './plugins/bodies.ts'
import { answerErrors } from './plugins/errors.ts'
import { shedLoad } from './plugins/pressure.ts'
import { securityHeaders } from './plugins/security-headers.ts'
import { backlogRoute } from './routes/backlog.ts'
import { eventsRoute } from './routes/events.ts'
import { healthRoutes } from './routes/health.ts'
import { knativeRoute } from './routes/knative.ts'
import { metricsRoute } from './routes/metrics.ts'
import { openapiRoute } from './routes/openapi.ts'

export interface Server {
  readonly app: FastifyInstance
  /** Turns `/readyz` red, so that nobody sends us anything new, while everything is still answered. */
  startDraining(): void
}

/** The server without a port: requests can be injected. It opens nothing, so closing it closes nothing that it was given. */
export async function buildServer(deps: ServerDeps): Promise<Server> {
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS } = deps
  const app = fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: deps.bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    // Node takes the shorter of this and its 60 s for heads as the one for heads: it must know it before fastify sets it.
    http: { requestTimeout: requestTimeoutMs, connectionsCheckingInterval: Math.min(5000, requestTimeoutMs) },
    // While we drain, what still arrives on open connections is answered: it would only come again.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 256 },
  }).withTypeProvider<TypeBoxTypeProvider>()
  const draining = { since: undefined as number | undefined }
  const epochs = createEpochKeeper(deps)

  const refusals = createFoldedLog(deps.log)
  app.addHook('onClose', async () => refusals.close())
  // Only routes that take a body read one.
  app.removeAllContentTypeParsers()
  limitBodies(app, deps.bodiesLimitBytes ?? LONGEST_BODIES * deps.bodyLimitBytes)
  answerErrors(app, refusals)
  securityHeaders(app)
  shedLoad(app)
  app.addHook('onSend', async (_request, reply) => {
    if (draining.since !== undefined) reply.header('connection', 'close')
  })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Windlass', description: 'What the Windlass server answers.', version: '1' },
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    },
  })
  await app.register(eventsRoute, { deps, epochs, refusals })
  await app.register(knativeRoute, { deps, epochs, refusals })
  await app.register(healthRoutes, { deps, draining })
  await app.register(metricsRoute, { deps })
  await app.register(backlogRoute, { deps })
  await app.register(openapiRoute)
  if (deps.dashboard) await app.register(dashboard, { prefix: '/queues', ...deps.dashboard })
  else await app.register(dashboardOff, { prefix: '/queues' })
  await app.ready()
  return {
    app,
    startDraining() {
      draining.since ??= Date.now()
    },
  }
}
