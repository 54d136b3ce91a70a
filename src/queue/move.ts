import { ErrorCode } from 'bullmq'
import type { ClusterQueue } from './cluster-queue.ts'
import type { Move } from './ledger.ts'
import { jobOptions } from './names.ts'
import type { JobData, Trigger } from './types.ts'

/** Adds jobs for triggers, each folded into the job that stands for its object already; resolves to the ids of the jobs that stand. */
export async function addJobs(to: ClusterQueue, triggers: readonly Trigger[]): Promise<string[]> {
  if (triggers.length === 0) return []
  const jobs = await to.queue.addBulk(
    triggers.map((trigger) => ({
      name: trigger.kind,
      data: jobData(to.cluster, trigger),
      opts: jobOptions(trigger),
    })),
  )
  return jobs.map((job) => String(job.id))
}

export function jobData(cluster: string, trigger: Trigger): JobData {
  const { kind, key, cause, urgency, uid, eventId, traceparent } = trigger
  return { v: 1, cluster, kind, key, cause, urgency, uid, eventId, traceparent, enqueuedAtMs: Date.now() }
}

/**
 * Carries out what the ledger found. Between finding and doing a job may have begun, ended or been taken by another worker; each of these
 * means that a run starts after the object became due, or that its end looks again, so such refusals are no errors.
 */
export async function carryOut(on: ClusterQueue, moves: readonly Move[]): Promise<void> {
  const backend = on.queue.getBackend()
  const missing = moves.flatMap(({ jobId, trigger, runInMs = 0 }) =>
    jobId === undefined && trigger ? [{ ...trigger, delayMs: runInMs }] : [],
  )
  await Promise.all([
    addJobs(on, missing),
    ...moves.map(async ({ jobId, priority, runInMs }) => {
      if (jobId === undefined) return
      if (priority !== undefined) await unlessMoved(backend.changePriority(jobId, priority))
      if (runInMs === 0) await unlessMoved(backend.promote(jobId))
      else if (runInMs !== undefined) await unlessMoved(backend.changeDelay(jobId, runInMs))
    }),
  ])
}

async function unlessMoved(done: Promise<void>): Promise<void> {
  try {
    await done
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/** BullMQ's answers when a job is not, or no longer, where or whose it was thought to be. */
export function isGone(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === ErrorCode.JobNotExist ||
      error.code === ErrorCode.JobNotInState ||
      error.code === ErrorCode.JobLockNotExist ||
      error.code === ErrorCode.JobLockMismatch)
  )
}
