import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { messageOf, permanent } from '../errors.ts'
import { DELAYED_SCORE } from '../queue/backlog.ts'
import type { BackoffMs } from '../queue/backoff.ts'
import type { ClusterQueue } from '../queue/cluster-queue.ts'
import { bullPrefix } from '../queue/keys.ts'
import type { Ledger } from '../queue/ledger.ts'
import { carryOut, jobData } from '../queue/move.ts'
import { QUEUE_META, queueName } from '../queue/names.ts'
import { ensureStanding } from '../queue/schedulers.ts'
import type { JobData, Trigger, WorkKind } from '../queue/types.ts'
import type { Logger } from '../telemetry/log.ts'
import { createHold, type Hold } from './hold.ts'
import type { Handler, Outcome, Run, RunEnded } from './run.ts'
import { backoffStrategy, fail, failForGood, handBack, type Over, putOff, succeed } from './run-end.ts'
import type { Slots } from './slots.ts'

/** Milliseconds, unless the name says otherwise. */
export interface Timings {
  /** A job whose lock was not renewed for so long counts as its worker's death. */
  lockMs: number
  renewMs: number
  /** Between looks for such jobs. */
  stalledMs: number
  /** How long to wait for work in one go; bounds how late a wake-up is that another process took and did not use. */
  blockMs: number
  /** Between looks for objects that are due while no job stands for them. */
  sweepMs: number
  floorMs: number
  /** A run that takes longer is told to stop, and tried again. */
  overrunMs: number
  /** A job whose worker died more often than this while running it counts as the cause. */
  maxStalls: number
}

export const TIMINGS: Timings = {
  lockMs: 5000,
  renewMs: 2000,
  stalledMs: 1000,
  blockMs: 2000,
  sweepMs: 2000,
  floorMs: 1000,
  overrunMs: 900_000,
  maxStalls: 10,
}

export interface ClusterWorkerOptions {
  queue: ClusterQueue
  /** Waits for Redis as long as it takes. */
  redis: Redis
  /** The same ledger on a connection that fails fast, for the gate before writes. */
  gate: Ledger
  prefix: string
  handlers: Readonly<Record<WorkKind, Handler>>
  standing: readonly Trigger[]
  slots: Slots
  log: Logger
  timings: Timings
  backoffMs: BackoffMs
  onRun(ended: RunEnded): void
}

export interface ClusterWorker {
  /** Unix time in milliseconds of Redis' last answer to this worker's fetching or renewing. */
  readonly lastProgressMs: number
  /** True when no job of the cluster is active anywhere, waits, or is due. */
  isIdle(): Promise<boolean>
  /** Takes no more jobs. */
  stopFetching(): void
  /** Tells the runs that still go to stop. */
  abortRuns(): void
  /** After `stopFetching`: resolves when no run goes. */
  finished(): Promise<void>
  /** Hands the jobs of runs that don't stop to other workers; their writes are refused from before that. */
  handBackRest(): Promise<void>
  /** Leaves the shared connection open. */
  close(): Promise<void>
  /** Resolves when nothing of it goes any more; that may take until the shared connection is gone. */
  ended(): Promise<void>
}

interface Active {
  over: Over
  hold: Hold
  /** Its job is being moved, or was handed back: nobody else may move it. */
  ending: boolean
}

/** A job of a newer release, or of a kind that this one does not know, is left to workers that do. */
const UNKNOWN_WAIT_MS = 5000

/**
 * Fetches, runs and ends the jobs of one cluster. It fetches by hand (BullMQ's `getNextJob`), since BullMQ's own loop has no notion of slots
 * shared by queues, of a claim that is checked before each write, and of a job that is handed back.
 */
