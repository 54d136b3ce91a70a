import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'

/** Nothing but the dashboard is made for browsers: no page may load or frame anything from here. */
export function securityHeaders(app: FastifyInstance): void {
  app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    // Whether there is TLS is the business of what stands in front.
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
  })
}
