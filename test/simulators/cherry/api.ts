import type { Answer, Face, Request } from '../exchange.ts'
import type { Refusal } from '../refusal.ts'
import type { FieldProblem } from '../shape.ts'
import type { CherryAccount } from './account.ts'
import { endpoints } from './endpoints.ts'
import { badRequest, notFound, refusal, simulated } from './refusals.ts'
import { createRouter, type Endpoint, type Match } from './router.ts'

/** The Cherry Servers API; paths are those below the host, /v1 included. */
export function cherryApi(account: () => CherryAccount, token: string): Face {
  const route = createRouter(endpoints)
  const window = new SecondWindow()

  return {
    label: (request) => {
      const found = route(request.method, request.path)
      return typeof found === 'number' ? `${request.method} ${request.path}` : found.label
    },
    failure,
    simulated,
    rateLimited: ({ reset_s }) => tooMany(reset_s),
    answer: (request, twist) => {
      if (request.headers.authorization !== `Bearer ${token}`) throw refusal(401, 'Unauthorized')
      const { requests_per_second, retry_after } = account().options
      if (!window.take(requests_per_second)) return tooMany(retry_after ? 1 : undefined)
      const { endpoint, id } = assertRouted(request, route(request.method, request.path))
      for (const key of new Set(request.query.keys())) {
        if (!endpoint.query?.includes(key)) throw badRequest(`unknown query parameter '${key}'`)
        if (request.query.getAll(key).length > 1) throw badRequest(`${key} is given more than once`)
      }
      const body = readBody(request, endpoint)
      return endpoint.answer(account(), { id, query: request.query, body, twist })
    },
  }
}

function failure({ status, message }: Refusal): Answer {
  return { status, body: { code: status, message } }
}

function tooMany(retryAfterS: number | undefined): Answer {
  return {
    ...failure(refusal(429, 'Too many requests')),
    headers: retryAfterS === undefined ? {} : { 'Retry-After': String(retryAfterS) },
  }
}

function assertRouted({ method, path }: Request, found: Match | 404 | 405): Match {
  if (found === 404) throw notFound(path)
  if (found === 405) throw refusal(405, `${method} is not allowed here`)
  return found
}

function readBody(request: Request, endpoint: Endpoint): unknown {
  if (!endpoint.body) {
    if (request.text !== '') throw badRequest('there must be no body')
    return undefined
  }
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw refusal(415, 'the body must be application/json')
  let body: unknown
  try {
    body = JSON.parse(request.text)
  } catch {
    throw badRequest('the body is not JSON')
  }
  const problems: FieldProblem[] = []
  endpoint.body(body, '', problems)
  if (problems.length > 0) {
    throw badRequest(problems.map(({ name, messages }) => `${name}: ${messages.join(', ')}`).join('; '))
  }
  return body
}

/** Lets only so many requests through within any second. */
class SecondWindow {
  #passed: number[] = []

  take(perSecond: number): boolean {
    if (perSecond === 0) return true
    const now = performance.now()
    this.#passed = this.#passed.filter((at) => now - at < 1000)
    if (this.#passed.length >= perSecond) return false
    this.#passed.push(now)
    return true
  }
}
