import { FaultBook } from './faults.ts'

export interface LogEntry {
  at: string
  label: string
  method: string
  path: string
  query: string
  body: unknown
  /** 0: no answer was given; undefined: it is still to come */
  status?: number
  code?: string
  fault?: string
  correlation_id: string
  duration_ms?: number
}

/** All state of a simulated cloud, as far as whoever waits for its rest has to know. */
export interface Account {
  /** raised by every change */
  readonly revision: number
  /** how much still goes on by itself */
  readonly inFlight: number
}

/** What a simulator's faces share beside the cloud: faults, counters, the request log. */
export class Hub<Cloud extends Account> {
  readonly faults = new FaultBook()
  readonly log: LogEntry[] = []
  readonly calls: Record<string, number> = {}
  readonly rejected: Record<string, number> = {}
  requests = 0
  /** mutating requests that have no answer yet */
  mutating = 0
  cloud: Cloud

  constructor(cloud: Cloud) {
    this.cloud = cloud
  }

  begin(entry: LogEntry): void {
    this.requests++
    this.calls[entry.label] = (this.calls[entry.label] ?? 0) + 1
    this.log.push(entry)
  }

  end(entry: LogEntry, status: number, code?: string): void {
    if (entry.status !== undefined) return
    entry.status = status
    entry.duration_ms = Date.now() - Date.parse(entry.at)
    if (code) entry.code = code
    if (status !== 0 && status < 400) return
    const what = [entry.label, status, code, entry.fault ? '(fault)' : undefined].filter((part) => part !== undefined)
    const key = what.join(' ')
    this.rejected[key] = (this.rejected[key] ?? 0) + 1
  }

  activity(): { revision: number; inflight: number; requests: number } {
    const { revision, inFlight } = this.cloud
    return { revision, inflight: inFlight + this.mutating, requests: this.requests }
  }
}
