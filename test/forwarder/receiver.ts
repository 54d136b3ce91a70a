import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Test } from 'tap'
import { fingerprint, type NodeProjection, type ServiceProjection } from '../../src/events/projection.ts'
import { validateBatch } from '../../src/events/schema.ts'
import { EPOCH_HEADER, EVENT_TYPE, eventsPath, SERVER_TIME_HEADER, type WindlassEvent } from '../../src/events/types.ts'
import { verify } from '../../src/events/verify.ts'

/** What the receiving side does with one request instead of taking it. */
export type Fault =
  | ({ kind: 'status' } & Answer)
  /** Does nothing and says nothing. */
  | { kind: 'hang' }
  /** Cuts the connection, before or after it took the events. */
  | { kind: 'cut'; after: boolean }

interface Answer {
  status: number
  headers?: Record<string, string>
  body?: unknown
}

export interface Delivered {
  atMs: number
  id: string
  events: WindlassEvent[]
  body: string
}

type Projection = NodeProjection | ServiceProjection

/**
 * The receiving side of the contract: checks signature and schema as the server does, and from the events alone keeps what the
 * cluster looks like. It believes no event that is older than what it knows, and a snapshot's end only if it saw all of it.
 */
export class Receiver {
  readonly url: string
  /** In the order in which they were taken. */
  readonly delivered: Delivered[] = []
  requests: http.IncomingMessage['headers'][] = []
  /** Decides what goes wrong with a request. */
  fault: (events: WindlassEvent[], attempt: number) => Fault | undefined = () => undefined
  epoch = 'epoch-1'
  /** How far the clock of this side is ahead. */
  aheadMs = 0
  readonly keys: string[]
  readonly #cluster: string
  readonly #server: http.Server
  readonly #objects = new Map<string, Projection>()
  readonly #snapshots = new Map<string, Set<string>>()
  readonly #seen = new Set<string>()
  readonly #sockets = new Set<Socket>()
  readonly #waiting = new Set<() => void>()

  private constructor(server: http.Server, cluster: string, keys: string[]) {
    this.#server = server
    this.#cluster = cluster
    this.keys = keys
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
  }

  static async start(t: Test | undefined, cluster: string, keys: string[]): Promise<Receiver> {
    const server = http.createServer((request, response) => void receiver.#receive(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const receiver = new Receiver(server, cluster, keys)
    t?.teardown(() => receiver.close())
    return receiver
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  get events(): WindlassEvent[] {
    return this.delivered.flatMap(({ events }) => events)
  }

  /** Fingerprints of all objects that this side believes to exist. */
  get state(): Record<string, string> {
    return Object.fromEntries([...this.#objects].map(([subject, seen]) => [subject, fingerprint(seen)]).sort())
  }

  /** As after a flushed Redis: nothing is known, and the epoch is another. */
  forget(epoch: string): void {
    this.#objects.clear()
    this.#snapshots.clear()
    this.#seen.clear()
    this.epoch = epoch
  }

  /** Resolves when the condition holds, looked at after every request. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  async #receive(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    this.requests.push(request.headers)
    const answer = this.#answer(request, body)
    if (answer === 'cut') response.destroy()
    else if (answer !== 'hang') {
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      response.end(JSON.stringify(answer.body ?? {}))
    }
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }

  #answer(request: http.IncomingMessage, body: Buffer): Answer | 'cut' | 'hang' {
    if (request.url !== eventsPath(this.#cluster)) return { status: 404 }
    const now = Date.now() + this.aheadMs
    const verified = verify(this.keys, request.headers, body, now)
    if (verified.fault === 'stale')
      return { status: 401, headers: { [SERVER_TIME_HEADER]: String(Math.floor(now / 1000)) } }
    if (verified.fault !== undefined) return { status: 401 }
    const { events, faults } = validateBatch(JSON.parse(body.toString()), this.#cluster)
    if (faults) return { status: 400, body: { message: 'faults', faults } }
    const fault = this.fault(events, this.requests.length - 1)
    if (fault?.kind === 'status') return fault
    if (fault?.kind === 'hang') return 'hang'
    if (fault?.kind === 'cut' && !fault.after) return 'cut'
    if (!this.#seen.has(verified.id)) {
      this.#seen.add(verified.id)
      this.delivered.push({ atMs: Date.now(), id: verified.id, events, body: body.toString() })
      for (const event of events) this.#take(event)
    }
    return fault ? 'cut' : { status: 202, headers: { [EPOCH_HEADER]: this.epoch } }
  }

  #take(event: WindlassEvent): void {
    switch (event.type) {
      case EVENT_TYPE.nodeChanged:
      case EVENT_TYPE.serviceChanged: {
        const known = this.#objects.get(event.subject)
        if (!known || !newer(known.resourceVersion, event.data.resourceVersion))
          this.#objects.set(event.subject, event.data)
        if (event.snapshot) this.#snapshots.get(event.snapshot)?.add(event.subject)
        return
      }
      case EVENT_TYPE.nodeDeleted:
      case EVENT_TYPE.serviceDeleted:
        if (this.#objects.get(event.subject)?.uid === event.data.uid) this.#objects.delete(event.subject)
        return
      case EVENT_TYPE.snapshotBegin:
        this.#snapshots.set(event.data.snapshot, new Set())
        return
      case EVENT_TYPE.snapshotEnd: {
        const { kind, snapshot, items, listVersion } = event.data
        const named = this.#snapshots.get(snapshot)
        this.#snapshots.delete(snapshot)
        if (named?.size !== items) return
        for (const [subject, known] of this.#objects)
          if (subject.startsWith(`${kind}/`) && !named.has(subject) && !newer(known.resourceVersion, listVersion))
            this.#objects.delete(subject)
      }
    }
  }
}

const newer = (a: string, b: string) => BigInt(a) > BigInt(b)
