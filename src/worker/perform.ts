import type { Job } from 'bullmq'
import { messageOf, permanent } from '../errors.ts'
import type { BackoffMs } from '../queue/backoff.ts'
import type { ClusterQueue } from '../queue/cluster-queue.ts'
import type { Ledger } from '../queue/ledger.ts'
import { jobData } from '../queue/move.ts'
import type { JobData, Trigger, WorkKind } from '../queue/types.ts'
import type { Logger } from '../telemetry/log.ts'
import { createHold, type Hold } from './hold.ts'
import type { Handler, Outcome, Run, RunEnded } from './run.ts'
import { fail, failForGood, handBack, type Over, putOff, succeed } from './run-end.ts'
import type { Timings } from './timings.ts'

/** A run whose handler goes. */
export interface ActiveRun {
  over: Over
  hold: Hold
  /** Its job is being moved, or was handed back: nobody else may move it. */
  ending: boolean
}

export interface PerformerOptions {
  queue: ClusterQueue
  /** The ledger on a connection that fails fast, for the gate before writes. */
  gate: Ledger
  handlers: Readonly<Record<WorkKind, Handler>>
  log: Logger
  timings: Pick<Timings, 'floorMs' | 'overrunMs'>
  backoffMs: BackoffMs
  /** Has each run as long as its handler goes. */
  active: Set<ActiveRun>
  /** Aborted once no run may begin any more. */
  stopping: AbortSignal
  onRun(ended: RunEnded): void
}

/** A job of a newer release, or of a kind that this one does not know, is left to workers that do. */
const UNKNOWN_WAIT_MS = 5000

/** Runs a fetched job and ends it in the queue, whatever it comes to. What it returns never rejects. */
export function createPerformer(options: PerformerOptions): (job: Job<JobData>, token: string) => Promise<void> {
  const { queue, gate, handlers, log, timings, active, stopping } = options
  const { cluster, ledger } = queue

  async function perform(job: Job<JobData>, token: string): Promise<void> {
    const jobId = String(job.id)
    const begunMs = performance.now()
    const begunAtMs = Date.now()
    let askedMs: number | undefined
    const over = (): Over => ({
      queue,
      job,
      jobId,
      token,
      ranMs: performance.now() - begunMs,
      floorMs: timings.floorMs,
      backoffMs: options.backoffMs,
    })
    const { kind, key } = job.data
    const runLog = log.child({ kind, key, jobId, attempt: job.attemptsMade })
    try {
      if (stopping.aborted) return void (await handBack(over()))
      const handler: Handler | undefined = job.data.v === 1 ? handlers[kind] : undefined
      if (!handler) {
        runLog.warn({ v: job.data.v }, 'job of a form or kind that this version does not know is left to others')
        await ledger.hold(key, UNKNOWN_WAIT_MS)
        return void (await putOff(over(), UNKNOWN_WAIT_MS, 'aborted'))
      }
      if (job.deferredFailure) {
        runLog.error({ stalls: job.stalledCounter }, 'job failed for good: its workers died running it')
        const givenUp = `${key}: the worker died ${job.stalledCounter} times while it worked on this object; look at the workers' memory limits and logs, then retry it`
        await failForGood(over(), permanent(givenUp))
        return void ended('permanent', {}, { givenUp })
      }
      const claim = await ledger.claim(key, jobId, token)
      if (claim.kind === 'lost') return
      if (claim.kind === 'early') return void (await putOff(over(), claim.waitMs, 'aborted'))
      if (claim.kind === 'busy') {
        // Told to run again, the other run's end stands for this job's trigger too.
        await ledger.raise([job.data])
        return void (await succeed(over(), {}))
      }
      const { trigger, generation = 0 } = claim
      // Generations are microseconds of Redis' clock.
      if (generation > 0) askedMs = Math.min(begunAtMs, Math.round(generation / 1000))
      // What a user waits for and was not done yet stays that, although a look at everything asks for the same object meanwhile.
      const stillOwed = job.attemptsStarted > 1 && job.data.urgency === 'user' && trigger?.urgency !== 'user'
      if (trigger && !stillOwed && !sameWords(trigger, job.data)) {
        // So that a retry, and people, see the reason of this run.
        const { uid = job.data.uid } = trigger
        await job.updateData({
          ...jobData(cluster, { ...trigger, kind, key, uid }),
          enqueuedAtMs: job.data.enqueuedAtMs,
        })
      }
      if (stopping.aborted) return void (await handBack(over()))
      await go(job, over, handler, begunMs + claim.lockLeftMs, generation, runLog, ended)
    } catch (error) {
      // Redis did not take the run's end: the lock lapses, and the job goes to the next worker.
      runLog.warn({ error: messageOf(error) }, 'could not end a run in the queue')
      ended('lost')
    }

    function ended(outcome: Outcome, fields: object = {}, more: Pick<RunEnded, 'givenUp'> = {}): void {
      const ms = Math.round(performance.now() - begunMs)
      const traceId = job.data.traceparent?.split('-')[1]
      runLog[outcome === 'done' || outcome === 'aborted' ? 'info' : 'warn'](
        { outcome, ms, traceId, ...fields },
        'run ended',
      )
      options.onRun({ cluster, kind, key, outcome, ms, ...more, ...(askedMs ? { waitedMs: begunAtMs - askedMs } : {}) })
    }
  }

  async function go(
    job: Job<JobData>,
    over: () => Over,
    handler: Handler,
    untilMs: number,
    generation: number,
    runLog: Logger,
    ended: (outcome: Outcome, fields?: object) => void,
  ): Promise<void> {
    const { kind, key, uid, cause, urgency, traceparent, eventId } = job.data
    const { jobId, token } = over()
    const hold = createHold(key, untilMs, () => gate.holds(key, jobId, token))
    const overrun = setTimeout(() => hold.revoke('overrun'), timings.overrunMs).unref()
    const traceId = traceparent?.split('-')[1]
    const handlerLog = runLog.child({ ...(traceId ? { traceId } : {}) })
    runLog.debug({ generation, cause, traceId }, 'run started')
    const run: Run = {
      ...{ cluster, kind, key, uid, cause, urgency, traceparent, eventId, jobId, generation },
      attempt: job.attemptsMade,
      call: {
        signal: hold.signal,
        urgency,
        log: handlerLog,
        async beforeWrite(what) {
          await hold.beforeWrite(what)
          handlerLog.info({ what }, 'writes')
        },
      },
    }
    const entry: ActiveRun = { over: over(), hold, ending: false }
    active.add(entry)
    try {
      let result: { ok: Awaited<ReturnType<Handler>> } | { error: unknown }
      try {
        result = { ok: await handler(run) }
      } catch (error) {
        result = { error }
      }
      if (entry.ending) return ended('aborted', { generation })
      entry.ending = true
      if ('ok' in result) ended(await succeed(over(), result.ok), { generation })
      else {
        const outcome = await fail(over(), result.error, hold.revoked)
        ended(outcome, { generation, error: messageOf(result.error) })
      }
    } finally {
      clearTimeout(overrun)
      hold.revoke('lost')
      hold.end()
      active.delete(entry)
    }
  }

  return perform
}

function sameWords(trigger: Trigger, data: JobData): boolean {
  const { cause, urgency, uid, eventId, traceparent } = trigger
  return (
    cause === data.cause &&
    urgency === data.urgency &&
    (uid === undefined || uid === data.uid) &&
    eventId === data.eventId &&
    traceparent === data.traceparent
  )
}
