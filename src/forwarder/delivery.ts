import { randomUUID } from 'node:crypto'
import { messageOf, permanent } from '../errors.ts'
import { sign } from '../events/sign.ts'
import { BATCH_CONTENT_TYPE, EPOCH_HEADER, eventsPath, SERVER_TIME_HEADER } from '../events/types.ts'
import type { HttpClient, HttpResponse } from '../http/client.ts'
import type { Logger } from '../telemetry/log.ts'
import { Alarm, backoffMs, type Pace, retryAfterMs } from './pace.ts'

/** What came of one body in the end; everything else was tried again. */
export type Verdict =
  /** Redis holds it. */
  | { kind: 'accepted'; epoch: string | undefined }
  /** The body itself is at fault; `faulty` has the places in the batch that the server named. */
  | { kind: 'faulty'; faulty: number[]; message: string }
  | { kind: 'too-big'; message: string }
  /** The forwarder is being stopped, and there was no more time. */
  | { kind: 'abandoned' }

export interface DeliveryOptions {
  cluster: string
  keys: readonly string[]
  serverUrl: string
  http: HttpClient
  log: Logger
  pace: Pace
}

/** A connection that is cut this often while the same body is sent may be the answer of a proxy to its length. */
const RESETS_OF_TOO_BIG = 4
const SKEW_THAT_MATTERS_MS = 1_500
const MAX_ANSWER_BYTES = 256 * 1024

/** Brings bodies to the server, one at a time and for ever: a body is left only when the server has it, or says that it is wrong. */
export class Delivery {
  retries = 0
  lastAcceptedMs = 0
  /** What the server last answered instead of 202, until it takes something again. */
  trouble: string | undefined
  readonly #options: DeliveryOptions
  readonly #url: string
  readonly #key: string
  readonly #patience = new Alarm()
  readonly #quit = new AbortController()
  #skewMs = 0

  constructor(options: DeliveryOptions) {
    const [key] = options.keys
    if (!key)
      throw permanent(
        `Cluster ${options.cluster} has no webhook key: give the forwarder the one that the server has for it`,
      )
    this.#key = key
    this.#options = options
    this.#url = options.serverUrl.replace(/\/+$/, '') + eventsPath(options.cluster)
  }

  /** Tries what waits at once. */
  hurry(): void {
    this.#patience.ring()
  }

  /** Ends the delivery under way, whatever its state. */
  abandon(): void {
    this.#quit.abort()
    this.#patience.ring()
  }

  /** @param divisible that the body could be sent in parts */
  async deliver(body: string, divisible: boolean): Promise<Verdict> {
    // One id for one body: a server that took it and could not say so answers 202 without doing it twice.
    const id = randomUUID()
    let resets = 0
    let corrected = false
    for (let attempt = 0; !this.#quit.signal.aborted; attempt++) {
      const answer = await this.#post(id, body)
      if (this.#quit.signal.aborted && !('status' in answer && answer.status === 202)) break
      let verdict: Verdict | Retry
      if ('status' in answer) {
        if (answer.status === 401 && !corrected && this.#correctSkew(answer)) {
          corrected = true
          attempt--
          continue
        }
        verdict = judge(answer)
      } else {
        resets = answer.reset ? resets + 1 : 0
        verdict =
          divisible && resets >= RESETS_OF_TOO_BIG
            ? { kind: 'too-big', message: answer.message }
            : { kind: 'retry', message: answer.message, hopeless: false }
      }
      if (verdict.kind === 'accepted') {
        if (this.trouble) this.#options.log.info({ attempts: attempt + 1 }, 'The server takes events again')
        this.trouble = undefined
        this.lastAcceptedMs = Date.now()
      }
      if (verdict.kind !== 'retry') return verdict
      this.trouble = verdict.message
      await this.#wait(attempt, verdict)
    }
    return { kind: 'abandoned' }
  }

  async #post(id: string, body: string): Promise<HttpResponse | { message: string; reset: boolean }> {
    const { http, pace } = this.#options
    try {
      return await http.request({
        method: 'POST',
        url: this.#url,
        headers: {
          'content-type': BATCH_CONTENT_TYPE,
          ...sign(this.#key, id, Date.now() + this.#skewMs, body),
        },
        body,
        timeoutMs: pace.requestTimeoutMs,
        signal: this.#quit.signal,
        maxBytes: MAX_ANSWER_BYTES,
      })
    } catch (error) {
      const { code } = error as { code?: string }
      return { message: messageOf(error), reset: code === 'ECONNRESET' || code === 'EPIPE' }
    }
  }

  async #wait(attempt: number, { message, hopeless, waitMs }: Retry): Promise<void> {
    const { log, pace } = this.#options
    const [minMs, maxMs] = hopeless ? [pace.refusedMinMs, pace.refusedMaxMs] : [pace.retryMinMs, pace.retryMaxMs]
    const backoff = backoffMs(attempt, minMs, maxMs)
    const retryInMs = Math.round(waitMs === undefined ? backoff : waitMs + Math.random() * minMs)
    this.retries++
    const fields = { attempt: attempt + 1, retryInMs, reason: message }
    if (hopeless) log.error(fields, 'The server refuses events of this cluster; they are kept and tried again')
    else log.warn(fields, 'The server did not take events; they are kept and tried again')
    await this.#patience.wait(retryInMs)
  }

