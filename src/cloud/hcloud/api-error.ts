import { permanent, throttled, transient, WindlassError } from '../../errors.ts'
import { list, record, text } from './parse.ts'

/** What an answer of the API that is no success comes to. `what` names the request for people: `creating load balancer "web"`. */
export function errorOf(answer: {
  status: number
  json: unknown
  correlationId?: string
  what: string
}): WindlassError {
  const { status, json, correlationId, what } = answer
  const error = record(record(json).error)
  const code = text(error.code)
  const trace = correlationId ? `, ${correlationId}` : ''
  const options = { status, ...(code ? { code } : {}) }
  if (code === undefined) {
    const message = `Hetzner Cloud, ${what}: server responded with status code ${status}${correlationId ? ` (${correlationId})` : ''}`
    if (status === 401 || status === 403) return permanent(`${message}. Check HCLOUD_TOKEN.`, options)
    if (status === 429)
      return throttled(message, Date.now() + RATE_LIMIT_WAIT_MS, { ...options, code: 'rate_limit_exceeded' })
    return transient(message, options)
  }
  const message = `Hetzner Cloud, ${what}: ${text(error.message) ?? 'refused'} (${code}${trace})${fieldsOf(error)}`
  if (status === 429 || code === 'rate_limit_exceeded')
    return throttled(message, Date.now() + RATE_LIMIT_WAIT_MS, options)
  if (code === 'token_readonly')
    return permanent(
      `${message}. The token may only read: give HCLOUD_TOKEN one with read and write permission.`,
      options,
    )
  if (status === 401 || code === 'unauthorized')
    return permanent(`${message}. The token was refused: check HCLOUD_TOKEN.`, options)
  if (BUSY.has(code) || status === 409 || status === 423)
    return code === 'uniqueness_error' || code === 'protected'
      ? permanent(message, options)
      : throttled(message, Date.now() + BUSY_WAIT_MS, options)
  if (status >= 500 || TRANSIENT.has(code) || status === 408) return transient(message, options)
  if (status === 404 || code === 'not_found') return transient(message, { ...options, code: 'not_found' })
  return permanent(message, options)
}

export function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof WindlassError && error.code !== undefined && codes.includes(error.code)
}

export const isNotFound = (error: unknown) => isCode(error, 'not_found')

/** The resource has another action running: the request was refused, not carried out, and may go again in a moment. */
export const isBusy = (error: unknown) => isCode(error, ...BUSY)

/** Names of the fields that `invalid_input` is about, as they stand in the message. */
export function invalidFields(error: WindlassError): string[] {
  return /: invalid fields: (.*)$/.exec(error.message)?.[1]?.match(/[^\s,()]+(?= \()/g) ?? []
}

const BUSY = new Set(['conflict', 'locked'])
const BUSY_WAIT_MS = 3000
const RATE_LIMIT_WAIT_MS = 10_000
const TRANSIENT = new Set([
  'maintenance',
  'unavailable',
  'service_error',
  'server_error',
  'bad_gateway',
  'timeout',
  'resource_unavailable',
  'robot_unavailable',
  'no_space_left_in_location',
])

function fieldsOf(error: Record<string, unknown>): string {
  const fields = list(record(error.details).fields).map((json) => {
    const field = record(json)
    const messages = list(field.messages).flatMap((one) => text(one) ?? [])
    return `${text(field.name) ?? 'unknown'} (${messages.join(', ') || 'invalid'})`
  })
  const limits = list(record(error.details).limits).flatMap((json) => text(record(json).name) ?? [])
  if (fields.length > 0) return `: invalid fields: ${fields.join(', ')}`
  return limits.length > 0 ? `: limits reached: ${limits.join(', ')}` : ''
}
