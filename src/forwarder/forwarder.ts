import { SENT_BATCH_BYTES, SENT_BATCH_EVENTS } from '../events/limits.ts'
import { EVENT_TYPE } from '../events/types.ts'
import { HttpClient } from '../http/client.ts'
import type { Logger } from '../telemetry/log.ts'
import { traceIdOf } from '../telemetry/traceparent.ts'
import { Delivery, type Verdict } from './delivery.ts'
import { Ledger, type Outgoing } from './ledger.ts'
import { Alarm, backoffMs, DEFAULT_PACE, type Pace } from './pace.ts'
import type { ObjectSource, WatchedKind, Watching } from './source.ts'

export interface ForwarderOptions {
  cluster: string
  /** Webhook keys of the cluster; the first signs. */
  keys: readonly string[]
  /** Base URL of the server. */
  serverUrl: string
  source: ObjectSource
  log: Logger
  /** Stops the forwarder, as `stop` does. */
  signal?: AbortSignal
  kinds?: readonly WatchedKind[]
  /** PEM of certificate authorities of the server that are trusted beside the public ones. */
  extraCa?: string | Buffer
  pace?: Partial<Pace>
}

export interface Forwarder {
  /** Resolves when the server has acknowledged a whole snapshot of each kind; never if that does not happen. */
  readonly ready: Promise<void>
  /** Delivers what is pending if that takes only seconds, then ends. What is left is in the snapshot of the next start. */
  stop(): Promise<void>
  stats(): ForwarderStats
  /** Kinds of which nothing has been heard for too long, in sentences: their changes may be missed. */
  silences(): string[]
}

export interface ForwarderStats {
  ready: boolean
  objects: number
  /** Objects with a change that was not yet sent, and events that were sent and not yet acknowledged. */
  pending: number
  /** Milliseconds that the oldest of those changes has waited. */
  lagMs: number
  /** Events that were handed to delivery, and those of them that the server acknowledged. */
  sent: number
  acknowledged: number
  /** Events that the server found faulty. */
  refused: number
  requests: number
  retries: number
  /** Events of Kubernetes that never left, because they changed nothing that a cloud controller looks at. */
  filtered: number
  relists: number
  watchRestarts: number
  /** Unix milliseconds; 0 before the first. */
  lastAcknowledgedMs: number
  /** Of the kind of which it is longest ago: one that lives must not hide one that is silent. */
  lastSignOfLifeMs: number
  epoch: string | undefined
  /** Why the server takes nothing, while it does not. */
  trouble: string | undefined
}

/** Watches a cluster's Nodes and Services, and tells the server each change until it has it. */
export function startForwarder(options: ForwarderOptions): Forwarder {
  return new RunningForwarder(options)
}

/** Up to so many events at a time are changes that somebody follows, each worth its log lines. */
const FEW = 5
/** So many events refused one by one and none accepted: the others are not asked for in the same way. */
const HOPELESS = 8

class RunningForwarder implements Forwarder {
  readonly ready: Promise<void>
  readonly #log: Logger
  readonly #pace: Pace
  readonly #http: HttpClient
  readonly #delivery: Delivery
  readonly #ledgers: Ledger[]
  readonly #watches: Watching[]
  readonly #unwatch = new AbortController()
  readonly #startedMs = Date.now()
  readonly #work = new Alarm()
  readonly #resolveReady: () => void
  readonly #ended: Promise<void>
  #stopping: Promise<void> | undefined
  #abandoned = false
  #onWay: readonly Outgoing[] = []
  #held: Outgoing | undefined
  #epoch: string | undefined
  #isReady = false
  #sent = 0
  #acknowledged = 0
  #refused = 0
  #requests = 0