  #correctSkew({ headers }: HttpResponse): boolean {
    const seconds = Number(headers[SERVER_TIME_HEADER] ?? Number.NaN)
    if (!Number.isFinite(seconds)) return false
    const skewMs = seconds * 1000 - Date.now()
    if (Math.abs(skewMs - this.#skewMs) < SKEW_THAT_MATTERS_MS) return false
    this.#skewMs = skewMs
    this.#options.log.warn(
      { skewMs: Math.round(skewMs) },
      'This clock and the server differ: signing with the time of the server. Set the clock of this host',
    )
    return true
  }
}

interface Retry {
  kind: 'retry'
  message: string
  /** Only a human can change it. */
  hopeless: boolean
  /** What the server asked for. */
  waitMs?: number
}

const ADVICE: Record<number, string> = {
  401: 'give forwarder and server the same webhook key for this cluster',
  403: 'something in front of the server refuses the forwarder',
  404: 'give the server this cluster, or the forwarder the right cluster id and server address',
}

function judge(answer: HttpResponse): Verdict | Retry {
  const { status, headers } = answer
  if (status === 202) return { kind: 'accepted', epoch: headerOf(answer, EPOCH_HEADER) }
  const said = `status ${status}${sayings(answer.body)}`
  if (status === 413) return { kind: 'too-big', message: said }
  if (status === 400 || status === 409 || status === 422)
    return { kind: 'faulty', faulty: faultyIn(answer.body), message: said }
  if (status === 429 || status === 503) {
    const waitMs = retryAfterMs(headers['retry-after'], Date.now())
    return { kind: 'retry', message: said, hopeless: false, waitMs }
  }
  if (status >= 500 || status === 408 || status === 425) return { kind: 'retry', message: said, hopeless: false }
  const advice = ADVICE[status] ?? 'this is not the answer of a Windlass server: check the address'
  return { kind: 'retry', message: `${said}: ${advice}`, hopeless: true }
}

function headerOf({ headers }: HttpResponse, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Places in the batch that a 400 names: `$[3].data.uid` is 3. */
function faultyIn(body: Buffer): number[] {
  const refusal = parsed(body) as { faults?: { path?: unknown }[] } | undefined
  if (!Array.isArray(refusal?.faults)) return []
  const places = refusal.faults.map((fault) => /^\$\[(\d+)\]/.exec(String(fault?.path))?.[1])
  return [...new Set(places.filter((place) => place !== undefined).map(Number))]
}

function sayings(body: Buffer): string {
  const refusal = parsed(body) as { message?: unknown; faults?: { path?: unknown; message?: unknown }[] } | undefined
  const faults = Array.isArray(refusal?.faults)
    ? refusal.faults.slice(0, 3).map((fault) => `${fault?.path} ${fault?.message}`)
    : []
  const words = [...(typeof refusal?.message === 'string' ? [refusal.message] : []), ...faults].join('; ')
  return words ? ` (${words.slice(0, 1000)})` : ''
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
