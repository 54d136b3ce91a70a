import type { Logger } from 'pino'

/** Who waits for a call: a user's change goes before drift repair when the cloud's budget is short. */
export type Urgency = 'user' | 'background'

/** Without it the cluster itself is out of reach: goes before whatever else waits. */
type Urgent = 'urgent'

/**
 * What every outgoing call carries, from the run that makes it down to the socket.
 * A client awaits `beforeWrite` directly before each mutating request; it throws `aborted` when the run has lost its claim.
 */
export interface Call {
  readonly signal: AbortSignal
  readonly urgency: Urgency | Urgent
  readonly log: Logger
  beforeWrite(what: string): Promise<void>
}
