import type { Call, Urgency } from '../call.ts'
import type { WorkKind } from '../queue/types.ts'

/** One go at one object. */
export interface Run {
  cluster: string
  kind: WorkKind
  /** The object: a subject, or `Cluster/<what>`. */
  key: string
  uid?: string
  /** Why, for people. */
  cause: string
  urgency: Urgency
  /** Failed goes before this one, in a row. */
  attempt: number
  traceparent?: string
  eventId?: string
  jobId: string
  /** Of the newest trigger that this run answers; 0 when nobody asked (a retry, periodic work). */
  generation: number
  call: Call
}

export interface Result {
  /** Look again after so many milliseconds, with no attempt spent; any trigger comes first. */
  requeueAfterMs?: number
}

export type Handler = (run: Run) => Promise<Result>

/** What became of a run. `lost`: another worker has the object; `aborted`: it was handed back. */
export type Outcome = 'done' | 'retry' | 'throttled' | 'permanent' | 'aborted' | 'lost'

export interface RunEnded {
  cluster: string
  kind: WorkKind
  key: string
  outcome: Outcome
  ms: number
  /** Milliseconds from the trigger to the run's start; undefined when nobody asked. */
  waitedMs?: number
  /** Why it was given up without being run once more, for people: its workers died of it. */
  givenUp?: string
}
