import type { Listener } from '../model.ts'
import { DEFAULT_HTTP } from '../parse.ts'

export interface ListenerChanges {
  /** In the order in which they shall be carried out. */
  steps: (
    | { kind: 'add'; listener: Listener }
    | { kind: 'update'; listener: Listener; observed: Listener }
    | { kind: 'delete'; listener: Listener }
  )[]
  /** Wanted listeners that the type of the load balancer has no room for. */
  leftOut: Listener[]
}

/** Updates, then additions as far as there is room, with deletions just where room is needed, the rest of them last. */
export function diffListeners(
  observed: readonly Listener[],
  wanted: readonly Listener[],
  maxListeners: number,
): ListenerChanges {
  const observedBy = new Map(observed.map((listener) => [listener.listenPort, listener]))
  const kept = wanted.filter(({ listenPort }) => observedBy.has(listenPort))
  const fresh = wanted.filter(({ listenPort }) => !observedBy.has(listenPort))
  const room = Math.max(0, maxListeners - kept.length)
  const wantedPorts = new Set(wanted.map(({ listenPort }) => listenPort))
  const deletions = observed.filter(({ listenPort }) => !wantedPorts.has(listenPort))
  const steps: ListenerChanges['steps'] = []
  for (const listener of kept) {
    const before = observedBy.get(listener.listenPort)
    if (before && !sameListener(before, listener)) steps.push({ kind: 'update', listener, observed: before })
  }
  let count = observed.length
  for (const listener of fresh.slice(0, room)) {
    const gone = count >= maxListeners ? deletions.shift() : undefined
    if (gone) steps.push({ kind: 'delete', listener: gone })
    else count++
    steps.push({ kind: 'add', listener })
  }
  for (const listener of deletions) steps.push({ kind: 'delete', listener })
  return { steps, leftOut: fresh.slice(room) }
}

function sameListener(a: Listener, b: Listener): boolean {
  return JSON.stringify(comparable(a)) === JSON.stringify(comparable(b))
}

/**
 * A listener as the API takes it, in full, so that what is not asked for goes back to its default. Fields whose default the API need
 * not know are only sent where they say something; `observed` is what stands there now.
 */
export function listenerBody(listener: Listener, observed?: Listener): Record<string, unknown> {
  const { http, healthCheck } = listener
  const isHttps = listener.protocol === 'https'
  const check = healthCheck.http
  const seen = observed?.healthCheck.http
  return {
    protocol: listener.protocol,
    listen_port: listener.listenPort,
    destination_port: listener.destinationPort,
    proxyprotocol: listener.proxyProtocol,
    ...(http
      ? {
          http: {
            cookie_name: http.cookieName,
            cookie_lifetime: http.cookieLifetime,
            // Only https has these; what it leaves behind must be taken away by name.
            ...(isHttps || observed?.http?.certificates.length ? { certificates: http.certificates } : {}),
            ...(isHttps || observed?.http?.redirectHttp ? { redirect_http: http.redirectHttp } : {}),
            sticky_sessions: http.stickySessions,
            ...(http.timeoutIdle !== undefined || observed?.http?.timeoutIdle !== undefined
              ? { timeout_idle: http.timeoutIdle ?? DEFAULT_HTTP.timeoutIdle }
              : {}),
          },
        }
      : {}),
    health_check: {
      protocol: healthCheck.protocol,
      port: healthCheck.port,
      interval: healthCheck.interval,
      timeout: healthCheck.timeout,
      retries: healthCheck.retries,
      ...(check
        ? {
            http: {
              ...(check.domain !== '' || seen?.domain ? { domain: check.domain } : {}),
              path: check.path,
              ...(seen?.response ? { response: check.response } : {}),
              status_codes: check.statusCodes,
              tls: check.tls,
            },
          }
        : {}),
    },
  }
}

function comparable({ protocol, listenPort, destinationPort, proxyProtocol, http, healthCheck }: Listener): unknown {
  const check = healthCheck.http
  return [
    [protocol, listenPort, destinationPort, proxyProtocol],
    http && [
      [http.cookieName, http.cookieLifetime, http.timeoutIdle ?? DEFAULT_HTTP.timeoutIdle],
      [http.redirectHttp, http.stickySessions],
      [...http.certificates].sort((a, b) => a - b),
    ],
    [healthCheck.protocol, healthCheck.port, healthCheck.interval, healthCheck.timeout, healthCheck.retries],
    check && [check.domain, check.path, check.response, [...check.statusCodes].sort(), check.tls],
  ]
}
