import { randomUUID } from 'node:crypto'
import { fingerprint } from '../events/projection.ts'
import { type Subject, subjectOf } from '../events/subject.ts'
import { type Deleted, EVENT_TYPE, type EventType, sourceOf } from '../events/types.ts'
import { beginSpan } from '../telemetry/traces.ts'
import type { Projection, WatchedKind } from './source.ts'

/** One event on its way: its JSON, and what its acknowledgement means. */
export interface Outgoing {
  readonly id: string
  readonly type: EventType
  readonly json: string
  readonly bytes: number
  readonly traceparent: string
  readonly subject?: Subject
  /** The snapshot that it is part of. */
  readonly snapshot?: string
  /** Since when the server should have it, unix milliseconds. */
  readonly sinceMs: number
  acknowledged(): void
  /** The server will not have it as it is: to be tried again no earlier than in this time, unless the object changes. */
  refused(delayMs: (refusals: number) => number): void
}

interface Incarnation {
  uid: string
  version: string
  fingerprint: string
  /**
   * The projection as JSON without its resourceVersion. One flat string: what Kubernetes sent, with images and managed
   * fields, can be let go, and a snapshot can be sent without asking Kubernetes for all of it again.
   */
  json: string
}

interface Entry {
  readonly subject: Subject
  /** What the cluster said last; absent when there is no such object. */
  now?: Incarnation
  /** Incarnations whose end the server has to be told, oldest first. */
  gone: (Deleted & { told: boolean })[]
  /** Fingerprint in the last event that was handed out and not refused. */
  sent?: string
  /** uid in the last event that was handed out. */
  told?: string
  sinceMs?: number
  refusals: number
  heldUntilMs: number
}

/**
 * What the server knows about the objects of one kind, and so what is still to be told. Holds one entry per object, however many
 * changes there are: `next` makes the event from the latest state at the moment when it can be sent.
 */
export class Ledger {
  readonly kind: WatchedKind
  /** Events of Kubernetes that changed nothing a cloud controller looks at. */
  filtered = 0
  /** Lists beyond the first: gaps in the watch. */
  relists = 0
  /** A snapshot has been acknowledged as a whole. */
  synced = false
  readonly #source: string
  readonly #snapshotGapMs: number
  readonly #entries = new Map<Subject, Entry>()
  readonly #pending = new Set<Entry>()
  #version: string | undefined
  #wantedAtMs: number | undefined
  #begunAtMs = Number.NEGATIVE_INFINITY
  #snapshot: { id: string; events: Generator<Outgoing, void>; spoilt: boolean } | undefined
  #snapshotRefusals = 0

  constructor(kind: WatchedKind, cluster: string, snapshotGapMs: number) {
    this.kind = kind
    this.#source = sourceOf(cluster)
    this.#snapshotGapMs = snapshotGapMs
  }

  get objects(): number {
    return this.#entries.size
  }

  get pending(): number {
    return this.#pending.size
  }

  /** Whether a snapshot is being handed out, or should be now. */
  snapshotting(nowMs: number): boolean {
    return this.#snapshot !== undefined || (this.#wantedAtMs !== undefined && this.#wantedAtMs <= nowMs)
  }

