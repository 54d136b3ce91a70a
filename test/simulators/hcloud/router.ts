import type { Twist } from '../exchange.ts'
import type { Check } from '../shape.ts'
import type { Action, ResourceRef } from './actions.ts'
import type { Cloud } from './cloud.ts'

export interface Call {
  params: Record<string, number>
  query: URLSearchParams
  body: unknown
  twist: Twist
}

export interface Reply {
  status: number
  body?: unknown
}

export interface Endpoint {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** with {id} for numbers */
  path: string
  /** query parameters that it knows */
  query?: readonly string[]
  /** shape of the JSON body; left out: there must be none */
  body?: Check
  answer: (cloud: Cloud, call: Call) => Reply
}

export interface Match {
  endpoint: Endpoint
  params: Record<string, number>
  label: string
}

export type Routing = Match | 'wrong-method' | 'unknown'

export function createRouter(endpoints: Endpoint[]): (method: string, path: string) => Routing {
  const table = endpoints.map((endpoint) => ({ endpoint, segments: endpoint.path.split('/') }))
  return (method, path) => {
    const segments = path.split('/')
    let pathKnown = false
    for (const { endpoint, segments: pattern } of table) {
      const params = matchSegments(pattern, segments)
      if (!params) continue
      pathKnown = true
      if (endpoint.method === method) return { endpoint, params, label: `${method} ${endpoint.path}` }
    }
    return pathKnown ? 'wrong-method' : 'unknown'
  }
}

export function begin(
  cloud: Cloud,
  call: Call,
  given: {
    command: string
    resources: ResourceRef[]
    effect?: () => void
    undo?: () => void
    durationMs?: number | undefined
  },
): Action {
  const effect = given.effect ?? (() => {})
  const atStart = cloud.options.apply_at_start && !call.twist.fails
  if (atStart) effect()
  const action = cloud.actions.start({
    command: given.command,
    resources: given.resources,
    durationMs: call.twist.endless ? Number.POSITIVE_INFINITY : (given.durationMs ?? cloud.options.action_ms),
    effect: atStart ? () => {} : effect,
    ...(given.undo ? { undo: given.undo } : {}),
    ...(call.twist.fails ? { fails: call.twist.fails } : {}),
  })
  cloud.touch()
  return action
}

function matchSegments(pattern: string[], segments: string[]): Record<string, number> | undefined {
  if (pattern.length !== segments.length) return undefined
  const params: Record<string, number> = {}
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i] ?? ''
    if (part.startsWith('{')) {
      if (!/^[1-9]\d{0,15}$/.test(segment)) return undefined
      params[part.slice(1, -1)] = Number(segment)
    } else if (part !== segment) return undefined
  }
  return params
}
