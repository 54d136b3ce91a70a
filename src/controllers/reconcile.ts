import type { Call, Urgency } from '../call.ts'

/** What a controller is asked: bring one object to its desired state, from whatever state it and the cloud are in. */
export interface ReconcileRequest {
  /** A subject, or `Cluster/<what>`. */
  key: string
  /** uid that the object had when the work was asked for, if known. */
  uid?: string
  /** Why, for people and events. */
  cause: string
  urgency: Urgency
  /** How often in a row this work has failed before; 0 if absent. */
  attempt?: number
  call: Call
}

export interface ReconcileResult {
  /** Look again after this many milliseconds, even if nothing changes. */
  requeueAfterMs?: number
}

export type Reconcile = (request: ReconcileRequest) => Promise<ReconcileResult>
