import { Agent, request } from 'node:https'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/** Whom to believe to be the cluster's API server: nothing in it is secret. */
export interface ApiServerTrust {
  /** Host of the API server's URL: the name that its certificate must have, whatever address was asked. */
  host: string
  ca?: string | Buffer
  insecureSkipVerify?: boolean
}

export interface Probe {
  address: string
  port: number
  timeoutMs: number
  signal: AbortSignal
}

/** True when the cluster's API server answers there. */
export type Health = (probe: Probe) => Promise<boolean>

/** 401 and 403: an API server that lets nobody unnamed in is up, and a check has no name. */
const ALIVE = new Set([200, 401, 403])

/**
 * Asks `/healthz` on a connection of its own, so that it says who has the address now. No credentials are sent: whoever takes an
 * address over would be given the cluster.
 */
export function createHealth(trust: () => ApiServerTrust): Health {
  return ({ address, port, timeoutMs, signal }) => {
    const { host, ca, insecureSkipVerify } = trust()
    const agent = new Agent({ keepAlive: false })
    return new Promise((resolve) => {
      const outgoing = request(
        {
          host: address,
          port,
          path: '/healthz',
          agent,
          signal,
          headers: { 'user-agent': 'windlass-health-check' },
          ...(ca === undefined ? {} : { ca }),
          ...(insecureSkipVerify ? { rejectUnauthorized: false } : {}),
          checkServerIdentity: (_asked: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate),
        },
        (response) => {
          response.resume()
          finish(ALIVE.has(response.statusCode ?? 0))
        },
      )
      const timer = setTimeout(() => finish(false), timeoutMs)
      const finish = (healthy: boolean) => {
        clearTimeout(timer)
        resolve(healthy)
        outgoing.destroy()
        agent.destroy()
      }
      outgoing.once('error', () => finish(false))
      outgoing.on('error', () => {})
      outgoing.end()
    })
  }
}
