import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Request } from './exchange.ts'

export function answering(serve: (message: IncomingMessage, response: ServerResponse) => Promise<void>) {
  return (message: IncomingMessage, response: ServerResponse): void => {
    serve(message, response).catch((error: unknown) => {
      // a fault of the simulator itself: loud, so that no test takes it for the cloud's answer
      response.writeHead(599, { 'Content-Type': 'text/plain' }).end(`simulator: ${String(error)}`)
    })
  }
}

export function asRequest(message: IncomingMessage, url: URL, path: string, text: string): Request {
  return {
    method: message.method ?? 'GET',
    path,
    query: url.searchParams,
    headers: message.headers,
    text,
    remoteAddress: message.socket.remoteAddress ?? '',
  }
}

export async function bodyOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

export function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

export function shut(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
