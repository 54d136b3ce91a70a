import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../call.ts'
import { kindOf, messageOf, transient, WindlassError } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import { refusalError } from './answer.ts'
import { createKubernetesApi, type RequestSeen } from './api.ts'
import type { KubernetesConnection } from './connection.ts'
import { jsonLines } from './json-lines.ts'
import type { ObjectMeta } from './objects.ts'
import { type Resource, resourcePath } from './resources.ts'

export interface WatchEvent<P> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  object: P
  /** The version at which it happened. */
  resourceVersion: string
}

export interface ListWatchOptions<T extends { metadata: ObjectMeta }, P = T> {
  connection: KubernetesConnection
  resource: Resource<T>
  namespace?: string
  fieldSelector?: string
  labelSelector?: string
  /** What is kept of an object. Callbacks see only this, so that a long list needs little memory. */
  project?: (object: T) => P
  /** A complete list: what is not in it does not exist. Comes at the start and after every gap. */
  onList(items: P[], resourceVersion: string): void | Promise<void>
  onEvent(event: WatchEvent<P>): void | Promise<void>
  /** Nothing changed up to this version. */
  onBookmark?(resourceVersion: string): void | Promise<void>
  onRequest?(seen: RequestSeen): void
  /** The only way to end it. */
  signal: AbortSignal
  log: Logger
  /** Objects per page of the list. */
  pageSize?: number
  /**
   * A watch from which nothing came for so long is opened anew, from the last version. Servers send a bookmark each minute, so
   * a healthy watch is never that quiet; below it TCP keep-alive finds a peer that vanished.
   */
  silenceMs?: number
  /** Longest wait before the first try after a failure; doubled at each further one. The real wait is any part of it. */
  backoffMs?: number
}

/** A list and watch that goes on until its signal fires, and what metrics want to know of it. */
export interface ListWatch {
  /** Resolves when the signal has fired and no callback runs any more. Never rejects. */
  readonly done: Promise<void>
  /** Unix time in milliseconds of the last byte from the server; 0 before the first. */
  readonly lastSignOfLifeMs: number
  /** Complete lists so far. */
  readonly lists: number
  /** Watches that ended otherwise than by the server's time limit. */
  readonly restarts: number
  /** Errors thrown by callbacks. */
  readonly callbackErrors: number
}

const SILENCE_MS = 75_000
const OPEN_TIMEOUT_MS = 15_000
/** The server ends a watch after a random time between these, so that many clients don't come back at once. */
const WATCH_SECONDS = { min: 300, max: 600 }
/** A watch that the server ended sooner than this was not ended by its time limit. */
const SHORT_WATCH_MS = 5_000
const BACKOFF_MS = { first: 800, max: 30_000 }
const CALM_MS = 120_000

/** Reports all objects of a kind and then each change of them, whatever happens to server, network or callbacks. */
export function listWatch<T extends { metadata: ObjectMeta }, P = T>(options: ListWatchOptions<T, P>): ListWatch {
  return new RunningListWatch(options)
}

class RunningListWatch<T extends { metadata: ObjectMeta }, P> implements ListWatch {
  readonly done: Promise<void>
  lastSignOfLifeMs = 0
  lists = 0
  restarts = 0
  callbackErrors = 0
  readonly #options: ListWatchOptions<T, P>
  readonly #project: (object: T) => P
  readonly #log: Logger
  #failures = 0
  #failedAtMs = 0

  constructor(options: ListWatchOptions<T, P>) {
    this.#options = options
    this.#project = options.project ?? ((object) => object as unknown as P)
    this.#log = options.log.child({ resource: options.resource.plural })
    this.done = this.#run()
  }

