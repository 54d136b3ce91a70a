import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cloudApi, type Tokens } from './api.ts'
import { Cloud } from './cloud.ts'
import { answerControl, type Control, createControl } from './control.ts'
import { exchange, type Face, type Request } from './exchange.ts'
import { Hub } from './hub.ts'
import { metadataService } from './metadata.ts'
import type { Options } from './model.ts'
import { type RobotCredentials, robotWebService } from './robot.ts'

export interface SimulatorSettings {
  token?: string
  robot?: RobotCredentials
  options?: Partial<Options>
  /** 0, the default: any free port */
  port?: number
  robotPort?: number
}

export interface HcloudSimulator {
  /** http://127.0.0.1:PORT */
  url: string
  apiUrl: string
  robotUrl: string
  metadataUrl: string
  control: Control
  close: () => Promise<void>
}

const metadataPrefix = '/_metadata/hetzner/v1/metadata'

/** Hetzner's Cloud API, Robot web service and metadata service on loopback. */
export async function startHcloudSimulator(settings: SimulatorSettings = {}): Promise<HcloudSimulator> {
  const token = settings.token ?? 'k'.repeat(64)
  const tokens: Tokens = new Map([[token, { readonly: false }]])
  let hub = new Hub(new Cloud(settings.options ?? {}))
  const cloud = (): Cloud => hub.cloud
  const api = cloudApi(cloud, tokens)
  const credentials = settings.robot ?? { user: 'robot', password: 'secret' }
  let robot = robotWebService(cloud, credentials)
  const metadata = metadataService(cloud)
  const control = createControl(
    () => hub,
    tokens,
    () => {
      hub.cloud.actions.stop()
      hub = new Hub(new Cloud(settings.options ?? {}))
      tokens.clear()
      tokens.set(token, { readonly: false })
      api.refill()
      robot = robotWebService(cloud, credentials)
    },
  )

  const serve = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(message.url ?? '/', 'http://127.0.0.1')
    const text = await bodyOf(message)
    const method = message.method ?? 'GET'
    if (url.pathname.startsWith('/_sim/')) {
      const [status, body] = answerControl(control, method, url.pathname.slice('/_sim/'.length), text)
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
      return
    }
    const [face, path] = faceOf(url.pathname)
    await exchange(hub, face, asRequest(message, url, path, text), message, response)
  }

  const faceOf = (path: string): [Face, string] => {
    if (path.startsWith(metadataPrefix)) return [metadata, path.slice(metadataPrefix.length)]
    return [api, path.startsWith('/v1/') ? path.slice('/v1'.length) : `/unknown${path}`]
  }

  const serveRobot = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(message.url ?? '/', 'http://127.0.0.1')
    const text = await bodyOf(message)
    await exchange(hub, robot, asRequest(message, url, url.pathname, text), message, response)
  }

  const servers = [createServer(answering(serve)), createServer(answering(serveRobot))] as const
  const [port, robotPort] = await Promise.all([
    listen(servers[0], settings.port ?? 0),
    listen(servers[1], settings.robotPort ?? 0),
  ])
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    apiUrl: `${url}/v1`,
    robotUrl: `http://127.0.0.1:${robotPort}`,
    metadataUrl: `${url}${metadataPrefix}`,
    control,
    close: async () => {
      hub.cloud.actions.stop()
      await Promise.all(servers.map(shut))
    },
  }
}

function answering(serve: (message: IncomingMessage, response: ServerResponse) => Promise<void>) {
  return (message: IncomingMessage, response: ServerResponse): void => {
    serve(message, response).catch((error: unknown) => {
      // a fault of the simulator itself: loud, so that no test takes it for the cloud's answer
      response.writeHead(599, { 'Content-Type': 'text/plain' }).end(`simulator: ${String(error)}`)
    })
  }
}

function asRequest(message: IncomingMessage, url: URL, path: string, text: string): Request {
  return {
    method: message.method ?? 'GET',
    path,
    query: url.searchParams,
    headers: message.headers,
    text,
    remoteAddress: message.socket.remoteAddress ?? '',
  }
}

async function bodyOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

function shut(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
