import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import type { RobotSettings, Secret } from '../../config/types.ts'
import { permanent, throttled, transient, WindlassError } from '../../errors.ts'
import type { HttpResponse } from '../../http/client.ts'
import type { Budget } from '../budget.ts'
import { type Http, jsonOf, type RequestReport, tellRequest } from '../requests.ts'
import type { RobotServer, RobotServerNumber } from './model.ts'

export interface RobotClientOptions {
  http: Pick<Http, 'request'>
  settings: RobotSettings & { user: Secret; password: Secret }
  redis?: Redis
  prefix: string
  budget: (credential: string) => Budget
  version: string
  onRequest?: (report: RequestReport) => void
}

export interface RobotClient {
  /** What the credential stands for, without telling it. */
  account(): string
  servers(call: Call): Promise<RobotServer[]>
  /** `operating_status` as Robot says it; undefined for a server that it does not know. */
  operatingStatus(server: RobotServerNumber, call: Call): Promise<string | undefined>
}

const TIMEOUT_MS = 15_000
/** Pause after a rate limit where `ROBOT_RATE_LIMIT_WAIT_TIME` says nothing. */
const DEFAULT_WAIT_MS = 300_000
/** How long a refused login is remembered. Only another user or password ends it earlier. */
const REFUSED_MS = 24 * 3_600_000

/**
 * The Robot web service. It blocks an address after three refused logins, and an account after 200 requests an hour: a refused login is
 * never tried again with the same secret, by no worker, and a refusal for the rate stops all of them.
 */
export function createRobotClient(options: RobotClientOptions): RobotClient {
  const { http, settings, redis, prefix, version } = options
  const refusedHere = new Set<string>()

  const credential = () => {
    const pair = `${settings.user.read()}:${settings.password.read()}`
    return { pair, id: createHash('sha256').update(`${settings.endpoint} ${pair}`).digest('hex').slice(0, 16) }
  }
  const refusedKey = (id: string) => `${prefix}:robot:v1:refused:${id}`

  async function isRefused(id: string): Promise<boolean> {
    if (refusedHere.has(id)) return true
    const known = (await redis?.exists(refusedKey(id)).catch(() => 0)) === 1
    if (known) refusedHere.add(id)
    return known
  }

  async function get(path: string, call: Call, what: string): Promise<{ status: number; json: unknown }> {
    const { pair, id } = credential()
    if (await isRefused(id)) throw refused(what)
    const budget = options.budget(pair)
    await budget.take(call.urgency)
    const started = performance.now()
    const report = (status?: number) => {
      const endpoint = path.replace(/\/\d+/g, '/-')
      const seen = { method: 'GET', endpoint, durationMs: performance.now() - started }
      options.onRequest?.({ api: 'robot', ...seen, ...(status === undefined ? {} : { status }) })
      tellRequest(call, 'robot', seen, status)
    }
    let response: HttpResponse
    try {
      response = await http.request({
        method: 'GET',
        url: `${settings.endpoint}${path}`,
        headers: {
          accept: 'application/json',
          authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
          'user-agent': `windlass/${version}`,
        },
        timeoutMs: TIMEOUT_MS,
        signal: call.signal,
      })
    } catch (error) {
      report()
      if (error instanceof WindlassError && error.kind === 'aborted') throw error
      throw transient(`Hetzner Robot, ${what}: no answer`, { cause: error })
    }
    report(response.status)
    const { status } = response
    const json = jsonOf(response.body)
    const error = (json as { error?: { code?: unknown; message?: unknown; interval?: unknown } } | undefined)?.error
    const code = typeof error?.code === 'string' ? error.code : undefined
    if (status === 401) {
      refusedHere.add(id)
      await redis?.set(refusedKey(id), '1', 'PX', REFUSED_MS).catch(() => undefined)
      throw refused(what)
    }
    // A blocked client gets 403 without a word, a used-up limit 403 with a code.
    if (status === 403 || status === 429 || code?.toUpperCase() === 'RATE_LIMIT_EXCEEDED') {
      const saidMs = typeof error?.interval === 'number' && error.interval > 0 ? error.interval * 1000 : DEFAULT_WAIT_MS
      const waitMs = settings.rateLimitWaitTimeMs > 0 ? settings.rateLimitWaitTimeMs : Math.min(saidMs, DEFAULT_WAIT_MS)
      const untilMs = Date.now() + waitMs
      await budget.block(untilMs)
      throw throttled(
        `Hetzner Robot, ${what}: rate limit exceeded, next try at "${new Date(untilMs).toISOString()}"`,
        untilMs,
        { status, code: 'rate_limit_exceeded' },
      )
    }
    if (status >= 200 && status < 300 && json === undefined)
      throw transient(`Hetzner Robot, ${what}: the answer is no JSON`, { status })
    if (status === 404 && code === 'SERVER_NOT_FOUND') return { status, json: undefined }
    if (status >= 300) {
      const text =
        code === undefined ? `server responded with status code ${status}` : `${String(error?.message)} (${code})`
      throw transient(`Hetzner Robot, ${what}: ${text}`, { status, ...(code ? { code } : {}) })
    }
    return { status, json }
  }

  return {
    account: () => credential().id,
    async servers(call) {
      const { status, json } = await get('/server', call, 'listing servers')
      // An account without servers answers so.
      if (status === 404) return []
      if (!Array.isArray(json)) throw transient('Hetzner Robot, listing servers: the answer is no list', { status })
      return json.map(parseServer)
    },
    async operatingStatus(server, call) {
      const { status, json } = await get(`/reset/${server}`, call, `reading the power state of server ${server}`)
      if (status === 404) return undefined
      const state = (json as { reset?: { operating_status?: unknown } }).reset?.operating_status
      return typeof state === 'string' ? state : 'unknown'
    },
  }
}

function refused(what: string): WindlassError {
  return permanent(
    `Hetzner Robot, ${what}: the login was refused and is not tried again, since Robot blocks an address after three. Check ROBOT_USER and ROBOT_PASSWORD.`,
    { status: 401, code: 'unauthorized' },
  )
}

function parseServer(json: unknown): RobotServer {
  const server = ((json as { server?: unknown } | null)?.server ?? {}) as Record<string, unknown>
  if (typeof server.server_number !== 'number')
    throw transient('Hetzner Robot, listing servers: the answer has a server without number')
  const text = (value: unknown) => (typeof value === 'string' ? value : '')
  return {
    number: server.server_number as RobotServerNumber,
    name: text(server.server_name),
    ...(text(server.server_ip) ? { ip: text(server.server_ip) } : {}),
    ...(text(server.server_ipv6_net) ? { ipv6Net: text(server.server_ipv6_net) } : {}),
    product: text(server.product),
    dc: text(server.dc),
  }
}