  /** Unix milliseconds of the oldest change that was not handed out. */
  get oldestMs(): number | undefined {
    let oldest: number | undefined
    for (const { sinceMs } of this.#pending)
      if (sinceMs !== undefined && (oldest === undefined || sinceMs < oldest)) oldest = sinceMs
    return oldest
  }

  /** When `next` will have something: unix milliseconds, in the past for at once; undefined for nothing. */
  dueAtMs(): number | undefined {
    let due = this.#snapshot ? 0 : this.#wantedAtMs
    for (const { heldUntilMs } of this.#pending) {
      if (due !== undefined && due <= heldUntilMs) continue
      due = heldUntilMs
      if (due === 0) break
    }
    return due
  }

  list(items: readonly Projection[], resourceVersion: string): void {
    const named = new Set<Subject>()
    for (const projection of items) named.add(this.#observe(projection).entry.subject)
    for (const entry of this.#entries.values())
      if (entry.now && !named.has(entry.subject)) this.#end(entry, entry.now.version)
    if (this.#version !== undefined) this.relists++
    this.#version = resourceVersion
    this.#wantedAtMs = Date.now()
  }

  change(projection: Projection): void {
    if (!this.#observe(projection).changed) this.filtered++
    this.#version = projection.resourceVersion
  }

  /** @param resourceVersion of the deletion */
  remove(projection: Projection, resourceVersion: string): void {
    const entry = this.#entries.get(subjectIn(projection))
    if (entry?.now?.uid === projection.uid) this.#end(entry, resourceVersion)
    this.#version = resourceVersion
  }

  bookmark(resourceVersion: string): void {
    this.#version = resourceVersion
  }

  /** The server may have forgotten everything. */
  resend(): void {
    if (this.#version === undefined) return
    this.#wantedAtMs = Math.max(Date.now(), this.#begunAtMs + this.#snapshotGapMs)
  }

  /** The next event that the server has to be sent; whoever takes it calls `acknowledged` or `refused` at some time. */
  next(nowMs: number): Outgoing | undefined {
    if (this.#wantedAtMs !== undefined && this.#wantedAtMs <= nowMs) {
      const id = randomUUID()
      this.#wantedAtMs = undefined
      this.#begunAtMs = nowMs
      this.#snapshot = { id, events: this.#snapshotEvents(id), spoilt: false }
    }
    if (this.#snapshot) {
      const { value } = this.#snapshot.events.next()
      if (value) return value
    }
    for (const entry of this.#pending) {
      if (entry.heldUntilMs > nowMs) continue
      const event = this.#deletion(entry) ?? this.#changeOf(entry)
      if (event) return event
    }
    return undefined
  }

  #observe(projection: Projection): { entry: Entry; changed: boolean } {
    const { resourceVersion: version, ...seen } = projection
    const print = fingerprint(projection)
    const entry = this.#entryOf(subjectIn(projection))
    if (entry.now?.fingerprint === print) {
      entry.now.version = version
      return { entry, changed: false }
    }
    if (entry.now && entry.now.uid !== seen.uid) this.#end(entry, entry.now.version)
    entry.now = { uid: seen.uid, version, fingerprint: print, json: JSON.stringify(seen) }
    this.#pend(entry)
    return { entry, changed: true }
  }

  #end(entry: Entry, version: string): void {
    if (!entry.now) return
    const { uid } = entry.now
    // Of lives that began and ended while nothing could be sent, the first and the last are told: there is no end to their number.
    entry.gone = entry.gone.filter((one, index) => one.told || index === 0)
    entry.gone.push({ uid, resourceVersion: version, told: entry.told === uid })
    entry.now = undefined
    this.#pend(entry)
  }

  #pend(entry: Entry): void {
    entry.refusals = 0
    entry.heldUntilMs = 0
    entry.sinceMs ??= Date.now()
    this.#pending.add(entry)
  }

  #entryOf(subject: Subject): Entry {
    let entry = this.#entries.get(subject)
    if (!entry) {
      entry = { subject, gone: [], refusals: 0, heldUntilMs: 0 }
      this.#entries.set(subject, entry)
    }
    return entry
  }

  *#snapshotEvents(snapshot: string): Generator<Outgoing, void> {
    // Taken before the first object is: what is there at this version and stays is named.
    const listVersion = this.#version ?? '0'
    const kind = this.kind
    for (const entry of this.#pending) for (let end = this.#deletion(entry); end; end = this.#deletion(entry)) yield end
    yield this.#mark(EVENT_TYPE.snapshotBegin, { kind, snapshot }, snapshot)
    let items = 0
    for (const subject of [...this.#entries.keys()]) {
      const entry = this.#entries.get(subject)
      if (!entry) continue
      for (let end = this.#deletion(entry); end; end = this.#deletion(entry)) yield end
      const event = this.#changeOf(entry, snapshot)
      if (!event) continue
      items++
      yield event
    }
    yield this.#mark(EVENT_TYPE.snapshotEnd, { kind, snapshot, items, listVersion }, snapshot)
  }

  #mark(type: EventType, data: object, snapshot: string): Outgoing {
    const end = type === EVENT_TYPE.snapshotEnd
    return this.#outgoing(
      type,
      JSON.stringify(data),
      { snapshot, sinceMs: this.#begunAtMs },
      {
        acknowledged: () => end && this.#snapshotEnded(snapshot),
        refused: (delayMs) => {
          this.#snapshotSpoilt(snapshot, delayMs)
          if (end && this.#snapshot?.id === snapshot) this.#snapshot = undefined
        },
      },
    )
  }

  #snapshotEnded(id: string): void {
    if (this.#snapshot?.id !== id) return
    if (!this.#snapshot.spoilt) {
      this.synced = true
      this.#snapshotRefusals = 0
    }
    this.#snapshot = undefined
  }

  /** A snapshot without one of its events is none. It goes on, since its objects are news all the same, and is done again later. */
  #snapshotSpoilt(id: string, delayMs: (refusals: number) => number): void {
    if (this.#snapshot?.id !== id || this.#snapshot.spoilt) return
    this.#snapshot.spoilt = true
    this.#wantedAtMs ??= Date.now() + delayMs(this.#snapshotRefusals++)
  }

  #deletion(entry: Entry): Outgoing | undefined {
    const gone = entry.gone.shift()
    if (!gone) return undefined
    const { uid, resourceVersion } = gone
    if (!entry.now && entry.gone.length === 0) this.#pending.delete(entry)
    const type = this.kind === 'Node' ? EVENT_TYPE.nodeDeleted : EVENT_TYPE.serviceDeleted
    return this.#outgoing(type, JSON.stringify({ uid, resourceVersion }), this.#handOut(entry), {
      acknowledged: () => {
        if (!entry.now && entry.gone.length === 0 && this.#entries.get(entry.subject) === entry)
          this.#entries.delete(entry.subject)
      },
      refused: (delayMs) => {
        entry.gone.unshift({ ...gone, told: true })
        this.#hold(entry, delayMs)
      },
    })
  }

  #changeOf(entry: Entry, snapshot?: string): Outgoing | undefined {
    const { now } = entry
    this.#pending.delete(entry)
    if (!now || (!snapshot && now.fingerprint === entry.sent)) {
      entry.sinceMs = undefined
      return undefined
    }
    entry.sent = now.fingerprint
    entry.told = now.uid
    const type = this.kind === 'Node' ? EVENT_TYPE.nodeChanged : EVENT_TYPE.serviceChanged
    const data = `{"resourceVersion":${JSON.stringify(now.version)},${now.json.slice(1)}`
    return this.#outgoing(
      type,
      data,
      { ...this.#handOut(entry), snapshot },
      {
        acknowledged: () => {},
        refused: (delayMs) => {
          if (snapshot) this.#snapshotSpoilt(snapshot, delayMs)
          if (entry.now?.fingerprint !== now.fingerprint || entry.sent !== now.fingerprint) return
          entry.sent = undefined
          this.#hold(entry, delayMs)
        },
      },
    )
  }

  #handOut(entry: Entry): { subject: Subject; sinceMs: number } {
    const sinceMs = entry.sinceMs ?? Date.now()
    if (!this.#pending.has(entry)) entry.sinceMs = undefined
    return { subject: entry.subject, sinceMs }
  }

  #hold(entry: Entry, delayMs: (refusals: number) => number): void {
    const { refusals } = entry
    this.#pend(entry)
    entry.refusals = refusals + 1
    entry.heldUntilMs = Date.now() + delayMs(refusals)
  }

