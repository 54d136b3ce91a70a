import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { messageOf } from '../errors.ts'
import { DELAYED_SCORE } from '../queue/backlog.ts'
import type { BackoffMs } from '../queue/backoff.ts'
import type { ClusterQueue } from '../queue/cluster-queue.ts'
import { bullPrefix } from '../queue/keys.ts'
import type { Ledger } from '../queue/ledger.ts'
import { carryOut } from '../queue/move.ts'
import { QUEUE_META, queueName } from '../queue/names.ts'
import { ensureStanding } from '../queue/schedulers.ts'
import type { JobData, Trigger, WorkKind } from '../queue/types.ts'
import type { Logger } from '../telemetry/log.ts'
import { type ActiveRun, createPerformer } from './perform.ts'
import type { Handler, RunEnded } from './run.ts'
import { backoffStrategy, handBack } from './run-end.ts'
import type { Slots } from './slots.ts'
import type { Timings } from './timings.ts'

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

/**
 * Fetches, runs and ends the jobs of one cluster. It fetches by hand (BullMQ's `getNextJob`), since BullMQ's own loop has no notion of slots
 * shared by queues, of a claim that is checked before each write, and of a job that is handed back.
 */
export function startClusterWorker(options: ClusterWorkerOptions): ClusterWorker {
  const { queue, redis, slots, timings } = options
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
  const active = new Set<ActiveRun>()
  const performing = new Set<Promise<void>>()
  let fetchInFlight: Promise<unknown> = Promise.resolve()
  const closing = new AbortController()
  const stopping = new AbortController()
  let progressMs = Date.now()
  let waitsForSlot = false
  const progress = () => {
    progressMs = Date.now()
  }
  const perform = createPerformer({ ...options, log, active, stopping: stopping.signal })

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

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}
