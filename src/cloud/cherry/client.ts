import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../call.ts'
import type { CherrySettings } from '../../config/types.ts'
import { aborted, kindOf, permanent, throttled, transient, WindlassError } from '../../errors.ts'
import type { HttpResponse } from '../../http/client.ts'
import { type Http, jsonOf, jsonRequest, mayReadAgain, type RequestReport, tellRequest } from '../requests.ts'
import type { Address, AddressId, Project, Server, ServerId } from './model.ts'
import type { Pace } from './pace.ts'
import { MalformedAnswer, parseAddress, parseList, parseProject, parseServer } from './parse.ts'

export interface CherryClientOptions {
  http: Http
  settings: Pick<CherrySettings, 'apiKey' | 'apiUrl' | 'projectId'>
  pace: (apiKey: string) => Pace
  version: string
  onRequest?: (report: RequestReport) => void
}

/** A list is worth waiting for others who want it: four requests a second are all there are. */
export const GATHER_MS = 100

export type CherryClient = ReturnType<typeof createCherryClient>

const PER_PAGE = 100
const DEFAULT_PAUSE_MS = 2000
const READ_RETRY_MS = 300

/** The Cherry Servers API, resource by resource, for one project. Errors are values: nothing is "not found" but what the API itself says is. */
export function createCherryClient(options: CherryClientOptions) {
  const { http, settings, version } = options
  const { apiKey, apiUrl, projectId } = settings
  const project = `/projects/${projectId}`

  async function send(
    method: string,
    path: string,
    call: Call,
    what: string,
    { body, begun }: { body?: unknown; begun?: () => void } = {},
  ): Promise<Answer> {
    const secret = apiKey.read()
    const pace = options.pace(secret)
    await pace.take(call)
    begun?.()
    if (method !== 'GET') await call.beforeWrite(what)
    const started = performance.now()
    const report = (status?: number) => {
      const seen = { method, endpoint: endpointOf(path), durationMs: performance.now() - started }
      options.onRequest?.({ api: 'cherryservers', ...seen, ...(status === undefined ? {} : { status }) })
      tellRequest(call, 'cherryservers', seen, status)
    }
    let response: HttpResponse
    try {
      response = await http.request(jsonRequest({ method, url: `${apiUrl}${path}`, secret, version, body, call }))
    } catch (error) {
      report()
      if (kindOf(error) === 'aborted') throw error
      throw transient(`Cherry Servers, ${what}: no answer`, { cause: error })
    }
    const { status, headers } = response
    report(status)
    if (status >= 200 && status < 300) return answerOf(response, what)
    if (status === 429) {
      const untilMs = Date.now() + pauseOf(headers['retry-after'])
      await pace.block(untilMs)
      throw throttled(`Cherry Servers, ${what}: too many requests`, untilMs, { status, code: 'rate_limit_exceeded' })
    }
    throw refusal(method, response, what)
  }

  async function read<T>(
    path: string,
    call: Call,
    what: string,
    parse: (json: unknown, headers: HttpResponse['headers']) => T,
    begun?: () => void,
  ): Promise<T> {
    const started = performance.now()
    for (let attempt = 0; ; attempt++) {
      try {
        const { json, headers } = await send('GET', path, call, what, begun ? { begun } : {})
        return parse(json, headers)
      } catch (error) {
        const failure =
          error instanceof MalformedAnswer
            ? transient(`Cherry Servers, ${what}: the answer has ${error.message}`, { code: 'malformed' })
            : error
        if (attempt > 0 || !mayReadAgain(failure, started)) throw failure
        await delay(READ_RETRY_MS, undefined, { signal: call.signal }).catch((cause) => {
          throw aborted(`Cherry Servers, ${what}: the run was stopped`, { cause })
        })
      }
    }
  }

  /** Undefined for the API's own 404, and for nothing else. */
  async function readOne<T>(
    path: string,
    call: Call,
    what: string,
    parse: (json: unknown) => T,
  ): Promise<T | undefined> {
    try {
      return await read(path, call, what, parse)
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  /** All entries, or an error: half a list looks like servers that are gone, and like addresses that must be made. */
  async function readAll<T extends { id: string | number }>(
    path: string,
    call: Call,
    what: string,
    parse: (json: unknown) => T,
    begun: () => void = () => {},
  ): Promise<T[]> {
    const all = new Map<string | number, T>()
    for (;;) {
      const at = `${path}?limit=${PER_PAGE}&offset=${all.size}`
      const parsePage = (json: unknown, headers: HttpResponse['headers']) => ({
        items: parseList(json, parse),
        total: totalOf(headers['x-total-count']),
      })
      const page = await read(at, call, what, parsePage, begun)
      const before = all.size
      for (const item of page.items) all.set(item.id, item)
      const total = page.total ?? (page.items.length < PER_PAGE ? all.size : Number.POSITIVE_INFINITY)
      if (all.size >= total) return [...all.values()]
      if (all.size > before) continue
      // Without a total, a page that brings nothing new is the end.
      if (page.total === undefined) return [...all.values()]
      throw transient(`Cherry Servers, ${what}: the list has ${all.size} of ${total} entries`, { code: 'incomplete' })
    }
  }

  /** `undefined` for the API's own 404: what was to be changed is gone. */
  async function write<T>(
    method: 'POST' | 'PUT' | 'DELETE',
    path: string,
    body: unknown,
    call: Call,
    what: string,
    parse: (json: unknown) => T,
  ): Promise<T | undefined> {
    try {
      return parse((await send(method, path, call, what, { body })).json)
    } catch (error) {
      if (isNotFound(error)) return undefined
      if (error instanceof MalformedAnswer)
        throw transient(`Cherry Servers, ${what}: the answer has ${error.message}`, { code: 'malformed' })
      throw error
    }
  }

  return {
    /** What the credential and the project stand for, without telling them: a key for shared data. */
    account: () => createHash('sha256').update(`${apiUrl} ${projectId} ${apiKey.read()}`).digest('hex').slice(0, 16),

    project: {
      get: (call: Call): Promise<Project | undefined> =>
        readOne(project, call, `reading project ${projectId}`, parseProject),
      /** The name goes along because an update replaces what it names. */
      enableBgp: (name: string, call: Call): Promise<Project | undefined> =>
        write('PUT', project, { name, bgp: true }, call, `switching BGP on for project ${projectId}`, parseProject),
    },

    servers: {
      /** `begun` is called when it is its turn to be sent. */
      list: (call: Call, begun?: () => void): Promise<Server[]> =>
        readAll(`${project}/servers`, call, 'listing servers', parseServer, begun),
      get: (id: ServerId, call: Call): Promise<Server | undefined> =>
        readOne(`/servers/${id}`, call, `reading server ${id}`, parseServer),
      /** `bgp` left out would switch it off, and tags left out would be dropped. False when the server is gone. */
      enableBgp: async (id: ServerId, tags: Record<string, string>, call: Call): Promise<boolean> =>
        (await write('PUT', `/servers/${id}`, { tags, bgp: true }, call, `switching BGP on for server ${id}`, (json) =>
          done(parseServer(json).bgpEnabled !== false, 'BGP of the server as off'),
        )) ?? false,
    },

    addresses: {
      /** `begun` is called when it is its turn to be sent. */
      list: (call: Call, begun?: () => void): Promise<Address[]> =>
        readAll(`${project}/ips`, call, 'listing addresses', parseAddress, begun),
      reserve: async (region: string, tags: Record<string, string>, call: Call): Promise<Address> => {
        const what = `reserving a floating IP in region ${region}`
        const made = await write('POST', `${project}/ips`, { region, tags }, call, what, parseAddress)
        if (made) return made
        throw permanent(
          `Cherry Servers, ${what}: project ${projectId} or the region is not found: check CHERRY_PROJECT_ID, and CHERRY_REGION_NAME or the Service's annotation for the region`,
          { status: 404 },
        )
      },
      /** Replaces the tags. False when the address is gone. */
      tag: async (id: AddressId, tags: Record<string, string>, call: Call): Promise<boolean> =>
        (await write('PUT', `/ips/${id}`, { tags }, call, `tagging address ${id}`, isAddress)) ?? false,
      /** False when address or server is gone. */
      assign: async (id: AddressId, server: ServerId, call: Call): Promise<boolean> =>
        (await write(
          'PUT',
          `/ips/${id}`,
          { targeted_to: String(server) },
          call,
          `assigning address ${id} to server ${server}`,
          (json) => done([undefined, server].includes(parseAddress(json).target), 'the address at another server'),
        )) ?? false,
      unassign: (id: AddressId, call: Call): Promise<unknown> =>
        write('PUT', `/ips/${id}`, { targeted_to: 0 }, call, `taking address ${id} off its server`, isAddress),
      /** An address that is gone already is fine. */
      release: (id: AddressId, call: Call): Promise<unknown> =>
        write('DELETE', `/ips/${id}`, undefined, call, `releasing address ${id}`, () => true),
    },
  }
}

/** The answer to an update shows what was updated: one that does not was given by somebody else, or nothing was done. */
const isAddress = (json: unknown) => parseAddress(json) !== undefined

function done(isDone: boolean, otherwise: string): true {
  if (isDone) return true
  throw new MalformedAnswer(otherwise)
}

interface Answer {
  json: unknown
  headers: HttpResponse['headers']
}

function answerOf({ status, headers, body }: HttpResponse, what: string): Answer {
  if (status === 204) return { json: undefined, headers }
  // Whoever gave it may have done nothing.
  if (body.length === 0) throw transient(`Cherry Servers, ${what}: the answer is empty`, { status, code: 'malformed' })
  const json = jsonOf(body)
  if (json === undefined) throw transient(`Cherry Servers, ${what}: the answer is no JSON`, { status })
  return { json, headers }
}

/** What was asked wrongly must be changed by a human; what the account may not do now, or cannot read or give back, may pass. */
function refusal(method: string, { status, body }: HttpResponse, what: string): WindlassError {
  const json = jsonOf(body) as { message?: unknown } | null | undefined
  const own = typeof json?.message === 'string'
  const message = `Cherry Servers, ${what}: ${own && json.message !== '' ? json.message : `status ${status}`}`
  if (status === 401) return transient(`${message}: the API key is refused, check CHERRY_API_KEY`, { status })
  // A proxy that has lost its way says 404 too, by a page of its own: that is no word on what there is.
  if (status === 404 && own) return transient(message, { status, code: NOT_FOUND })
  const wrong = [400, 403, 405, 413, 415, 422].includes(status) && (method === 'POST' || method === 'PUT')
  return wrong ? permanent(message, { status }) : transient(message, { status })
}

const NOT_FOUND = 'not_found'
const isNotFound = (error: unknown) => error instanceof WindlassError && error.code === NOT_FOUND

function pauseOf(header: string | undefined): number {
  const seconds = Number(header)
  if (header !== undefined && seconds >= 0) return Math.max(1000, seconds * 1000)
  const at = Date.parse(header ?? '')
  return Number.isNaN(at) ? DEFAULT_PAUSE_MS : Math.max(1000, at - Date.now())
}

function totalOf(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d+$/.test(header) ? Number(header) : undefined
}

/** `/servers/12` as `/servers/-`. */
function endpointOf(path: string): string {
  return path.replace(/\?.*$/, '').replace(/\/(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27})(?=\/|$)/g, '/-')
}
