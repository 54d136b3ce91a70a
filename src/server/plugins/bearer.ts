import { createHash, timingSafeEqual } from 'node:crypto'
import type { onRequestAsyncHookHandler } from 'fastify'

/** A hook that lets only requests with this token pass; all, if there is none. */
export function requireBearer(token: string | undefined): onRequestAsyncHookHandler {
  return async (request, reply) => {
    if (token === undefined || sameSecret(request.headers.authorization ?? '', `Bearer ${token}`)) return
    return reply
      .code(401)
      .header('www-authenticate', 'Bearer realm="Windlass"')
      .send({ message: 'A bearer token is needed: the one that the server has for its metrics' })
  }
}

/** Compares in a time that tells nothing about either. */
export function sameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(digest(given), digest(wanted))
}

const digest = (text: string) => createHash('sha256').update(text).digest()
