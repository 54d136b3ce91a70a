import { type Job, UnrecoverableError } from 'bullmq'
import { kindOf, messageOf, WindlassError } from '../errors.ts'
import { type BackoffMs, throttleMs } from '../queue/backoff.ts'
import type { ClusterQueue } from '../queue/cluster-queue.ts'
import { addJobs, carryOut, isGone } from '../queue/move.ts'
import type { JobData } from '../queue/types.ts'
import type { Revoked } from './hold.ts'
import type { Outcome, Result } from './run.ts'

/** A run that is over, with what is needed to put its job where it belongs. */
export interface Over {
  queue: ClusterQueue
  job: Job<JobData>
  jobId: string
  token: string
  /** Milliseconds since the run began. */
  ranMs: number
  /** Runs of an object that fails start no closer together than this. */
  floorMs: number
  backoffMs: BackoffMs
}

/** Periodic work that comes sooner keeps the urgency of who asked for it: a user may wait for its end. */
const USER_WAITS_MS = 60_000

/** BullMQ asks this for the wait before a retry; the run's end has computed it. */
export function backoffStrategy(_attempts: number, _type: string | undefined, error: Error | undefined): number {
  return error instanceof RetryIn ? error.waitMs : -1
}

/** The run did its work. The next one, if it asked for one, is made in the same step that ends this. */
export async function succeed(over: Over, result: Result): Promise<Outcome> {
  const { queue, job, token } = over
  const { key } = job.data
  if (result.requeueAfterMs !== undefined) {
    const delayMs = Math.max(1, Math.round(result.requeueAfterMs))
    const urgency = delayMs <= USER_WAITS_MS ? job.data.urgency : 'background'
    const { kind, uid, cause } = job.data
    // Folded into the active job, BullMQ keeps it until that one ends, and makes a job of it then.
    await addJobs(queue, [{ kind, key, cause, urgency, uid, delayMs }])
  }
  if (!(await moved(job.moveToCompleted(undefined, token, false)))) return lose(over)
  const { failedJobId } = await release(over, true)
  if (failedJobId !== undefined) await removeFailed(queue, failedJobId)
  return 'done'
}

/** The run threw. The error's kind decides, and a claim that is gone comes before it. */
export async function fail(over: Over, error: unknown, revoked: Revoked | undefined): Promise<Outcome> {
  if (revoked === 'lost') return lose(over)
  const kind = kindOf(error)
  if (kind === 'permanent') return failForGood(over, error)
  if (kind === 'throttled') return throttle(over, error)
  if (revoked === 'stopping') return handBack(over)
  if (kind === 'aborted' && revoked === undefined) return putOff(over, over.floorMs, 'aborted')
  return retry(over, error)
}

/** Back to where another worker takes it at once, no attempt spent. */
export async function handBack(over: Over): Promise<Outcome> {
  const { queue, job, jobId, token } = over
  await queue.ledger.release(job.data.key, jobId, token, false)
  return (await moved(job.moveToWait(token))) ? 'aborted' : 'lost'
}

/** Runs again after a while, no attempt spent. */
export async function putOff(over: Over, waitMs: number, outcome: Outcome): Promise<Outcome> {
  if (!(await moved(over.job.moveToDelayed(Date.now() + Math.ceil(waitMs), over.token)))) return lose(over)
  await release(over, false)
  return outcome
}

/** The failed list: a human must change something. It runs again when the object is triggered. */
export async function failForGood(over: Over, error: unknown): Promise<Outcome> {
  const { queue, job, jobId, token, ranMs, floorMs } = over
  await queue.ledger.hold(job.data.key, floorMs - ranMs)
  // Noted before it is there, so that no failed job is forgotten; who finds the note looks whether the job failed.
  const before = await queue.ledger.fail(job.data.key, jobId)
  const reason = new UnrecoverableError(messageOf(error).slice(0, MESSAGE_CHARS))
  reason.stack = stackOf(error)
  if (!(await moved(job.moveToFailed(reason, token, false)))) return lose(over)
  await release(over, false)
  if (before !== undefined && before !== jobId) await removeFailed(queue, before)
  return 'permanent'
}

async function throttle(over: Over, error: unknown): Promise<Outcome> {
  const { queue, job, floorMs } = over
  const { retryAtMs = 0, userRetryAtMs = 0 } = error instanceof WindlassError ? error : {}
  const [random, now] = [Math.random(), Date.now()]
  const userWaitMs = throttleMs(userRetryAtMs, now, floorMs, random)
  // Held before it is put off, so that at no instant a trigger may pull it forward; but what is kept from nobody's work is not kept from
  // a user who comes meanwhile.
  await queue.ledger.hold(job.data.key, userWaitMs)
  const waitMs = job.data.urgency === 'user' ? userWaitMs : throttleMs(retryAtMs, now, floorMs, random)
  return putOff(over, waitMs, 'throttled')
}

async function retry(over: Over, error: unknown): Promise<Outcome> {
  const { queue, job, token, ranMs } = over
  const byMs = (error instanceof WindlassError ? error.retryByMs : undefined) ?? Number.POSITIVE_INFINITY
  const backoffMs = over.backoffMs(job.data.kind, job.attemptsMade + 1, Math.random())
  const waitMs = Math.max(0, Math.min(backoffMs, byMs - Date.now()))
  // A change cuts the backoff short, but not below the floor.
  const floorMs = Math.max(0, Math.ceil(Math.min(over.floorMs, waitMs) - ranMs))
  const { due } = await queue.ledger.hold(job.data.key, floorMs)
  const reason = new RetryIn(due ? floorMs : waitMs, error)
  if (!(await moved(job.moveToFailed(reason, token, false)))) return lose(over)
  await release(over, false)
  return 'retry'
}

async function lose(over: Over): Promise<Outcome> {
  await over.queue.ledger.release(over.job.data.key, over.jobId, over.token, false)
  return 'lost'
}

/** Gives the object back, then looks whether a trigger came in before the job was where the trigger could have found it. */
async function release({ queue, job, jobId, token }: Over, succeeded: boolean) {
  const { key } = job.data
  const released = await queue.ledger.release(key, jobId, token, succeeded)
  if (released.due) await carryOut(queue, await queue.ledger.standing([key]))
  return released
}

async function removeFailed({ queue, redis, ledger }: ClusterQueue, jobId: string): Promise<void> {
  // A person may have retried it past us: what is not in the failed list stays.
  if ((await redis.zscore(`${ledger.keys.bull}failed`, jobId)) !== null) await queue.remove(jobId)
}

/** False when the job is not ours to move any more. */
async function moved(done: Promise<unknown>): Promise<boolean> {
  try {
    await done
    return true
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

const MESSAGE_CHARS = 1000
const STACK_CHARS = 4000

const stackOf = (error: unknown) => (error instanceof Error ? (error.stack ?? '') : '').slice(0, STACK_CHARS)

class RetryIn extends Error {
  readonly waitMs: number

  constructor(waitMs: number, cause: unknown) {
    super(messageOf(cause).slice(0, MESSAGE_CHARS))
    this.waitMs = waitMs
    this.stack = stackOf(cause)
  }
}
