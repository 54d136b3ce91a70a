import type { Answer, Face, Request, Twist } from '../exchange.ts'
import type { Refusal } from '../refusal.ts'
import { object } from '../shape.ts'
import type { Cloud } from './cloud.ts'
import { ApiError, invalidField, simulated } from './errors.ts'
import { assertKnown } from './query.ts'
import { RateLimit } from './rate-limit.ts'
import { actions } from './resources/actions.ts'
import { certificates } from './resources/certificates.ts'
import { fixed } from './resources/fixed.ts'
import { loadBalancers } from './resources/load-balancers.ts'
import { networks } from './resources/networks.ts'
import { createRouter, type Endpoint, type Match, type Routing } from './router.ts'
import { validate } from './shape.ts'

export type Tokens = Map<string, { readonly: boolean }>

/** The Cloud API behind /v1. */
export function cloudApi(cloud: () => Cloud, tokens: Tokens): Face & { refill: () => void } {
  const route = createRouter([...fixed, ...actions, ...networks, ...loadBalancers, ...certificates])
  const fill = ({ rate_limit, rate_remaining }: Cloud['options']) => new RateLimit(rate_limit, rate_remaining)
  let budget = fill(cloud().options)
  const failure = ({ status, code, message, details }: Refusal): Answer => ({
    status,
    code,
    body: { error: { code, message, details } },
  })
  const withBudget = (answer: Answer): Answer => ({ ...answer, headers: { ...budget.headers(), ...answer.headers } })

  return {
    refill: () => {
      budget = fill(cloud().options)
    },
    label: (request) => {
      const found = route(request.method, request.path)
      return typeof found === 'string' ? `${request.method} ${request.path}` : found.label
    },
    failure: (error) => withBudget(failure(error)),
    simulated,
    rateLimited: (fault) => ({
      ...failure(new ApiError('rate_limit_exceeded', 'limit of requests per hour reached', null, fault.status ?? 429)),
      headers: {
        ...budget.headers(),
        'RateLimit-Remaining': '0',
        'RateLimit-Reset': String(Math.ceil(Date.now() / 1000) + (fault.reset_s ?? 1)),
      },
    }),
    answer: (request, twist) => {
      const token = tokens.get(/^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '')
      if (!token) throw new ApiError('unauthorized', 'unable to authenticate')
      if (!budget.take())
        throw new ApiError('rate_limit_exceeded', `limit of ${budget.limit} requests per hour reached`)
      const { endpoint, params } = assertRouted(request, route(request.method, request.path))
      if (token.readonly && request.method !== 'GET') {
        throw new ApiError('token_readonly', 'the token is only allowed to perform GET requests')
      }
      assertKnown(request.query, endpoint.query ?? [])
      const body = readBody(request, endpoint)
      return withBudget(endpoint.answer(cloud(), { params, query: request.query, body, twist: twist satisfies Twist }))
    },
  }
}

function assertRouted(request: Request, found: Routing): Match {
  if (found === 'unknown') throw new ApiError('not_found', `${request.path} not found`)
  if (found === 'wrong-method') throw new ApiError('method_not_allowed', `${request.method} is not allowed here`)
  return found
}

function readBody(request: Request, endpoint: Endpoint): unknown {
  if (request.text === '') {
    if (endpoint.body) throw new ApiError('json_error', 'a JSON body is needed')
    return undefined
  }
  if (request.method === 'GET' || request.method === 'DELETE') throw invalidField('body', 'must be empty')
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new ApiError('unsupported_media_type', 'the body must be application/json')
  let body: unknown
  try {
    body = JSON.parse(request.text)
  } catch {
    throw new ApiError('json_error', 'invalid JSON input in your request')
  }
  validate(endpoint.body ?? object({}), body)
  return body
}
