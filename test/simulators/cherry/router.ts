import type { Twist } from '../exchange.ts'
import type { Check } from '../shape.ts'
import type { CherryAccount } from './account.ts'

export interface Call {
  /** {id} of the path */
  id: string
  query: URLSearchParams
  body: unknown
  twist: Twist
}

export interface Reply {
  status: number
  body?: unknown
  headers?: Record<string, string>
}

export interface Endpoint {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** behind /v1, with {id} for a number or a UUID */
  path: string
  /** query parameters that it knows */
  query?: readonly string[]
  /** shape of the JSON body; left out: there must be none */
  body?: Check
  answer: (account: CherryAccount, call: Call) => Reply
}

export interface Match {
  endpoint: Endpoint
  id: string
  label: string
}

export function createRouter(endpoints: readonly Endpoint[]): (method: string, path: string) => Match | 405 | 404 {
  const table = endpoints.map((endpoint) => ({ endpoint, pattern: patternOf(endpoint.path) }))
  return (method, path) => {
    let known = false
    for (const { endpoint, pattern } of table) {
      const found = pattern.exec(path)
      if (!found) continue
      known = true
      if (endpoint.method === method) return { endpoint, id: found[1] ?? '', label: `${method} ${endpoint.path}` }
    }
    return known ? 405 : 404
  }
}

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'

function patternOf(path: string): RegExp {
  return new RegExp(`^/v1${path.replace('{id}', `(\\d+|${uuid})`)}$`)
}
