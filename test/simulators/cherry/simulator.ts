import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exchange } from '../exchange.ts'
import { Hub } from '../hub.ts'
import { answering, asRequest, bodyOf, listen, shut } from '../web-server.ts'
import { CherryAccount } from './account.ts'
import { cherryApi } from './api.ts'
import { answerControl, type Control, createControl } from './control.ts'
import { HealthEndpoints } from './health.ts'
import type { Options } from './model.ts'

export interface SimulatorSettings {
  token?: string
  options?: Partial<Options>
  /** 0, the default: any free port */
  port?: number
}

export interface CherrySimulator {
  /** http://127.0.0.1:PORT */
  url: string
  /** with /v1/ */
  apiUrl: string
  /** PEM: what the certificates of control plane nodes are signed with */
  ca: string
  control: Control
  close: () => Promise<void>
}

/** The Cherry Servers API, and the API servers of control plane nodes, on loopback. */
export async function startCherrySimulator(settings: SimulatorSettings = {}): Promise<CherrySimulator> {
  const emptyHub = () => new Hub(new CherryAccount(settings.options ?? {}))
  let hub = emptyHub()
  const account = () => hub.cloud
  const token = settings.token ?? 'cherry-token'
  let api = cherryApi(account, token)
  const health = new HealthEndpoints(account)
  const control = createControl(
    () => hub,
    health,
    async () => {
      hub = emptyHub()
      api = cherryApi(account, token)
      await health.close()
    },
  )

  const serve = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(`http://127.0.0.1${message.url ?? '/'}`)
    const text = await bodyOf(message)
    if (url.pathname.startsWith('/_sim/')) {
      const name = url.pathname.slice('/_sim/'.length)
      const [status, body] = await answerControl(control, message.method ?? 'GET', name, text)
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
      return
    }
    await exchange(hub, api, asRequest(message, url, url.pathname, text), message, response)
  }

  const server = createServer(answering(serve))
  const url = `http://127.0.0.1:${await listen(server, settings.port ?? 0)}`
  return {
    url,
    apiUrl: `${url}/v1/`,
    ca: health.ca,
    control,
    close: async () => {
      await Promise.all([shut(server), health.close()])
    },
  }
}
