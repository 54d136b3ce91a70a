import type { AddressInfo } from 'node:net'
import { buildServer } from './app.ts'
import { trackConnections } from './connections.ts'
import type { ServerDeps } from './deps.ts'

export interface Listening {
  host: string
  port: number
  /**
   * Ends serving without cutting a request in flight: readiness turns red, the rest of the world gets `noticeMs` to look elsewhere, then no
   * new connection is taken, what is being answered is answered, and idle connections go. After `limitMs` from then on all are cut.
   */
  close(options: { noticeMs: number; limitMs: number }): Promise<void>
}

/** Serves until it is closed. Port 0 is chosen by the OS. */
export async function startServer(deps: ServerDeps, listen: { host: string; port: number }): Promise<Listening> {
  const { app, startDraining } = await buildServer(deps)
  const connections = trackConnections(app.server)
  await app.listen(listen)
  const { address, port } = app.server.address() as AddressInfo
  deps.log.info({ host: address, port }, 'the server listens')

  async function close({ noticeMs, limitMs }: { noticeMs: number; limitMs: number }): Promise<void> {
    startDraining()
    if (noticeMs > 0) await new Promise((resolve) => setTimeout(resolve, noticeMs))
    const closed = app.close()
    // A connection that becomes idle now would be kept alive for its client's sake; fastify looks only once.
    const sweep = setInterval(connections.closeIdle, 50)
    connections.closeIdle()
    const limit = setTimeout(() => {
      deps.log.warn({ connections: connections.count() }, 'requests were cut at the end of the grace period')
      connections.closeAll()
    }, limitMs)
    try {
      await closed
    } finally {
      clearInterval(sweep)
      clearTimeout(limit)
    }
  }

  let closing: Promise<void> | undefined
  return { host: address, port, close: (options) => (closing ??= close(options)) }
}
