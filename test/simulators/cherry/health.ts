import { createServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { selfSigned } from '../kubernetes/certificate.ts'
import { shut } from '../web-server.ts'
import type { CherryAccount } from './account.ts'
import type { Server } from './model.ts'

/** A request to an API server, or only a connection to one that is not there. */
export interface Probe {
  address: string
  path?: string
  /** of the server that was reached; undefined: nobody answers at this address */
  hostname?: string
  status?: number
  /** whether the probe brought credentials along */
  authorized?: boolean
}

const healthPaths = new Set(['/healthz', '/livez', '/readyz'])

/**
 * The API servers of control plane nodes, on their loopback addresses (127.0.0.0/8) and on floating IPs that are such.
 * A floating IP leads to the server that it is targeted to, at once. Where nobody answers, connections are reset.
 */
export class HealthEndpoints {
  readonly #account: () => CherryAccount
  readonly #identity = selfSigned('127.0.0.1')
  readonly #bound = new Map<string, HttpsServer>()
  readonly probes: Probe[] = []
  port: number | undefined

  constructor(account: () => CherryAccount) {
    this.#account = account
  }

  /** PEM; the certificates are valid for 127.0.0.1 and localhost only, as an API server's need not list floating IPs. */
  get ca(): string {
    return this.#identity.ca
  }

  /** Listens on the addresses that the account has by now, and on no others. */
  async follow(): Promise<void> {
    const wanted = this.#wanted()
    const { apiserver_port } = this.#account().settings
    const moved = apiserver_port !== undefined && this.port !== apiserver_port
    await Promise.all([...this.#bound.keys()].filter((x) => moved || !wanted.has(x)).map((x) => this.#unbind(x)))
    if (moved) this.port = apiserver_port
    for (let tries = 1; ; tries++) {
      try {
        for (const address of wanted) if (!this.#bound.has(address)) await this.#bind(address)
        return
      } catch (error) {
        if (apiserver_port !== undefined || tries === 5) throw error
        // The port that was free on one address is not on another.
        await this.#unbindAll()
      }
    }
  }

  async close(): Promise<void> {
    await this.#unbindAll()
    this.probes.length = 0
  }

  #wanted(): Set<string> {
    const account = this.#account()
    const addresses = account.addresses.filter(({ address, owner, type }) => {
      const served = type === 'floating-ip' || account.server(owner)?.apiserver !== undefined
      return served && address.startsWith('127.')
    })
    return new Set(addresses.map(({ address }) => address))
  }

  /** The server that answers at the address now. */
  #serverAt(address: string): Server | undefined {
    const account = this.#account()
    const found = account.addresses.find((candidate) => candidate.address === address)
    const server = found && account.server(found.type === 'floating-ip' ? found.target : found.owner)
    if (!server || server.apiserver === undefined || server.apiserver === 'refuse') return undefined
    return server.state === 'active' && server.power === 'on' ? server : undefined
  }

  async #bind(address: string): Promise<void> {
    const { key, cert } = this.#identity
    const peers = new WeakMap<Socket, Server>()
    const server = createServer({ key, cert }, (request, response) => {
      const now = this.#serverAt(address)
      // The connection of a server that this address no longer leads to is dead.
      if (!now || peers.get(request.socket)?.id !== now.id) {
        this.probes.push({ address })
        request.socket.destroy()
        return
      }
      const path = request.url ?? ''
      const { apiserver, hostname } = now
      const status = apiserver === 'hang' ? undefined : statusAt(path, apiserver)
      const authorized = request.headers.authorization !== undefined
      this.probes.push({ address, path, hostname, authorized, ...(status === undefined ? {} : { status }) })
      if (status === undefined) return
      response.writeHead(status, { 'Content-Type': 'text/plain' }).end(status === 200 ? 'ok' : 'not ok')
    })
    server.on('secureConnection', (socket) => {
      const now = this.#serverAt(address)
      if (now) peers.set(socket, now)
    })
    server.on('connection', (socket: Socket) => {
      if (this.#serverAt(address)) return
      this.probes.push({ address })
      socket.resetAndDestroy()
    })
    server.on('tlsClientError', () => {})
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.port ?? 0, address, resolve)
    })
    this.port = (server.address() as AddressInfo).port
    this.#bound.set(address, server)
  }

  async #unbindAll(): Promise<void> {
    await Promise.all([...this.#bound.keys()].map((address) => this.#unbind(address)))
    this.port = undefined
  }

  async #unbind(address: string): Promise<void> {
    const server = this.#bound.get(address)
    this.#bound.delete(address)
    if (server) await shut(server)
  }
}

function statusAt(path: string, apiserver: Server['apiserver']): number {
  if (!healthPaths.has(path.split('?')[0] ?? '')) return 404
  return typeof apiserver === 'number' ? apiserver : 200
}
