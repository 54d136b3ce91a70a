import type { JobsOptions } from 'bullmq'
import type { Trigger } from './types.ts'

/** Each cluster has a queue of its own, named like it: what stops one cluster stops no other. */
export const queueName = (cluster: string) => cluster

/** BullMQ takes jobs without priority first, then the lowest number. */
export function priorityOf(trigger: Pick<Trigger, 'kind' | 'urgency'>): number {
  if (trigger.urgency === 'user') return 0
  return trigger.kind === 'resync' ? 20 : 10
}

/** Name of the backoff that the worker computes itself. */
const BACKOFF = 'windlass'

/** A job's data in Redis, in bytes, at most. */
export const JOB_BYTES = 2048

/** Finished jobs are there for people to look at, never for correctness. Ages are in seconds. */
const KEPT = { completed: { age: 24 * 3600, count: 1000 }, failed: { age: 14 * 24 * 3600, count: 1000 } }

/** What BullMQ keeps about a queue: here, how many events of its stream; nobody but a dashboard reads them. */
export const QUEUE_META = { 'opts.maxLenEvents': 500 }

export function jobOptions(trigger: Trigger): JobsOptions {
  return {
    priority: priorityOf(trigger),
    ...(trigger.delayMs ? { delay: trigger.delayMs } : {}),
    deduplication: { id: trigger.key, keepLastIfActive: true },
    // Transient errors are retried for ever: a worker says itself when an error is permanent.
    attempts: 1_000_000_000,
    backoff: { type: BACKOFF },
    stackTraceLimit: 1,
    keepLogs: 20,
    sizeLimit: JOB_BYTES,
    removeOnComplete: KEPT.completed,
    removeOnFail: KEPT.failed,
  }
}