  async #run(): Promise<void> {
    const { signal } = this.#options
    let version: string | undefined
    while (!signal.aborted) {
      try {
        version ??= await this.#list()
        version = await this.#watch(version)
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof VersionLost) version = undefined
        else if (error instanceof WatchBroken) version = error.version
        await this.#pause(error)
      }
    }
  }

  async #list(): Promise<string> {
    const { connection, resource, namespace, fieldSelector, labelSelector, signal, onRequest } = this.#options
    const api = createKubernetesApi(connection, { onRequest })
    const call: Call = { signal, urgency: 'background', log: this.#log, beforeWrite: async () => {} }
    const selection = { namespace, fieldSelector, labelSelector, pageSize: this.#options.pageSize }
    const list = await api.list<T, P>(resource, { ...selection, project: this.#project }, call)
    this.lists++
    this.lastSignOfLifeMs = Date.now()
    this.#log.debug({ items: list.items.length, resourceVersion: list.resourceVersion }, 'listed')
    await this.#call(() => this.#options.onList(list.items, list.resourceVersion))
    return list.resourceVersion
  }

  /** Watches until the server's time limit and returns the version that was reached. */
  async #watch(from: string): Promise<string> {
    const { silenceMs = SILENCE_MS } = this.#options
    let version = from
    let silent = false
    const opened = performance.now()
    const stream = await this.#open(from)
    const silence = setTimeout(() => {
      silent = true
      stream.destroy()
    }, silenceMs)
    const alive = async function* (this: RunningListWatch<T, P>) {
      for await (const chunk of stream.body) {
        this.lastSignOfLifeMs = Date.now()
        silence.refresh()
        yield chunk
      }
    }
    try {
      for await (const document of jsonLines(alive.call(this))) {
        version = await this.#take(document as WatchDocument<T>, version)
        silence.refresh()
        if (this.#options.signal.aborted) break
      }
    } catch (error) {
      if (error instanceof VersionLost) throw error
      if (!silent) throw new WatchBroken(version, error)
    } finally {
      clearTimeout(silence)
      stream.destroy()
    }
    if (silent) {
      this.restarts++
      this.#log.warn({ silenceMs, resourceVersion: version }, 'watch went silent, opening it anew')
    } else if (!this.#options.signal.aborted && performance.now() - opened < SHORT_WATCH_MS) {
      throw new WatchBroken(version, transient('the server ended the watch at once', { code: 'short-watch' }))
    }
    return version
  }

  async #open(from: string) {
    const { connection, resource, namespace, fieldSelector, labelSelector, signal, onRequest } = this.#options
    const seconds = Math.round(WATCH_SECONDS.min + Math.random() * (WATCH_SECONDS.max - WATCH_SECONDS.min))
    const started = performance.now()
    const seen = { verb: 'watch', resource: resource.plural }
    try {
      const stream = await connection.stream({
        method: 'GET',
        path: resourcePath(resource, { namespace }),
        query: {
          watch: 'true',
          allowWatchBookmarks: 'true',
          resourceVersion: from,
          timeoutSeconds: String(seconds),
          fieldSelector,
          labelSelector,
        },
        headers: { accept: 'application/json' },
        timeoutMs: OPEN_TIMEOUT_MS,
        signal,
      })
      onRequest?.({ ...seen, status: stream.status, ms: performance.now() - started })
      this.lastSignOfLifeMs = Date.now()
      if (stream.status === 200) return stream
      const body = await readStart(stream.body)
      stream.destroy()
      if (stream.status === 410) throw new VersionLost('the version is older than what the server holds')
      const { status, headers } = stream
      throw refusalError(
        { status, headers, body, verb: 'watch', resource: resource.plural, object: resource.plural },
        Date.now(),
      )
    } catch (error) {
      if (error instanceof VersionLost) throw error
      if (!(error instanceof WindlassError && error.status !== undefined))
        onRequest?.({ ...seen, status: 0, ms: performance.now() - started })
      throw new WatchBroken(from, error)
    }
  }

  async #take({ type, object }: WatchDocument<T>, version: string): Promise<string> {
    if (type === 'ERROR') {
      const { code, message } = object as unknown as { code?: number; message?: string }
      throw new VersionLost(`the server ended the watch with ${code ?? 'an error'}: ${message ?? 'no explanation'}`)
    }
    const resourceVersion = object.metadata?.resourceVersion ?? version
    if (type === 'BOOKMARK') await this.#call(() => this.#options.onBookmark?.(resourceVersion))
    else if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED')
      await this.#call(() => this.#options.onEvent({ type, object: this.#project(object), resourceVersion }))
    return resourceVersion
  }

  /** A callback's error is its own: the watch goes on. */
  async #call(callback: () => void | Promise<void> | undefined): Promise<void> {
    try {
      await callback()
    } catch (error) {
      this.callbackErrors++
      this.#log.error({ err: error }, 'a callback of the watch failed')
    }
  }

  async #pause(error: unknown): Promise<void> {
    this.restarts++
    const now = Date.now()
    if (now - this.#failedAtMs > CALM_MS) this.#failures = 0
    this.#failedAtMs = now
    const { backoffMs = BACKOFF_MS.first } = this.#options
    const ceilingMs = Math.min(backoffMs * 2 ** this.#failures, BACKOFF_MS.max)
    const cause = error instanceof WatchBroken ? error.cause : error
    // The first lost version after a calm time is an ordinary event, and the sooner the list the shorter the gap.
    const first = error instanceof VersionLost && this.#failures === 0
    this.#failures++
    const asked = kindOf(cause) === 'throttled' ? ((cause as WindlassError).retryAtMs ?? now) - now : 0
    const waitMs = first ? 0 : Math.max(Math.random() * ceilingMs, asked)
    this.#log.warn({ reason: messageOf(cause), waitMs: Math.round(waitMs) }, 'watch interrupted')
    await sleep(waitMs, undefined, { signal: this.#options.signal }).catch(() => {})
  }
}

interface WatchDocument<T> {
  type: string
  object: T
}

/** The watch can't go on from its version: everything must be listed. */
class VersionLost extends Error {}

/** The watch broke, and can go on from `version`. */
class WatchBroken extends Error {
  readonly version: string

  constructor(version: string, cause: unknown) {
    super('the watch broke', { cause })
    this.version = version
  }
}

async function readStart(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    if (length > 64 * 1024) break
  }
  return Buffer.concat(chunks)
}
