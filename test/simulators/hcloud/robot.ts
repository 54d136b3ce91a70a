import type { Answer, Face, Request } from '../exchange.ts'
import type { Cloud } from './cloud.ts'
import { ApiError, simulated } from './errors.ts'
import type { RobotServer } from './model.ts'
import { robotServerView } from './views.ts'

export interface RobotCredentials {
  user: string
  password: string
}

/** The Robot web service: basic auth, no pages, errors as {error: {status, code, message}}. */
export function robotWebService(cloud: () => Cloud, credentials: RobotCredentials): Face {
  const lockout = new Lockout(cloud)
  const usage = new Map<string, { since: number; used: number }>()

  const overLimit = (path: string): boolean => {
    const { robot_max_request, robot_interval_s } = cloud().options
    const window = usage.get(path)
    if (!window || Date.now() - window.since > robot_interval_s * 1000) {
      usage.set(path, { since: Date.now(), used: 1 })
      return false
    }
    window.used++
    return window.used > robot_max_request
  }

  const rateLimited = (status = 403): Answer => {
    const { robot_max_request: max_request, robot_interval_s: interval } = cloud().options
    const code = 'RATE_LIMIT_EXCEEDED'
    return { status, code, body: { error: { status, code, message: 'rate limit exceeded', max_request, interval } } }
  }

  return {
    label: (request) => `ROBOT ${request.method} ${request.path.replace(/^(\/[a-z]+)\/\d+$/, '$1/{number}')}`,
    failure: ({ status, code, message }) => ({ status, code, body: { error: { status, code, message } } }),
    simulated,
    rateLimited: (fault) => rateLimited(fault.status),
    answer: (request) => {
      if (lockout.isShut(request.remoteAddress)) return { status: 403, body: 'Forbidden', code: 'locked-out' }
      if (!isWelcome(request, credentials)) {
        lockout.refused(request.remoteAddress)
        throw new ApiError('UNAUTHORIZED', 'Unauthorized', null, 401)
      }
      lockout.accepted(request.remoteAddress)
      const [, kind = '', number, ...rest] = request.path.split('/')
      if (request.method !== 'GET' || !['server', 'reset'].includes(kind) || rest.length > 0) {
        throw new ApiError('NOT_FOUND', 'Not Found', null, 404)
      }
      if (overLimit(kind)) return rateLimited()
      return { status: 200, body: read(cloud(), kind, number) }
    },
  }
}

function read(cloud: Cloud, kind: string, number: string | undefined): unknown {
  const absent = (): ApiError => new ApiError('SERVER_NOT_FOUND', 'server not found', null, 404)
  if (number === undefined) {
    if (cloud.robotServers.length === 0) throw absent()
    return kind === 'server'
      ? cloud.robotServers.map((server) => ({ server: robotServerView(server) }))
      : cloud.robotServers.filter((server) => server.reset).map((server) => ({ reset: resetView(server) }))
  }
  const server = cloud.robotServers.find((candidate) => String(candidate.server_number) === number)
  if (!server) throw absent()
  if (kind === 'server') {
    const extras = { reset: server.reset, rescue: true, vnc: false, windows: false, plesk: false, cpanel: false }
    return { server: { ...robotServerView(server), ...extras, wol: false, hot_swap: false } }
  }
  if (!server.reset) throw new ApiError('RESET_NOT_AVAILABLE', 'no reset function for this server', null, 404)
  return { reset: resetView(server) }
}

function resetView(server: RobotServer): unknown {
  const { server_ip, server_ipv6_net, server_number, operating_status } = server
  return { server_ip, server_ipv6_net, server_number, type: ['sw', 'hw', 'man'], operating_status }
}

function isWelcome(request: Request, { user, password }: RobotCredentials): boolean {
  const expected = Buffer.from(`${user}:${password}`).toString('base64')
  return request.headers.authorization === `Basic ${expected}`
}

/** Too many refused logins in a row shut an address out for a while. */
class Lockout {
  #cloud: () => Cloud
  #refused = new Map<string, number>()
  #until = new Map<string, number>()

  constructor(cloud: () => Cloud) {
    this.#cloud = cloud
  }

  isShut(address: string): boolean {
    return Date.now() < (this.#until.get(address) ?? 0)
  }

  refused(address: string): void {
    const { robot_lockout_after, robot_lockout_ms } = this.#cloud().options
    const count = (this.#refused.get(address) ?? 0) + 1
    this.#refused.set(address, count)
    if (robot_lockout_after > 0 && count >= robot_lockout_after) {
      this.#until.set(address, Date.now() + robot_lockout_ms)
      this.#refused.delete(address)
    }
  }

  accepted(address: string): void {
    this.#refused.delete(address)
  }
}
