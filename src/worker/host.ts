import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisSettings } from '../config/types.ts'
import { messageOf } from '../errors.ts'
import { type BackoffMs, backoffMs } from '../queue/backoff.ts'
import { openClusterQueues } from '../queue/cluster-queue.ts'
import { createLedger, type Ledger } from '../queue/ledger.ts'
import { producerConnection, workerConnection } from '../queue/redis.ts'
import type { Trigger, WorkKind } from '../queue/types.ts'
import type { Logger } from '../telemetry/log.ts'
import { startClusterWorker } from './cluster-worker.ts'
import type { Handler, Outcome, RunEnded } from './run.ts'
import { createSlots } from './slots.ts'
import { TIMINGS, type Timings } from './timings.ts'

export type { Handler, Result, Run, RunEnded } from './run.ts'

export interface WorkerOptions {
  redis: RedisSettings
  clusters: readonly string[]
  handlers: Readonly<Record<WorkKind, Handler>>
  /** Runs at a time, over all clusters. */
  concurrency: number
  log: Logger
  /** Milliseconds that runs may take to end by themselves once `stop` is called. */
  graceMs: number
  /** Ends by itself when nothing is due or active. */
  untilIdle?: boolean
  /** Work of each cluster that comes again by itself; asserted anew every few seconds. */
  standing?: readonly Trigger[]
  onRun?(ended: RunEnded): void
}

export interface WorkerStats {
  running: number
  /** Unix time in milliseconds of the last sign of life, of the cluster where it is longest ago. A worker that went deaf has an old one. */
  lastProgressMs: number
  /** Ended runs since the start, by kind and outcome. */
  runs: Partial<Record<WorkKind, Partial<Record<Outcome, number>>>>
}

export interface WorkerHost {
  /** Bounded by `graceMs` and some seconds; safe to call again. */
  stop(): Promise<void>
  /** With `untilIdle`: nothing is due or active. Resolves at the latest when the worker has stopped. */
  readonly idle: Promise<void>
  stats(): WorkerStats
}

/** What only tests change. */
export interface WorkerInternals {
  timings?: Partial<Timings>
  backoffMs?: BackoffMs
  ledger?(ledger: Ledger): Ledger
}

/** After the grace period runs are told to stop; those that don't within this time have their jobs handed back under them. */
const ABORT_MS = 1500
/** Redis gets so long to take what is handed back, and to close. */
const CLOSE_MS = 2000
const IDLE_CHECK_MS = 250

/**
 * Runs the jobs of clusters until it is stopped. Each cluster has a queue and a fetch loop of its own; the slots for runs are shared by
 * all of them (`slots.ts`). Starts without Redis too, and waits for it.
 */
export function startWorker(options: WorkerOptions, internals: WorkerInternals = {}): WorkerHost {
  const { redis: settings, clusters, log } = options
  const timings = { ...TIMINGS, ...internals.timings }
  const redis = workerConnection(settings)
  const gateRedis = producerConnection(settings, 'gate', { gather: true })
  const queues = openClusterQueues(redis, settings.prefix)
  const slots = createSlots(options.concurrency, clusters.length)
  const runs: WorkerStats['runs'] = {}
  const seen = internals.ledger ?? ((ledger: Ledger) => ledger)

  const workers = clusters.map((cluster) => {
    const queue = queues.of(cluster)
    return startClusterWorker({
      queue: { ...queue, ledger: seen(queue.ledger) },
      redis,
      gate: createLedger(gateRedis, settings.prefix, cluster),
      prefix: settings.prefix,
      handlers: options.handlers,
      standing: options.standing ?? [],
      slots,
      log,
      timings,
      backoffMs: internals.backoffMs ?? backoffMs,
      onRun(ended) {
        const ofKind = runs[ended.kind] ?? {}
        runs[ended.kind] = { ...ofKind, [ended.outcome]: (ofKind[ended.outcome] ?? 0) + 1 }
        options.onRun?.(ended)
      },
    })
  })

  const stopped = Promise.withResolvers<void>()
  let stop: Promise<void> | undefined

  async function untilIdle(): Promise<void> {
    let quiet = 0
    while (!stop && quiet < 2) {
      await sleep(IDLE_CHECK_MS)
      try {
        const idle = await Promise.all(workers.map((worker) => worker.isIdle()))
        quiet = slots.taken === 0 && idle.every(Boolean) ? quiet + 1 : 0
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'could not tell whether work is left')
      }
    }
  }

  async function shutDown(): Promise<void> {
    slots.close()
    for (const worker of workers) worker.stopFetching()
    const finished = () => Promise.all(workers.map((worker) => worker.finished()))
    if (!(await within(options.graceMs, finished()))) {
      for (const worker of workers) worker.abortRuns()
      if (!(await within(ABORT_MS, finished()))) {
        await within(CLOSE_MS, Promise.all(workers.map((worker) => worker.handBackRest())))
      }
    }
    await within(CLOSE_MS, Promise.allSettled(workers.map((worker) => worker.close())))
    await within(CLOSE_MS, queues.close())
    redis.disconnect()
    gateRedis.disconnect()
    await within(CLOSE_MS, Promise.all(workers.map((worker) => worker.ended())))
    stopped.resolve()
  }

  return {
    stop() {
      stop ??= shutDown()
      return stop
    },
    idle: options.untilIdle ? Promise.race([untilIdle(), stopped.promise]) : stopped.promise,
    stats: () => ({
      running: slots.taken,
      lastProgressMs: Math.min(...workers.map(({ lastProgressMs }) => lastProgressMs)),
      runs: structuredClone(runs),
    }),
  }
}

/** Whether it came to an end in time; what fails has come to an end too. */
async function within(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const timeout = new AbortController()
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => true,
      ),
      sleep(timeoutMs, false, { signal: timeout.signal }),
    ])
  } finally {
    timeout.abort()
  }
}
