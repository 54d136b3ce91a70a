import { createHash } from 'node:crypto'
import type { Call } from '../../call.ts'
import type { Secret } from '../../config/types.ts'
import { aborted, permanent, throttled, transient, WindlassError } from '../../errors.ts'
import type { HttpRequest, HttpResponse } from '../../http/client.ts'
import type { Budget } from '../budget.ts'
import { errorOf, isBusy, isNotFound } from './api-error.ts'
import type { Action, Algorithm, Certificate, LoadBalancer, LoadBalancerType, Network, Server } from './model.ts'
import {
  listOf,
  MalformedAnswer,
  objectOf,
  pagination,
  parseAction,
  parseCertificate,
  parseLoadBalancer,
  parseLoadBalancerType,
  parseNetwork,
  parseServer,
} from './parse.ts'

/** The part of the HTTP client that clouds use. */
export interface Http {
  request(request: HttpRequest): Promise<HttpResponse>
  close(): void | Promise<void>
}

/** One finished request, for the metrics. */
export interface RequestReport {
  api: 'hcloud' | 'robot' | 'hcloud-metadata'
  method: string
  /** Path with ids as `-`, without query. */
  endpoint: string
  /** HTTP status; absent when there was no answer. */
  status?: number
  durationMs: number
  /** What the answer says that the account has left; `credential` names it without telling it. */
  quota?: { credential: string; remaining: number }
}

export interface HcloudClientOptions {
  http: Http
  /** Version path included, no trailing slash. */
  endpoint: string
  token: Secret
  budget: (token: string) => Budget
  version: string
  debug?: boolean
  onRequest?: (report: RequestReport) => void
}

/** A request whose work goes on: what came of it is known when its actions have ended. */
export interface Begun<T = undefined> {
  result: T
  actions: Action[]
}

export interface ActOptions {
  /** Throws at once when another action holds the resource, in place of trying again a few times. */
  impatient?: boolean
}

export type HcloudClient = ReturnType<typeof createHcloudClient>

const PER_PAGE = 50
const TIMEOUT_MS = 15_000
/** After a refusal because of another action on the same resource. */
const BUSY_RETRIES_MS = [250, 500, 1000]
const READ_RETRY_MS = 250

