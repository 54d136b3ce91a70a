import type { Call } from '../call.ts'
import { WindlassError } from '../errors.ts'
import type { HttpRequest, HttpResponse } from '../http/client.ts'

/** The part of the HTTP client that clouds use. */
export interface Http {
  request(request: HttpRequest): Promise<HttpResponse>
  close(): void | Promise<void>
}

/** One finished request, for the metrics. */
export interface RequestReport {
  api: 'hcloud' | 'robot' | 'hcloud-metadata' | 'cherryservers'
  method: string
  /** Path with ids as `-`, without query. */
  endpoint: string
  /** HTTP status; absent when there was no answer. */
  status?: number
  durationMs: number
  /** What the answer says that the account has left; `credential` names it without telling it. */
  quota?: { credential: string; remaining: number }
}

const TIMEOUT_MS = 15_000
/** A read that failed sooner goes again; after that its caller has waited enough, and holds a place that others wait for. */
const READ_RETRY_WITHIN_MS = 2000

/** A request to an API that speaks JSON and takes a bearer token. */
export function jsonRequest({
  method,
  url,
  secret,
  version,
  body,
  call,
}: {
  method: string
  url: string
  secret: string
  version: string
  body: unknown
  call: Pick<Call, 'signal'>
}): HttpRequest {
  return {
    method,
    url,
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${secret}`,
      'user-agent': `windlass/${version}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    timeoutMs: TIMEOUT_MS,
    signal: call.signal,
  }
}

/** Whether a read may go again: nobody, or a gateway, answered it, and soon. `startedMs` is of the monotonic clock. */
export function mayReadAgain(failure: unknown, startedMs: number): boolean {
  return (
    failure instanceof WindlassError &&
    failure.kind === 'transient' &&
    (failure.status === undefined || failure.status === 502 || failure.status === 504) &&
    performance.now() - startedMs < READ_RETRY_WITHIN_MS
  )
}

/** One line for each request, in the log of the run that sent it. No `status`: there was no answer. */
export function tellRequest(
  { log }: Pick<Call, 'log'>,
  cloud: string,
  { method, endpoint, durationMs }: Pick<RequestReport, 'method' | 'endpoint' | 'durationMs'>,
  status: number | undefined,
): void {
  log.info({ cloud, request: `${method} ${endpoint}`, status, ms: Math.round(durationMs) }, 'cloud request')
}

/** What an answer holds; undefined when it is no JSON. */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