export function startClusterWorker(options: ClusterWorkerOptions): ClusterWorker {
  const { queue, redis, gate, slots, timings, handlers } = options
  const { cluster, ledger } = queue
  const log = options.log.child({ cluster })
  const worker = new Worker<JobData>(queueName(cluster), null, {
    connection: redis,
    prefix: bullPrefix(options.prefix),
    name: `${hostname()}-${process.pid}`,
    autorun: false,
    lockDuration: timings.lockMs,
    stalledInterval: timings.stalledMs,
    maxStalledCount: timings.maxStalls,
    settings: { backoffStrategy },
  })
  worker.on('error', (error) => {
    if (!stopping.signal.aborted) log.warn({ error: messageOf(error) }, 'queue connection trouble')
  })
  worker.on('stalled', (jobId) => log.warn({ jobId }, 'job of a dead or frozen worker goes to the next one'))

  // Not by job: a run that lost its claim may still be at it when the same job comes back to this process.
  const active = new Set<Active>()
  const performing = new Set<Promise<void>>()
  let fetchInFlight: Promise<unknown> = Promise.resolve()
  const closing = new AbortController()
  const stopping = new AbortController()
  let progressMs = Date.now()
  let waitsForSlot = false
  const progress = () => {
    progressMs = Date.now()
  }

  const loops = [fetching(), renewing(), sweeping()]
  void worker.startStalledCheckTimer()

  async function fetching(): Promise<void> {
    while (!stopping.signal.aborted) {
      waitsForSlot = true
      const slot = await slots.acquire(cluster)
      waitsForSlot = false
      if (!slot) return
      const token = randomUUID()
      let job: Job<JobData> | undefined
      try {
        const fetch = worker.getNextJob(token, { block: false })
        fetchInFlight = fetch.catch(() => {})
        job = await fetch
        progress()
      } catch (error) {
        slots.release(cluster)
        if (stopping.signal.aborted) return
        log.warn({ error: messageOf(error) }, 'could not fetch a job')
        await pause(1000, stopping.signal)
        continue
      }
      if (!job) {
        slots.release(cluster)
        await waitForWork()
        continue
      }
      const performed = perform(job, token).finally(() => {
        slots.release(cluster)
        performing.delete(performed)
      })
      performing.add(performed)
    }
  }

  /** Without a slot. Ends when a job may be there, at the latest after `blockMs`. */
  async function waitForWork(): Promise<void> {
    const backend = worker.getBackend()
    try {
      const [, score] = await redis.zrange(`${ledger.keys.bull}delayed`, 0, '0', 'WITHSCORES')
      progress()
      let untilMs = Date.now() + timings.blockMs
      if (score !== undefined) untilMs = Math.min(untilMs, Math.floor(Number(score) / DELAYED_SCORE))
      while (!stopping.signal.aborted) {
        const leftMs = untilMs - Date.now()
        if (leftMs <= 0) return
        await worker.waitUntilReady()
        const marker = await backend.waitForJob(Math.max(leftMs / 1000, backend.minimumBlockTimeout))
        progress()
        if (marker) untilMs = Math.min(untilMs, marker.score)
      }
    } catch (error) {
      if (stopping.signal.aborted) return
      log.warn({ error: messageOf(error) }, 'could not wait for jobs')
      await pause(1000, stopping.signal)
      if (!stopping.signal.aborted) await backend.reconnectBlocking().catch(() => {})
    }
  }

  /** Until the worker is closed, since runs go on while it stops. */
  async function renewing(): Promise<void> {
    while (!closing.signal.aborted) {
      await pause(timings.renewMs, closing.signal)
      const held = [...active].filter(({ hold }) => hold.isAlive())
      if (held.length === 0) continue
      const askedMs = performance.now()
      try {
        const refused = await worker.extendJobLocks(
          held.map(({ over }) => over.jobId),
          held.map(({ over }) => over.token),
          timings.lockMs,
        )
        progress()
        for (const { over, hold, ending } of held) {
          if (!refused.includes(over.jobId)) hold.extend(askedMs + timings.lockMs)
          else if (!ending) {
            log.warn({ jobId: over.jobId, key: over.job.data.key }, 'lock lost')
            hold.revoke('lost')
          }
        }
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'could not renew locks')
      }
    }
  }

  /** Repairs what died between two steps: a trigger that was marked but not added, or a run's end that did not look again. */
  async function sweeping(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        if (await ledger.takeTurn(Math.round(timings.sweepMs * 0.9))) {
          await carryOut(queue, await ledger.overdue(timings.sweepMs / 2))
          await ensureStanding(queue, options.standing)
          await queue.queue.getBackend().setQueueMeta(QUEUE_META)
        }
      } catch (error) {
        if (!stopping.signal.aborted) log.warn({ error: messageOf(error) }, 'could not look for overdue objects')
      }
      await pause(timings.sweepMs * (0.9 + Math.random() / 5), stopping.signal)
    }
  }

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
      if (stopping.signal.aborted) return void (await handBack(over()))
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
      if (trigger && !sameWords(trigger, job.data)) {
        // So that a retry, and people, see the reason of this run.
        const { uid = job.data.uid } = trigger
        await job.updateData({
          ...jobData(cluster, { ...trigger, kind, key, uid }),
          enqueuedAtMs: job.data.enqueuedAtMs,
        })
      }
      if (stopping.signal.aborted) return void (await handBack(over()))
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
    const entry: Active = { over: over(), hold, ending: false }
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

  return {
    get lastProgressMs() {
      return waitsForSlot && active.size === 0 ? Date.now() : progressMs
    },
    async isIdle() {
      if (active.size > 0) return false
      await carryOut(queue, await ledger.overdue(0))
      const { bull } = ledger.keys
      const dueBy = `${(Date.now() + 1) * DELAYED_SCORE}`
      const results = await redis
        .pipeline()
        .llen(`${bull}wait`)
        .zcard(`${bull}prioritized`)
        .llen(`${bull}active`)
        .zcount(`${bull}delayed`, '-inf', dueBy)
        .exec()
      return (results ?? []).every(([error, count]) => error === null && count === 0)
    },
    stopFetching() {
      stopping.abort()
      void worker
        .getBackend()
        .disconnectBlocking(false)
        .catch(() => {})
    },
    abortRuns() {
      for (const { hold } of active) hold.revoke('stopping')
    },
    async finished() {
      // A fetch that Redis has not answered may bring a job, unless Redis is away.
      if (redis.status === 'ready') await fetchInFlight
      await Promise.all(performing)
    },
    async handBackRest() {
      await Promise.allSettled(
        [...active].map(async (entry) => {
          if (entry.ending) return
          entry.ending = true
          entry.hold.revoke('stopping')
          await handBack(entry.over)
        }),
      )
    },
    async close() {
      stopping.abort()
      closing.abort()
      await worker.close(true)
    },
    async ended() {
      await Promise.allSettled(loops)
    },
  }
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

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}
