import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../call.ts'
import { kindOf, messageOf, WindlassError } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import type { KubernetesApi } from './api.ts'
import { EVENTS } from './resources.ts'

/** What `kubectl describe` shows below an object. */
export interface EventToRecord {
  object: { kind: string; namespace?: string; name: string; uid: string; apiVersion?: string }
  type: 'Normal' | 'Warning'
  /** One word in CamelCase, e.g. `SyncLoadBalancerFailed`. */
  reason: string
  message: string
  /** The controller, e.g. `service-controller`. */
  component: string
}

export interface EventRecorderOptions {
  api: KubernetesApi
  log: Logger
  /** Milliseconds since any fixed point, never going back. */
  nowMs?: () => number
  /** Longest wait between two tries of one event. */
  maxRetryDelayMs?: number
}

const BUFFER = 1000
const IN_FLIGHT = 8
const MAX_MESSAGE = 1024
const TRIES = 12
const RETRY_DELAY_MS = { first: 500, max: 10_000 }
const BURST = 25
const REFILL_MS = 300_000
const WINDOW_MS = 600_000
/** From this many differing messages of one reason on, they become one event. */
const LOOK_ALIKES = 10
/** Objects that are remembered for the filters. */
const MEMORY = 4096

/** An event as it is, or will be, stored: equal ones only raise its count. */
interface Entry {
  name: string
  namespace: string
  event: EventToRecord
  message: string
  firstAt: string
  lastAt: string
  count: number
  seenAtMs: number
  stored: boolean
  /** `changed`: recorded again while it was being written, so one more write is due. */
  state: 'rest' | 'queued' | 'writing' | 'changed'
}

/**
 * Writes Events about objects. `record` neither waits nor throws, and losing an event is acceptable: equal ones within ten minutes
 * raise the count of the first, look-alikes are combined, and one object gets 25 in a burst and then one in five minutes.
 */
export class EventRecorder {
  readonly #api: KubernetesApi
  readonly #log: Logger
  readonly #nowMs: () => number
  readonly #maxRetryDelayMs: number
  readonly #stopped = new AbortController()
  readonly #call: Call
  readonly #entries = new Map<string, Entry>()
  readonly #buckets = new Map<string, { tokens: number; filledAtMs: number }>()
  readonly #lookAlikes = new Map<string, { messages: Set<string>; seenAtMs: number }>()
  readonly #queue: Entry[] = []
  readonly #idle = new Set<() => void>()
  #inFlight = 0
  /** Events that were filtered out, did not fit, or could not be written. */
  dropped = 0
  /** Creates and patches that the API server accepted. */
  written = 0

  constructor({ api, log, nowMs = () => performance.now(), maxRetryDelayMs }: EventRecorderOptions) {
    this.#api = api
    this.#log = log
    this.#nowMs = nowMs
    this.#maxRetryDelayMs = maxRetryDelayMs ?? RETRY_DELAY_MS.max
    this.#call = { signal: this.#stopped.signal, urgency: 'background', log, beforeWrite: async () => {} }
  }

  record(event: EventToRecord): void {
    if (this.#stopped.signal.aborted || !this.#allowed(event)) {
      this.dropped++
      return
    }
    const entry = this.#entryFor(event)
    if (entry.state === 'writing') entry.state = 'changed'
    if (entry.state !== 'rest') return
    if (this.#queue.length >= BUFFER) {
      this.dropped++
      return
    }
    entry.state = 'queued'
    this.#queue.push(entry)
    this.#pump()
  }

  /** Waits until all is written, at most so long. True when nothing is left. */
  async flush(timeoutMs: number): Promise<boolean> {
    if (this.#isIdle()) return true
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle.add(resolve)
    const timer = setTimeout(resolve, timeoutMs)
    await promise
    clearTimeout(timer)
    this.#idle.delete(resolve)
    return this.#isIdle()
  }

  /** Gives up what is not written yet. */
  close(): void {
    this.#stopped.abort()
    this.dropped += this.#queue.length
    this.#queue.length = 0
  }

  #isIdle(): boolean {
    return this.#inFlight === 0 && this.#queue.length === 0
  }

  #allowed({ object, component, type }: EventToRecord): boolean {
    const key = join(component, type, object.kind, object.namespace, object.name, object.uid)
    const now = this.#nowMs()
    const bucket = this.#buckets.get(key) ?? { tokens: BURST, filledAtMs: now }
    const refilled = Math.floor((now - bucket.filledAtMs) / REFILL_MS)
    if (refilled > 0) {
      bucket.tokens = Math.min(BURST, bucket.tokens + refilled)
      bucket.filledAtMs += refilled * REFILL_MS
    }
    remember(this.#buckets, key, bucket)
    if (bucket.tokens === 0) return false
    bucket.tokens--
    return true
  }

