import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface Connections {
  count(): number
  /** Ends connections on which nothing is being asked or answered. */
  closeIdle(): void
  closeAll(): void
}

/**
 * Node's own notion of an idle connection leaves out those that were opened and never used, as browsers and load balancers do in advance;
 * they would hold up the end for a minute.
 */
export function trackConnections(server: Server): Connections {
  /** Requests being answered, and the bytes that had come when the last of them was. */
  const sockets = new Map<Socket, { active: number; bytesRead: number }>()
  server.on('connection', (socket) => {
    sockets.set(socket, { active: 0, bytesRead: 0 })
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    const state = sockets.get(socket)
    if (!state) return
    state.active++
    response.once('close', () => {
      state.active--
      state.bytesRead = socket.bytesRead
    })
  })
  return {
    count: () => sockets.size,
    closeIdle() {
      for (const [socket, { active, bytesRead }] of sockets)
        if (active === 0 && socket.bytesRead === bytesRead) socket.destroy()
    },
    closeAll() {
      for (const socket of sockets.keys()) socket.destroy()
    },
  }
}
