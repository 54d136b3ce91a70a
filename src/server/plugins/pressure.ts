import underPressure from '@fastify/under-pressure'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    pressureHandler?: () => undefined
  }
}

/** Mean delay of the event loop over a second from which on requests are refused. */
const MAX_EVENT_LOOP_DELAY_MS = 1000

/** Says 503 with Retry-After while the process can't keep up; routes with `ALWAYS` are answered all the same. */
export function shedLoad(app: FastifyInstance): void {
  app.register(underPressure, {
    maxEventLoopDelay: MAX_EVENT_LOOP_DELAY_MS,
    retryAfter: 1,
    message: 'The server is overloaded: try again in a moment',
  })
}

/** Route config of what must be answered under load too. */
export const ALWAYS = { pressureHandler: () => undefined }