/** The Hetzner Cloud API, resource by resource. */
export function createHcloudClient(options: HcloudClientOptions) {
  const { http, endpoint, token, version } = options
  /** What the credential stands for, without telling it: a key for shared data. */
  const account = () => createHash('sha256').update(`${endpoint} ${token.read()}`).digest('hex').slice(0, 16)

  async function send(method: string, path: string, call: Call, what: string, body?: unknown): Promise<unknown> {
    const secret = token.read()
    const budget = options.budget(secret)
    await budget.take(call.urgency)
    if (method !== 'GET') await call.beforeWrite(what)
    const started = performance.now()
    const report = (status?: number, remaining?: number) => {
      const seen = { method, endpoint: endpointOf(path), durationMs: performance.now() - started }
      options.onRequest?.({
        api: 'hcloud',
        ...seen,
        ...(status === undefined ? {} : { status }),
        ...(remaining === undefined ? {} : { quota: { credential: account(), remaining } }),
      })
      call.log.info(
        { cloud: 'hcloud', request: `${method} ${seen.endpoint}`, status, ms: Math.round(seen.durationMs) },
        'cloud request',
      )
      if (options.debug) call.log.info({ ...seen, path, status, body, authorization: 'REDACTED' }, 'hcloud request')
    }
    let response: HttpResponse
    try {
      response = await http.request({
        method,
        url: `${endpoint}${path}`,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${secret}`,
          'user-agent': `windlass/${version}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        timeoutMs: TIMEOUT_MS,
        signal: call.signal,
      })
    } catch (error) {
      report()
      if (error instanceof WindlassError) throw named(error, what)
      throw transient(`Hetzner Cloud, ${what}: no answer`, { cause: error })
    }
    const reading = {
      ...readingOf('limit', response.headers['ratelimit-limit']),
      ...readingOf('remaining', response.headers['ratelimit-remaining']),
    }
    report(response.status, reading.remaining)
    await budget.observe(reading)
    if (response.status >= 200 && response.status < 300) {
      if (response.status === 204 || response.body.length === 0) return {}
      try {
        return JSON.parse(response.body.toString('utf8'))
      } catch (error) {
        throw transient(`Hetzner Cloud, ${what}: the answer is no JSON`, { cause: error, status: response.status })
      }
    }
    const correlationId = response.headers['x-correlation-id']
    const error = errorOf({
      status: response.status,
      json: jsonOf(response.body),
      ...(typeof correlationId === 'string' ? { correlationId } : {}),
      what,
    })
    if (error.code === 'rate_limit_exceeded') {
      const untilMs = resetOf(response.headers)
      await budget.block(untilMs)
      throw throttled(error.message, untilMs, { code: error.code, status: response.status })
    }
    throw error
  }

  /** A read may go again: once, when nothing or a gateway answered. */
  async function read<T>(path: string, call: Call, what: string, parse: (json: unknown) => T): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return parse(await send('GET', path, call, what))
      } catch (error) {
        const failure =
          error instanceof MalformedAnswer
            ? transient(`Hetzner Cloud, ${what}: ${error.message}`, { cause: error })
            : error
        const again =
          failure instanceof WindlassError &&
          failure.kind === 'transient' &&
          (failure.status === undefined || failure.status === 502 || failure.status === 504)
        if (!again || attempt > 0) throw failure
        await pause(READ_RETRY_MS, call)
      }
    }
  }

  /** A write goes again only when it was refused unread, because another action holds the resource. */
  async function write<T>(
    method: string,
    path: string,
    body: unknown,
    call: Call,
    what: string,
    parse: (json: unknown) => T,
    retriesMs: readonly number[] = BUSY_RETRIES_MS,
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return parse(await send(method, path, call, what, body))
      } catch (error) {
        if (error instanceof MalformedAnswer)
          throw transient(`Hetzner Cloud, ${what}: ${error.message}`, { cause: error })
        const waitMs = retriesMs[attempt]
        if (!isBusy(error) || waitMs === undefined) throw error
        await pause(waitMs, call)
      }
    }
  }

  async function readAll<T>(
    path: string,
    name: string,
    call: Call,
    what: string,
    parse: (json: unknown) => T,
  ): Promise<T[]> {
    const all: T[] = []
    let total = 0
    for (let page: number | undefined = 1; page !== undefined; ) {
      const at = `${path}${path.includes('?') ? '&' : '?'}page=${page}&per_page=${PER_PAGE}`
      const answer: { items: T[]; nextPage?: number; totalEntries?: number } = await read(at, call, what, (json) => ({
        items: listOf(json, name, parse),
        ...pagination(json),
      }))
      all.push(...answer.items)
      total = answer.totalEntries ?? all.length
      page = answer.nextPage !== undefined && answer.nextPage > page ? answer.nextPage : undefined
    }
    // Half a list looks like servers that are gone.
    if (all.length < total)
      throw transient(`Hetzner Cloud, ${what}: the list has ${all.length} of ${total} entries`, { code: 'incomplete' })
    return all
  }

  async function readOne<T>(path: string, name: string, call: Call, what: string, parse: (json: unknown) => T) {
    try {
      return await read(path, call, what, (json) => objectOf(json, name, parse))
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  const begun = (json: unknown): Begun => ({ result: undefined, actions: actionsOf(json) })

  const act = (path: string, action: string, body: unknown, call: Call, what: string, options: ActOptions = {}) =>
    write('POST', `${path}/actions/${action}`, body, call, what, begun, options.impatient ? [] : BUSY_RETRIES_MS)

  const lb = (id: number) => `/load_balancers/${id}`

  return {
    account,

    checkToken: (call: Call) =>
      read('/locations', call, 'checking the token', (json) => void listOf(json, 'locations', () => undefined)),

    servers: {
      list: (call: Call) => readAll('/servers', 'servers', call, 'listing servers', parseServer),
      get: (id: number, call: Call) =>
        readOne<Server>(`/servers/${id}`, 'server', call, `reading server ${id}`, parseServer),
      named: async (name: string, call: Call) =>
        (
          await readAll(
            `/servers?name=${encodeURIComponent(name)}`,
            'servers',
            call,
            `looking for server "${name}"`,
            parseServer,
          )
        ).find((server) => server.name === name),
    },

    networks: {
      get: (id: number, call: Call) =>
        readOne<Network>(`/networks/${id}`, 'network', call, `reading network ${id}`, parseNetwork),
      named: async (name: string, call: Call) =>
        (
          await readAll(
            `/networks?name=${encodeURIComponent(name)}`,
            'networks',
            call,
            `looking for network "${name}"`,
            parseNetwork,
          )
        ).find((network) => network.name === name),
      addRoute: (id: number, route: { destination: string; gateway: string }, call: Call) =>
        act(`/networks/${id}`, 'add_route', route, call, `adding route ${route.destination} via ${route.gateway}`),
      deleteRoute: (id: number, route: { destination: string; gateway: string }, call: Call) =>
        act(`/networks/${id}`, 'delete_route', route, call, `deleting route ${route.destination} via ${route.gateway}`),
    },

    certificates: {
      list: (call: Call) => readAll('/certificates', 'certificates', call, 'listing certificates', parseCertificate),
      create: (
        certificate: { name: string; domainNames: string[]; labels: Record<string, string> },
        call: Call,
      ): Promise<Begun<Certificate>> =>
        write(
          'POST',
          '/certificates',
          {
            name: certificate.name,
            type: 'managed',
            domain_names: certificate.domainNames,
            labels: certificate.labels,
          },
          call,
          `creating managed certificate "${certificate.name}"`,
          (json) => ({ result: objectOf(json, 'certificate', parseCertificate), actions: actionsOf(json) }),
        ),
      delete: (id: number, call: Call) =>
        write('DELETE', `/certificates/${id}`, undefined, call, `deleting certificate ${id}`, () => undefined),
    },

    loadBalancerTypes: {
      list: (call: Call): Promise<LoadBalancerType[]> =>
        readAll(
          '/load_balancer_types',
          'load_balancer_types',
          call,
          'listing load balancer types',
          parseLoadBalancerType,
        ),
    },

    loadBalancers: {
      list: (call: Call) =>
        readAll('/load_balancers', 'load_balancers', call, 'listing load balancers', parseLoadBalancer),
      labelled: (selector: string, call: Call) =>
        readAll(
          `/load_balancers?label_selector=${encodeURIComponent(selector)}`,
          'load_balancers',
          call,
          `looking for the load balancer with label ${selector}`,
          parseLoadBalancer,
        ),
      named: async (name: string, call: Call) =>
        (
          await readAll(
            `/load_balancers?name=${encodeURIComponent(name)}`,
            'load_balancers',
            call,
            `looking for load balancer "${name}"`,
            parseLoadBalancer,
          )
        ).find((one) => one.name === name),
      get: (id: number, call: Call) =>
        readOne<LoadBalancer>(lb(id), 'load_balancer', call, `reading load balancer ${id}`, parseLoadBalancer),
      /** `body` in the API's own form. */
      create: (
        body: Record<string, unknown>,
        call: Call,
        { impatient }: ActOptions = {},
      ): Promise<Begun<LoadBalancer>> =>
        write(
          'POST',
          '/load_balancers',
          body,
          call,
          `creating load balancer "${String(body.name)}"`,
          (json) => ({
            result: objectOf(json, 'load_balancer', parseLoadBalancer),
            actions: actionsOf(json),
          }),
          impatient ? [] : BUSY_RETRIES_MS,
        ),
      update: (id: number, body: { name?: string; labels?: Record<string, string> }, call: Call) =>
        write('PUT', lb(id), body, call, `updating name and labels of load balancer ${id}`, () => undefined),
      delete: (id: number, call: Call) =>
        write('DELETE', lb(id), undefined, call, `deleting load balancer ${id}`, () => undefined),
      changeDnsPtr: (id: number, ip: string, dnsPtr: string | null, call: Call) =>
        act(lb(id), 'change_dns_ptr', { ip, dns_ptr: dnsPtr }, call, `setting the reverse DNS of ${ip}`),
      changeAlgorithm: (id: number, type: Algorithm, call: Call) =>
        act(lb(id), 'change_algorithm', { type }, call, `changing the algorithm of load balancer ${id} to ${type}`),
      changeType: (id: number, type: { id: number; name: string }, call: Call) =>
        act(
          lb(id),
          'change_type',
          { load_balancer_type: type.id },
          call,
          `changing load balancer ${id} to ${type.name}`,
        ),
      attach: (id: number, to: { network: number; ip?: string; ip_range?: string }, call: Call) =>
        act(lb(id), 'attach_to_network', to, call, `attaching load balancer ${id} to network ${to.network}`),
      detach: (id: number, network: number, call: Call) =>
        act(lb(id), 'detach_from_network', { network }, call, `detaching load balancer ${id} from network ${network}`),
      setPublicInterface: (id: number, enabled: boolean, call: Call) =>
        act(
          lb(id),
          enabled ? 'enable_public_interface' : 'disable_public_interface',
          undefined,
          call,
          `${enabled ? 'enabling' : 'disabling'} the public interface of load balancer ${id}`,
        ),
      addService: (id: number, service: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(
          lb(id),
          'add_service',
          service,
          call,
          `adding listener ${String(service.listen_port)} to load balancer ${id}`,
          options,
        ),
      updateService: (id: number, service: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(
          lb(id),
          'update_service',
          service,
          call,
          `updating listener ${String(service.listen_port)} of load balancer ${id}`,
          options,
        ),
      deleteService: (id: number, listenPort: number, call: Call, options?: ActOptions) =>
        act(
          lb(id),
          'delete_service',
          { listen_port: listenPort },
          call,
          `deleting listener ${listenPort} of load balancer ${id}`,
          options,
        ),
      addTarget: (id: number, target: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(lb(id), 'add_target', target, call, `adding a target to load balancer ${id}`, options),
      removeTarget: (id: number, target: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(lb(id), 'remove_target', target, call, `removing a target from load balancer ${id}`, options),
    },

    actions: {
      /** At most 25 ids. */
      get: (ids: readonly number[], call: Call): Promise<Action[]> =>
        read(
          `/actions?${ids.map((id) => `id=${id}`).join('&')}&sort=status&sort=id&page=1`,
          call,
          'reading the state of actions',
          (json) => listOf(json, 'actions', parseAction),
        ),
    },
  }
}

/** `/load_balancers/17/actions/add_target?x` is `/load_balancers/-/actions/add_target`. */
function endpointOf(path: string): string {
  return path.replace(/\?.*$/, '').replace(/\/\d+(?=\/|$)/g, '/-')
}

function actionsOf(json: unknown): Action[] {
  const answer = json as { action?: unknown; actions?: unknown; next_actions?: unknown }
  const many = [answer?.actions, answer?.next_actions].flatMap((list) => (Array.isArray(list) ? list : []))
  return [...(answer?.action ? [answer.action] : []), ...many].map(parseAction)
}

function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

function readingOf<K extends string>(name: K, header: string | string[] | undefined): { [P in K]?: number } {
  const value = typeof header === 'string' && header !== '' ? Number(header) : Number.NaN
  return Number.isFinite(value) ? ({ [name]: value } as { [P in K]?: number }) : {}
}

const SHORTEST_BLOCK_MS = 1000
const LONGEST_BLOCK_MS = 3_600_000
const UNKNOWN_BLOCK_MS = 30_000

const WINDOW_MS = 3_600_000
/** How much of an hour's requests shall be back before anybody asks again. */
const ENOUGH = 0.01

/**
 * When the API takes requests again: its own announcement, within what is believable. Where the announced time is that at which the
 * account has all its requests again, as the documentation says, the first of them are there long before.
 */
function resetOf(headers: HttpResponse['headers']): number {
  const now = Date.now()
  const afterS = Number(headers['retry-after'])
  const resetS = Number(headers['ratelimit-reset'])
  const { limit } = readingOf('limit', headers['ratelimit-limit'])
  const { remaining = 0 } = readingOf('remaining', headers['ratelimit-remaining'])
  let said = afterS > 0 ? now + afterS * 1000 : resetS > 0 ? resetS * 1000 : now + UNKNOWN_BLOCK_MS
  if (!(afterS > 0) && limit !== undefined && limit > 0) {
    const fullMs = ((limit - remaining) / limit) * WINDOW_MS
    if (Math.abs(said - now - fullMs) < WINDOW_MS / 20) said = now + Math.max(ENOUGH, 1 / limit) * WINDOW_MS
  }
  return Math.min(Math.max(said, now + SHORTEST_BLOCK_MS), now + LONGEST_BLOCK_MS)
}

function named(error: WindlassError, what: string): WindlassError {
  const options = { cause: error, ...(error.code ? { code: error.code } : {}) }
  const message = `Hetzner Cloud, ${what}`
  if (error.kind === 'aborted') return aborted(message, options)
  return error.kind === 'permanent' ? permanent(message, options) : transient(`${message}: no answer`, options)
}

async function pause(ms: number, { signal }: Call): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
  if (signal.aborted) throw aborted('the run was stopped while it waited for Hetzner Cloud', { cause: signal.reason })
}
