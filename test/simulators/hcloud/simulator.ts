import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exchange, type Face } from '../exchange.ts'
import { Hub } from '../hub.ts'
import { answering, asRequest, bodyOf, listen, shut } from '../web-server.ts'
import { cloudApi, type Tokens } from './api.ts'
import { Cloud } from './cloud.ts'
import { answerControl, type Control, createControl } from './control.ts'
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
      const [status, body] = await answerControl(control, method, url.pathname.slice('/_sim/'.length), text)
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