  constructor(options: ForwarderOptions) {
    const { cluster, source, kinds = ['Node', 'Service'] } = options
    this.#log = options.log
    this.#pace = { ...DEFAULT_PACE, ...options.pace }
    this.#http = new HttpClient({ maxSockets: 2, ...(options.extraCa ? { extraCa: options.extraCa } : {}) })
    this.#delivery = new Delivery({ ...options, http: this.#http, log: this.#log, pace: this.#pace })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ready = promise
    this.#resolveReady = resolve
    this.#ledgers = kinds.map((kind) => new Ledger(kind, cluster, this.#pace.snapshotGapMs))
    this.#watches = this.#ledgers.map((ledger) => this.#watch(ledger, source))
    this.#ended = this.#run()
    if (options.signal?.aborted) void this.stop()
    else options.signal?.addEventListener('abort', () => void this.stop(), { once: true })
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  stats(): ForwarderStats {
    const sum = (of: (ledger: Ledger) => number) => this.#ledgers.reduce((all, ledger) => all + of(ledger), 0)
    const waiting = this.#held ? [...this.#onWay, this.#held] : this.#onWay
    const now = Date.now()
    const since = [...this.#ledgers.map((ledger) => ledger.oldestMs ?? now), ...waiting.map((event) => event.sinceMs)]
    return {
      ready: this.#isReady,
      objects: sum((ledger) => ledger.objects),
      pending: sum((ledger) => ledger.pending) + waiting.length,
      lagMs: Math.max(0, ...since.map((ms) => now - ms)),
      sent: this.#sent,
      acknowledged: this.#acknowledged,
      refused: this.#refused,
      requests: this.#requests,
      retries: this.#delivery.retries,
      filtered: sum((ledger) => ledger.filtered),
      relists: sum((ledger) => ledger.relists),
      watchRestarts: this.#watches.reduce((all, watch) => all + watch.restarts, 0),
      lastAcknowledgedMs: this.#delivery.lastAcceptedMs,
      lastSignOfLifeMs: Math.min(...this.#watches.map((watch) => watch.lastSignOfLifeMs)),
      epoch: this.#epoch,
      trouble: this.#delivery.trouble,
    }
  }

  silences(): string[] {
    const now = Date.now()
    return this.#watches.flatMap(({ lastSignOfLifeMs }, i) => {
      const silentMs = now - (lastSignOfLifeMs || this.#startedMs)
      if (silentMs <= this.#pace.silentMs) return []
      return [
        `nothing has been heard of ${this.#ledgers[i]?.kind}s for ${Math.round(silentMs / 1000)} s: does the API server answer, and may the forwarder list and watch them?`,
      ]
    })
  }

  #watch(ledger: Ledger, source: ObjectSource): Watching {
    const { kind } = ledger
    return source.watch(
      kind,
      {
        onList: (items, resourceVersion) => {
          ledger.list(items, resourceVersion)
          this.#log.info({ kind, objects: items.length, resourceVersion, relists: ledger.relists }, 'Listed')
          this.#work.ring()
        },
        onEvent: ({ type, object, resourceVersion }) => {
          if (type === 'DELETED') ledger.remove(object, resourceVersion)
          else ledger.change(object)
          if (ledger.pending > 0) this.#work.ring()
        },
        onBookmark: (resourceVersion) => ledger.bookmark(resourceVersion),
      },
      this.#unwatch.signal,
    )
  }

  async #stop(): Promise<void> {
    this.#unwatch.abort()
    this.#work.ring()
    this.#delivery.hurry()
    const deadline = setTimeout(() => {
      this.#abandoned = true
      this.#delivery.abandon()
    }, this.#pace.flushMs)
    await Promise.all([this.#ended, ...this.#watches.map((watch) => watch.done)])
    clearTimeout(deadline)
    this.#http.close()
    const { pending } = this.stats()
    this.#log.info({ pending }, 'Forwarder stopped; what is pending is in the snapshot of the next start')
  }

  async #run(): Promise<void> {
    let takenMs = Number.NEGATIVE_INFINITY
    let answeredMs = Number.NEGATIVE_INFINITY
    while (!this.#abandoned) {
      const now = performance.now()
      const dueInMs = this.#dueInMs()
      if (this.#stopping && dueInMs > 0) return
      const idleMs = Math.min(dueInMs, answeredMs + this.#pace.keepAliveMs - now)
      const gatherMs = this.#stopping || this.#inSnapshot() ? 0 : takenMs + this.#pace.gatherMs - now
      const waitMs = idleMs > 0 ? idleMs : gatherMs
      if (waitMs > 0) await this.#work.wait(waitMs)
      else {
        const batch = this.#take()
        if (batch.length > 0) takenMs = now
        await this.#deliver(batch)
        answeredMs = performance.now()
      }
    }
  }

  #dueInMs(): number {
    if (this.#held) return 0
    const due = this.#ledgers.map((ledger) => ledger.dueAtMs()).filter((ms) => ms !== undefined)
    return due.length === 0 ? Number.POSITIVE_INFINITY : Math.max(0, Math.min(...due) - Date.now())
  }

  #inSnapshot(): boolean {
    const now = Date.now()
    return this.#ledgers.some((ledger) => ledger.snapshotting(now))
  }

  #take(): Outgoing[] {
    const now = Date.now()
    // What a human just changed goes before the long lists of another kind.
    const ledgers = this.#ledgers.toSorted((a, b) => Number(a.snapshotting(now)) - Number(b.snapshotting(now)))
    const batch: Outgoing[] = []
    let bytes = 2
    for (;;) {
      let event = this.#held
      this.#held = undefined
      for (const ledger of ledgers) event ??= ledger.next(now)
      if (!event) return batch
      bytes += event.bytes + 1
      if (batch.length > 0 && (bytes > SENT_BATCH_BYTES || batch.length >= SENT_BATCH_EVENTS)) {
        this.#held = event
        return batch
      }
      batch.push(event)
    }
  }

  /** Sends a batch, in parts where it must be, in order. An empty one only asks for the epoch. */
  async #deliver(batch: readonly Outgoing[]): Promise<void> {
    this.#sent += batch.length
    this.#tell(batch, 'Sending a change')
    const parts = [batch]
    let accepted = 0
    let refusedAlone = 0
    for (let part = parts.shift(); part; part = parts.shift()) {
      this.#onWay = [...part, ...parts.flat()]
      this.#requests++
      const verdict = await this.#delivery.deliver(`[${part.map((event) => event.json).join(',')}]`, part.length > 1)
      if (verdict.kind === 'abandoned') return
      if (verdict.kind === 'accepted') {
        accepted++
        this.#accept(part, verdict.epoch)
        continue
      }
      if (part.length === 0) {
        this.#log.error({ reason: verdict.message }, 'The server refuses an empty batch: it is not a Windlass server')
        continue
      }
      const { bad, rest } = divide(part, verdict)
      for (const event of bad) this.#refuse(event, verdict.message)
      if (part.length === 1) refusedAlone++
      if (accepted === 0 && refusedAlone >= HOPELESS) {
        for (const event of [...rest.flat(), ...parts.flat()]) this.#refuse(event, verdict.message)
        break
      }
      parts.unshift(...rest)
    }
    this.#onWay = []
  }

  #accept(part: readonly Outgoing[], epoch: string | undefined): void {
    for (const event of part) event.acknowledged()
    this.#acknowledged += part.length
    this.#tell(part, 'The server has a change')
    for (const event of part)
      if (event.type === EVENT_TYPE.snapshotEnd)
        this.#log.info({ snapshot: event.snapshot }, 'The server has a whole snapshot')
    if (!this.#isReady && this.#ledgers.every((ledger) => ledger.synced)) {
      this.#isReady = true
      this.#resolveReady()
    }
    if (epoch === undefined || epoch === this.#epoch) return
    if (this.#epoch !== undefined) {
      this.#log.warn({ epoch, before: this.#epoch }, 'The memory of the server is a new one: sending everything again')
      for (const ledger of this.#ledgers) ledger.resend()
    }
    this.#epoch = epoch
  }

  #refuse(event: Outgoing, reason: string): void {
    const { faultyMinMs, faultyMaxMs } = this.#pace
    this.#refused++
    event.refused((refusals) => backoffMs(refusals, faultyMinMs, faultyMaxMs))
    this.#log.error(
      { ...fieldsOf(event), reason, bytes: event.bytes },
      'The server refuses an event; the others go on, this one is kept and tried again later. If the forwarder is newer than the server, update the server',
    )
  }

  #tell(events: readonly Outgoing[], message: string): void {
    const bulk = events.length > FEW || events.some((event) => event.snapshot !== undefined)
    const level = bulk ? 'debug' : 'info'
    if (!this.#log.isLevelEnabled(level)) return
    for (const event of events) this.#log[level](fieldsOf(event), message)
  }
}

function fieldsOf({ subject, id, type, traceparent, snapshot }: Outgoing) {
  return { subject, eventId: id, type, traceId: traceIdOf(traceparent), snapshot }
}

/** What of a refused batch is at fault, and in which parts the rest is to be sent. */
function divide(part: readonly Outgoing[], verdict: Exclude<Verdict, { kind: 'accepted' | 'abandoned' }>) {
  if (part.length === 1) return { bad: part, rest: [] }
  const named = new Set(verdict.kind === 'faulty' ? verdict.faulty.filter((place) => place < part.length) : [])
  if (named.size > 0) {
    const rest = part.filter((_, place) => !named.has(place))
    return { bad: part.filter((_, place) => named.has(place)), rest: rest.length > 0 ? [rest] : [] }
  }
  const middle = Math.ceil(part.length / 2)
  return { bad: [], rest: [part.slice(0, middle), part.slice(middle)] }
}
