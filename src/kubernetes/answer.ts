import { permanent, throttled, transient, WindlassError } from '../errors.ts'

/** The `Status` object with which the API server explains a refusal. */
export interface StatusBody {
  kind?: string
  message?: string
  reason?: string
  code?: number
  details?: { retryAfterSeconds?: number; causes?: { reason?: string; message?: string; field?: string }[] | null }
}

export interface Refusal {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Buffer
  /** RBAC verb and resource, e.g. `patch` and `services/status`. */
  verb: string
  resource: string
  /** `Service default/web`, or the collection. */
  object: string
  /** True for a JSON patch that holds a `test`. */
  tested?: boolean
}

/** What an answer other than 2xx means, as an error whose kind says what the run shall do. */
export function refusalError(refusal: Refusal, nowMs: number): WindlassError {
  const { status, verb, resource, object } = refusal
  const body = parseStatus(refusal.body)
  const said = body.message ?? excerpt(refusal.body)
  const options = { status, ...(body.reason ? { code: body.reason } : {}) }
  const retryAfterMs = retryAfter(refusal, body)
  switch (true) {
    case status === 401:
      return transient(
        `Kubernetes refused our credentials when asked to ${verb} ${object}: check the token or client certificate ` +
          `(${said})`,
        { status, code: 'Unauthorized' },
      )
    case status === 403:
      return transient(
        `Kubernetes does not allow us to ${verb} ${resource} (${object}): grant the verb "${verb}" on "${resource}" ` +
          `to our account by RBAC (${said})`,
        { status, code: 'Forbidden' },
      )
    case status === 409 && body.reason === 'AlreadyExists':
      return transient(`${object} exists already`, { status, code: 'AlreadyExists' })
    case status === 409:
      return transient(`${object} was changed by someone else in the meantime: ${said}`, { status, code: 'Conflict' })
    case status === 422 && (isFailedTest(refusal, body) || isOtherIdentity(body)):
      return transient(`${object} is not what it was when this was decided: ${said}`, { status, code: 'Conflict' })
    case status === 422 && isBeingDeleted(body):
      return transient(`${object} is being deleted and takes no finalizer any more`, { status, code: 'Deleting' })
    case status === 410:
      return transient(`The list of ${resource} continued from a place that Kubernetes no longer holds`, {
        status,
        code: 'Expired',
      })
    case status === 429 || (status === 503 && retryAfterMs !== undefined):
      return throttled(
        `Kubernetes asks us to slow down (${verb} ${object}: ${said})`,
        nowMs + (retryAfterMs ?? 1000),
        options,
      )
    case status === 400 || status === 404 || status === 405 || status === 413 || status === 415 || status === 422:
      return permanent(`Kubernetes refused to ${verb} ${object}: ${said}`, options)
    default:
      return transient(`Kubernetes answered ${status} when asked to ${verb} ${object}: ${said}`, options)
  }
}

/** Someone else changed the object since it was read: it is read again and decided on anew, and nothing has failed. */
export const isConflict = (error: unknown) => error instanceof WindlassError && error.code === 'Conflict'

function parseStatus(body: Buffer): StatusBody {
  try {
    const parsed: unknown = JSON.parse(body.toString())
    return typeof parsed === 'object' && parsed !== null && (parsed as StatusBody).kind === 'Status'
      ? (parsed as StatusBody)
      : {}
  } catch {
    return {}
  }
}

/** The API server answers a failed `test` of a JSON patch like an invalid object, but names no field. */
function isFailedTest({ tested }: Refusal, { details }: StatusBody): boolean {
  return tested === true && (details?.causes ?? []).length === 0
}

/** A patch that names a uid met an object of the same name with another. */
function isOtherIdentity({ details }: StatusBody): boolean {
  return (details?.causes ?? []).some(({ field }) => field === 'metadata.uid')
}

function isBeingDeleted({ details }: StatusBody): boolean {
  return (details?.causes ?? []).some(
    ({ field, message }) => field === 'metadata.finalizers' && message?.includes('no new finalizers') === true,
  )
}

function retryAfter({ headers }: Refusal, { details }: StatusBody): number | undefined {
  const header = Number(headers['retry-after'])
  if (headers['retry-after'] !== undefined && header >= 0) return header * 1000
  return details?.retryAfterSeconds ? details.retryAfterSeconds * 1000 : undefined
}

function excerpt(body: Buffer): string {
  const text = body.toString('utf8', 0, 200).replace(/\s+/g, ' ').trim()
  return text === '' ? 'no explanation' : text
}