  #outgoing(
    type: EventType,
    data: string,
    about: { subject?: Subject; snapshot?: string; sinceMs: number },
    then: Pick<Outgoing, 'acknowledged' | 'refused'>,
  ): Outgoing {
    const id = randomUUID()
    const { subject, snapshot } = about
    const name = subject === undefined ? type : `changed ${subject.split('/')[0]}`
    const attributes = {
      'cloudevents.event_id': id,
      'cloudevents.event_type': type,
      ...(subject ? { 'windlass.object': subject } : {}),
    }
    // From when the change was seen until the server has it.
    const span = beginSpan(name, { kind: 'PRODUCER', startMs: about.sinceMs, attributes })
    const { traceparent } = span
    const head = JSON.stringify({
      specversion: '1.0',
      id,
      source: this.#source,
      type,
      ...(subject === undefined ? {} : { subject }),
      time: new Date().toISOString(),
      datacontenttype: 'application/json',
      traceparent,
      ...(subject === undefined || snapshot === undefined ? {} : { snapshot }),
    })
    const json = `${head.slice(0, -1)},"data":${data}}`
    return {
      ...{ id, type, json, bytes: Buffer.byteLength(json), traceparent, ...about },
      acknowledged() {
        span.end()
        then.acknowledged()
      },
      refused(delayMs) {
        span.end({ error: 'the server refused it' })
        then.refused(delayMs)
      },
    }
  }
}

function subjectIn(projection: Projection): Subject {
  return 'namespace' in projection
    ? subjectOf({ kind: 'Service', namespace: projection.namespace, name: projection.name })
    : subjectOf({ kind: 'Node', name: projection.name })
}
