import type { ServerResponse } from 'node:http'
import { apiVersionOf, type Kind } from './kinds.ts'
import { Refusal } from './refusal.ts'
import type { Change, Store, StoredObject } from './store.ts'

export interface WatchRequest {
  kind: Kind
  namespace?: string
  /** Undefined or `0`: what is there comes first, as ADDED. */
  resourceVersion?: string
  bookmarks: boolean
  timeoutSeconds: number
  matches: (object: StoredObject) => boolean
  shape: (object: StoredObject) => unknown
}

interface OpenWatch {
  response: ServerResponse
  request: WatchRequest
  frozen: boolean
  end(): void
}

/** All watches that are open, and what tests do to them. */
export class Watches {
  /** How often a watch that asked for it gets a bookmark. */
  bookmarkIntervalMs = 60_000
  readonly #open = new Set<OpenWatch>()
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  get count(): number {
    return this.#open.size
  }

  start(request: WatchRequest, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const { resourceVersion, kind, timeoutSeconds } = request
    const watch: OpenWatch = { response, request, frozen: false, end: () => {} }
    let reached = Number(resourceVersion ?? 0)
    const send = (type: string, object: unknown) => {
      if (!watch.frozen && !response.writableEnded) response.write(`${JSON.stringify({ type, object })}\n`)
    }
    const pass = (change: Change) => {
      if (change.kind !== kind || change.version <= reached) return
      reached = change.version
      const seen = visible(change, request)
      if (seen) send(seen, request.shape(change.object))
    }
    const bookmark = () =>
      send('BOOKMARK', {
        kind: kind.kind,
        apiVersion: apiVersionOf(kind),
        metadata: { resourceVersion: String(this.#store.version), creationTimestamp: null },
      })
    try {
      if (reached === 0) {
        reached = this.#store.version
        for (const object of this.#store.list(kind, request.namespace))
          if (request.matches(object)) send('ADDED', request.shape(object))
      } else for (const change of this.#store.since(reached)) pass(change)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      send('ERROR', error.toStatus())
      response.end()
      return
    }
    const unsubscribe = this.#store.subscribe(pass)
    const timers: NodeJS.Timeout[] = []
    if (request.bookmarks) {
      timers.push(setInterval(bookmark, this.bookmarkIntervalMs))
      if (timeoutSeconds > 2) timers.push(setTimeout(bookmark, (timeoutSeconds - 2) * 1000))
    }
    timers.push(setTimeout(() => !watch.frozen && response.end(), timeoutSeconds * 1000))
    watch.end = () => {
      unsubscribe()
      for (const timer of timers) clearTimeout(timer)
      this.#open.delete(watch)
    }
    this.#open.add(watch)
    response.once('close', watch.end)
  }

  /** Nothing more is sent on the watches open now, and none of them closes: a peer that went silent. */
  freeze(plural?: string): void {
    for (const watch of this.#chosen(plural)) watch.frozen = true
  }

  /** Cuts the connections. */
  drop(plural?: string): void {
    for (const watch of this.#chosen(plural)) watch.response.destroy()
  }

  /** Ends them in order, as at their time limit. */
  finish(plural?: string): void {
    for (const watch of this.#chosen(plural)) watch.response.end()
  }

  /** Sends an ERROR event and ends them. */
  fail(status: { code: number; reason: string; message: string }, plural?: string): void {
    for (const { response } of this.#chosen(plural)) {
      const object = new Refusal(status.code, status.reason, status.message).toStatus()
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
    }
  }

  /** Sends text as it is. */
  write(text: string, plural?: string): void {
    for (const { response } of this.#chosen(plural)) response.write(text)
  }

  close(): void {
    for (const watch of [...this.#open]) {
      watch.response.destroy()
      watch.end()
    }
  }

  #chosen(plural: string | undefined): OpenWatch[] {
    return [...this.#open].filter(({ request }) => plural === undefined || request.kind.plural === plural)
  }
}

/** An object that comes into a selector is new to the watch, one that leaves it is gone. */
function visible({ type, object, previous }: Change, { namespace, matches }: WatchRequest): Change['type'] | undefined {
  if (namespace !== undefined && object.metadata.namespace !== namespace) return undefined
  const was = previous !== undefined && matches(previous)
  const is = type !== 'DELETED' && matches(object)
  if (was && is) return 'MODIFIED'
  if (is) return 'ADDED'
  return was ? 'DELETED' : undefined
}
