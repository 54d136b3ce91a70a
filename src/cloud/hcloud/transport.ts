import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../call.ts'
import type { Secret } from '../../config/types.ts'
import { aborted, permanent, throttled, transient, WindlassError } from '../../errors.ts'
import type { HttpResponse } from '../../http/client.ts'
import type { Budget } from '../budget.ts'
import { type Http, jsonOf, jsonRequest, mayReadAgain, type RequestReport, tellRequest } from '../requests.ts'
import { errorOf, isBusy, isNotFound } from './api-error.ts'
import { listOf, MalformedAnswer, objectOf, pagination } from './parse.ts'
import { limitOf, resetOf } from './rate-limit.ts'

export interface TransportOptions {
  http: Http
  /** Version path included, no trailing slash. */
  endpoint: string
  token: Secret
  budget: (token: string) => Budget
  version: string
  debug?: boolean
  onRequest?: (report: RequestReport) => void
}

export interface ActOptions {
  /** Throws at once when another action holds the resource, in place of trying again a few times. */
  impatient?: boolean
}

export type Transport = ReturnType<typeof createTransport>

const PER_PAGE = 50
/** After a refusal because of another action on the same resource. */
const BUSY_RETRIES_MS = [250, 500, 1000]
const READ_RETRY_MS = 250
/** A little more than the time in which one request of Hetzner's 3600 an hour comes back. */
const NEXT_TURN_MS = 1100
const TURN_PATIENCE_MS = 15_000

/**
 * Requests to the Hetzner Cloud API: within the account's budget, reads again where that is safe, whole lists, and every answer that is no
 * success as an error of ours.
 */
export function createTransport(options: TransportOptions) {
  const { http, endpoint, token, version } = options
  /** What the credential stands for, without telling it: a key for shared data. */
  const account = () => createHash('sha256').update(`${endpoint} ${token.read()}`).digest('hex').slice(0, 16)

  async function send(method: string, path: string, call: Call, what: string, body?: unknown): Promise<unknown> {
    const secret = token.read()
    const budget = options.budget(secret)
    await takeTurn(budget, call)
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
      tellRequest(call, 'hcloud', seen, status)
      if (options.debug) call.log.info({ ...seen, path, status, body, authorization: 'REDACTED' }, 'hcloud request')
    }
    let response: HttpResponse
    try {
      response = await http.request(jsonRequest({ method, url: `${endpoint}${path}`, secret, version, body, call }))
    } catch (error) {
      report()
      if (error instanceof WindlassError) throw named(error, what)
      throw transient(`Hetzner Cloud, ${what}: no answer`, { cause: error })
    }
    const reading = limitOf(response.headers)
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
    const started = performance.now()
    for (let attempt = 0; ; attempt++) {
      try {
        return parse(await send('GET', path, call, what))
      } catch (error) {
        const failure =
          error instanceof MalformedAnswer
            ? transient(`Hetzner Cloud, ${what}: ${error.message}`, { cause: error })
            : error
        if (attempt > 0 || !mayReadAgain(failure, started)) throw failure
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
    { impatient = false }: ActOptions = {},
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return parse(await send(method, path, call, what, body))
      } catch (error) {
        if (error instanceof MalformedAnswer)
          throw transient(`Hetzner Cloud, ${what}: ${error.message}`, { cause: error })
        const waitMs = impatient ? undefined : BUSY_RETRIES_MS[attempt]
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

  return { account, read, readAll, readOne, write }
}

/** `/load_balancers/17/actions/add_target?x` is `/load_balancers/-/actions/add_target`. */
function endpointOf(path: string): string {
  return path.replace(/\?.*$/, '').replace(/\/\d+(?=\/|$)/g, '/-')
}

/** Without the code of whatever kept the answer away: codes are the API's own. */
function named(error: WindlassError, what: string): WindlassError {
  const options = { cause: error }
  const message = `Hetzner Cloud, ${what}`
  if (error.kind === 'aborted') return aborted(message, options)
  return error.kind === 'permanent' ? permanent(message, options) : transient(`${message}: no answer`, options)
}

/**
 * Requests of an account that has used up its hour come back one by one. A run that left for each of them would begin anew every time, and
 * never come to its end: what a user waits for waits here, as long as it is not for long.
 */
async function takeTurn(budget: Budget, call: Call): Promise<void> {
  const giveUpAtMs = Date.now() + TURN_PATIENCE_MS
  for (;;) {
    try {
      return await budget.take(call.urgency)
    } catch (error) {
      if (!(error instanceof WindlassError) || error.retryAtMs === undefined || call.urgency !== 'user') throw error
      // On a busy machine its time may have come meanwhile.
      const waitMs = Math.max(0, error.retryAtMs - Date.now())
      if (waitMs > NEXT_TURN_MS || Date.now() + waitMs > giveUpAtMs) throw error
      await pause(waitMs, call)
    }
  }
}

async function pause(ms: number, { signal }: Call): Promise<void> {
  await delay(ms, undefined, { signal }).catch((cause) => {
    throw aborted('the run was stopped while it waited for Hetzner Cloud', { cause })
  })
}
