import type { HttpRequest, HttpResponse } from '../http/client.ts'

/** The part of the HTTP client that clouds use. */
export interface Http {
  request(request: HttpRequest): Promise<HttpResponse>
  close(): void | Promise<void>
}

/** One finished request, for the metrics. */
export interface RequestReport {
  api: 'hcloud' | 'robot' | 'hcloud-metadata' | 'cherry'
  method: string
  /** Path with ids as `-`, without query. */
  endpoint: string
  /** HTTP status; absent when there was no answer. */
  status?: number
  durationMs: number
  /** What the answer says that the account has left; `credential` names it without telling it. */
  quota?: { credential: string; remaining: number }
}

/** What an answer holds; undefined when it is no JSON. */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
