import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance } from 'fastify'
import { sameSecret } from '../plugins/bearer.ts'
import { createFailureLimit } from './failure-limit.ts'

const FAILURES = 10
const WINDOW_MS = 60_000

/** Every request in this scope needs the login; an address that guesses is not listened to for a while, right or wrong. */
export async function requireLogin(app: FastifyInstance, login: { user: string; password: string }): Promise<void> {
  const failures = createFailureLimit({ failures: FAILURES, windowMs: WINDOW_MS })
  await app.register(basicAuth, {
    authenticate: { realm: 'Windlass queues' },
    async validate(user, password, request) {
      const right = [sameSecret(user, login.user), sameSecret(password, login.password)]
      if (right.every(Boolean)) return
      failures.note(request.ip, Date.now())
      request.log.warn({ ip: request.ip }, 'a login to the dashboard failed')
      return Object.assign(new Error('Wrong user or password'), { statusCode: 401 })
    },
  })
  app.addHook('onRequest', async (request, reply) => {
    const waitMs = failures.waitMs(request.ip, Date.now())
    if (waitMs > 0)
      return reply
        .code(429)
        .header('retry-after', Math.ceil(waitMs / 1000))
        .send({ message: 'Too many failed logins: wait a minute' })
  })
  // Answered here: the board below has an error handler of its own, which makes of every error a failure of its server.
  app.addHook('onRequest', (request, reply, done) =>
    app.basicAuth(request, reply, (error) => {
      if (error) reply.code(401).send({ message: error.message })
      else done()
    }),
  )
}
