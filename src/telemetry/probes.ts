import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from './log.ts'

export interface ProbesOptions {
  listen: { host: string; port: number }
  /** Whether the process still gets anywhere; else it should be restarted. */
  isAlive(): boolean
  /** Why there is no use in waiting for this process now, in sentences; empty when it works. */
  problems(): readonly string[]
  /** Prometheus text. */
  metrics(): Promise<string>
  log: Logger
}

export interface Probes {
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

/** Answers probes and metrics for a role that has no server of its own. On `node:http`, since the forwarder has to stay small. */
export async function serveProbes({ listen, isAlive, problems, metrics, log }: ProbesOptions): Promise<Probes> {
  const server = createServer((request, response) => {
    const answer = (status: number, type: string, body: string) =>
      response.writeHead(status, { 'content-type': type, connection: 'close' }).end(body)
    const path = request.url?.split('?')[0]
    if (request.method !== 'GET') answer(405, 'text/plain', 'only GET\n')
    else if (path === '/healthz') answer(isAlive() ? 200 : 500, 'text/plain', isAlive() ? 'ok\n' : 'no progress\n')
    else if (path === '/readyz') {
      const wrong = problems()
      answer(
        wrong.length === 0 ? 200 : 503,
        'application/json',
        JSON.stringify({ ready: wrong.length === 0, problems: wrong }),
      )
    } else if (path === '/metrics')
      metrics().then(
        (text) => answer(200, 'text/plain; version=0.0.4', text),
        () => answer(500, 'text/plain', 'metrics failed\n'),
      )
    else answer(404, 'text/plain', 'there are /healthz, /readyz and /metrics\n')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(listen.port, listen.host, resolve)
  })
  const { address, port } = server.address() as AddressInfo
  log.info({ host: address, port }, 'probes are answered')
  return {
    host: address,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}
