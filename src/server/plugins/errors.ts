import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify'
import { messageOf, WindlassError } from '../../errors.ts'
import type { FoldedLog } from '../folded-log.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of a route with a body: the content types that it takes, for people. */
    contentTypes?: string
  }
}

/** Seconds after which it is worth asking again when Redis could not be used. */
const RETRY_AFTER_S = 2

/** Every error is answered as `{ message }`, a sentence that says what to do. What is not the client's fault is logged. */
export function answerErrors(app: FastifyInstance, refusals: FoldedLog): void {
  app.setErrorHandler((error: FastifyError | WindlassError, request, reply) => {
    if (error instanceof WindlassError) {
      const [path, reason] = [request.routeOptions.url, messageOf(error)]
      refusals.warn(`${path} ${reason}`, { path, reason }, 'a request could not be served now')
      // Fastify closes after a body that failed, and the sender that is still writing would lose the answer.
      reply.removeHeader('connection')
      const seconds = error.retryAtMs === undefined ? RETRY_AFTER_S : Math.ceil((error.retryAtMs - Date.now()) / 1000)
      return reply.code(503).header('retry-after', Math.max(1, seconds)).send({ message: error.message })
    }
    const status = error.statusCode ?? 500
    if (status >= 500 && status !== 503) {
      request.log.error({ path: request.routeOptions.url, err: error }, 'a request failed')
      return reply.code(500).send({ message: 'The server failed; its log says more' })
    }
    return reply.code(status).send({ message: sentence(error, request.routeOptions) })
  })
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ message: 'Nothing is served here: /openapi.json lists what is' }),
  )
}

function sentence({ code, message }: FastifyError, { bodyLimit, config }: FastifyRequest['routeOptions']): string {
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return `The body is larger than ${bodyLimit} bytes: send fewer events at once`
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' && config.contentTypes)
    return `The content type must be ${config.contentTypes}`
  return message
}
