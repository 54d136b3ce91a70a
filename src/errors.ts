/**
 * Errors are values with a kind, and the kind decides what the queue does with the run that met them:
 * - `transient`: try again with backoff (a timeout, a 5xx, a conflict);
 * - `throttled`: wait until `retryAtMs`, no attempt is spent (a rate limit, a lock at the cloud);
 * - `permanent`: a human must change something first (a bad annotation, a missing certificate);
 * - `aborted`: this run lost its claim or is being shut down, and must not write any more.
 */
export type ErrorKind = 'transient' | 'throttled' | 'permanent' | 'aborted'

export interface WindlassErrorOptions {
  cause?: unknown
  /** Unix time in milliseconds before which a retry is pointless. Only for `throttled`. */
  retryAtMs?: number
  /** The same for what a user waits for, where less is kept from that than from other work. Only for `throttled`. */
  userRetryAtMs?: number
  /** Unix time in milliseconds by which it is tried again, however long the backoff is by then. Only for `transient`. */
  retryByMs?: number
  /** The cloud's or Kubernetes' own code, e.g. `uniqueness_error`, `Conflict`. */
  code?: string
  /** HTTP status, where there was an answer. */
  status?: number
  /** The single things that are wrong, where the message joins several. */
  faults?: readonly string[]
}

/** An error whose message is a sentence that a cluster admin can act on: what, which object, what to do. */
export class WindlassError extends Error {
  override readonly name = 'WindlassError'
  readonly kind: ErrorKind
  readonly retryAtMs: number | undefined
  readonly userRetryAtMs: number | undefined
  readonly retryByMs: number | undefined
  readonly code: string | undefined
  readonly status: number | undefined
  readonly faults: readonly string[] | undefined

  constructor(kind: ErrorKind, message: string, options: WindlassErrorOptions = {}) {
    super(excerpt(message), options.cause === undefined ? undefined : { cause: options.cause })
    this.kind = kind
    this.retryAtMs = options.retryAtMs
    this.userRetryAtMs = options.userRetryAtMs ?? options.retryAtMs
    this.retryByMs = options.retryByMs
    this.code = options.code
    this.status = options.status
    this.faults = options.faults?.map((fault) => excerpt(fault))
  }
}

/** Whoever may write an annotation may write 256 KiB, and what cites it goes to logs, Events and Redis. */
export function excerpt(text: string, longest = LONGEST): string {
  const rest = text.length - longest
  return rest <= 0 ? text : `${text.slice(0, longest)}… (${rest} characters more)`
}

/** Long enough for many faults, each with what to do about it. */
const LONGEST = 4096

export const transient = (message: string, options?: WindlassErrorOptions) =>
  new WindlassError('transient', message, options)
export const permanent = (message: string, options?: WindlassErrorOptions) =>
  new WindlassError('permanent', message, options)
export const aborted = (message: string, options?: WindlassErrorOptions) =>
  new WindlassError('aborted', message, options)
export const throttled = (message: string, retryAtMs: number, options?: WindlassErrorOptions) =>
  new WindlassError('throttled', message, { ...options, retryAtMs })

/** When the first of several is worth another try. */
export function soonestRetry(errors: readonly unknown[]): Pick<WindlassErrorOptions, 'retryAtMs' | 'userRetryAtMs'> {
  const soonest = (of: 'retryAtMs' | 'userRetryAtMs') =>
    Math.min(...errors.flatMap((error) => (error instanceof WindlassError && error[of] ? [error[of]] : [])))
  const [retryAtMs, userRetryAtMs] = [soonest('retryAtMs'), soonest('userRetryAtMs')]
  return Number.isFinite(retryAtMs) ? { retryAtMs, userRetryAtMs } : {}
}

/** The kind of anything that was thrown. What nobody classified is a bug or a fault in passing: tried again, never lost. */
export function kindOf(error: unknown): ErrorKind {
  return error instanceof WindlassError ? error.kind : 'transient'
}

/** The message of anything that was thrown, with its causes, on one line. A cause that the message has in it already is not said again. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause === undefined) return error.message
  const cause = messageOf(error.cause)
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`
}