  #entryFor(event: EventToRecord): Entry {
    const { object, component, type, reason } = event
    const now = this.#nowMs()
    const kind = join(component, type, reason, object.kind, object.namespace, object.name, object.uid)
    const message = cut(event.message)
    const alike = this.#lookAlike(kind, message, now)
    const key = alike ? kind : join(kind, message)
    const at = timestamp()
    const known = this.#entries.get(key)
    const entry =
      known && now - known.seenAtMs < WINDOW_MS
        ? known
        : {
            name: eventName(object.name),
            namespace: object.namespace ?? 'default',
            event,
            message,
            firstAt: at,
            lastAt: at,
            count: 0,
            seenAtMs: now,
            stored: false,
            state: 'rest' as const,
          }
    entry.message = alike ? cut(`(combined from similar events): ${message}`) : message
    entry.count++
    entry.lastAt = at
    entry.seenAtMs = now
    remember(this.#entries, key, entry)
    return entry
  }

  #lookAlike(kind: string, message: string, now: number): boolean {
    const seen = this.#lookAlikes.get(kind)
    const current = seen && now - seen.seenAtMs < WINDOW_MS ? seen : { messages: new Set<string>(), seenAtMs: now }
    if (current.messages.size <= LOOK_ALIKES) current.messages.add(digest(message))
    current.seenAtMs = now
    remember(this.#lookAlikes, kind, current)
    return current.messages.size > LOOK_ALIKES
  }

  #pump(): void {
    while (this.#inFlight < IN_FLIGHT) {
      const entry = this.#queue.shift()
      if (!entry) break
      this.#inFlight++
      void this.#deliver(entry).finally(() => {
        this.#inFlight--
        this.#pump()
        if (this.#isIdle()) for (const resolve of this.#idle) resolve()
      })
    }
  }

  /** Never rejects. */
  async #deliver(entry: Entry): Promise<void> {
    do {
      entry.state = 'writing'
      if (await this.#deliverOnce(entry)) this.written++
      else this.dropped++
    } while (entryState(entry) === 'changed' && !this.#stopped.signal.aborted)
    entry.state = 'rest'
  }

  async #deliverOnce(entry: Entry): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#write(entry)
        return true
      } catch (error) {
        if (this.#stopped.signal.aborted) return false
        if (isHopeless(error) || tries === TRIES) {
          const { reason, object } = entry.event
          const about = { reason, kind: object.kind, namespace: object.namespace, name: object.name }
          this.#log.warn({ ...about, cause: messageOf(error) }, 'event could not be written')
          return false
        }
        await sleep(this.#delayMs(error, tries), undefined, { signal: this.#stopped.signal, ref: false }).catch(
          () => {},
        )
      }
    }
  }

  async #write(entry: Entry): Promise<void> {
    const { event, namespace, message, count, firstAt, lastAt } = entry
    if (entry.stored) {
      const body = { count, message, lastTimestamp: lastAt }
      const patched = await this.#api.patch(
        EVENTS,
        { namespace, name: entry.name },
        { type: 'merge', body },
        this.#call,
      )
      if (patched) return
      // The API server forgets events after an hour.
      entry.stored = false
      entry.name = eventName(event.object.name)
    }
    const { object, type, reason, component } = event
    try {
      await this.#api.create(
        EVENTS,
        {
          metadata: { name: entry.name, namespace },
          involvedObject: { apiVersion: 'v1', ...object },
          type,
          reason,
          message,
          source: { component },
          reportingComponent: component,
          reportingInstance: '',
          count,
          firstTimestamp: firstAt,
          lastTimestamp: lastAt,
        },
        this.#call,
      )
    } catch (error) {
      // The answer to an earlier try was lost: it is there.
      if (!(error instanceof WindlassError && error.code === 'AlreadyExists')) throw error
      entry.stored = true
      await this.#write(entry)
    }
    entry.stored = true
  }

  #delayMs(error: unknown, tries: number): number {
    const asked = error instanceof WindlassError && error.retryAtMs ? error.retryAtMs - Date.now() : 0
    const delay = Math.min(RETRY_DELAY_MS.first * 2 ** (tries - 1), this.#maxRetryDelayMs) * (0.5 + Math.random() / 2)
    return Math.max(delay, Math.min(asked, 60_000))
  }
}

/** No right to write events, a namespace that is gone, an event that is refused: trying again changes nothing. */
function isHopeless(error: unknown): boolean {
  const kind = kindOf(error)
  return kind === 'permanent' || kind === 'aborted' || (error instanceof WindlassError && error.status === 403)
}

/** Read through a function, since the compiler does not know that `record` changes it during an await. */
function entryState(entry: Entry): Entry['state'] {
  return entry.state
}

/** Keeps the map in order of last use, and short. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= MEMORY) return
  const oldest = map.keys().next()
  if (!oldest.done) map.delete(oldest.value)
}

function join(...parts: (string | undefined)[]): string {
  return parts.map((part) => part ?? '').join('\0')
}

function digest(message: string): string {
  return createHash('sha1').update(message).digest('base64')
}

function cut(message: string): string {
  return message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 1)}…`
}

function eventName(object: string): string {
  return `${object.slice(0, 230)}.${randomBytes(8).toString('hex')}`
}

/** The API's `Time` has whole seconds. */
function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z')
}
