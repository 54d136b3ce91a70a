import type { ClusterQueue } from './cluster-queue.ts'
import { addJobs } from './move.ts'
import type { Trigger } from './types.ts'

/** A standing job that failed for good is tried again no sooner than this. */
const FAILED_DELAY_MS = 60_000

/**
 * Makes sure that a job stands for each piece of work that comes again by itself. Such work puts its own next run off
 * (`requeueAfterMs`), in the same step in which a run ends, so its schedule is one job under its key: however many workers and servers
 * assert it at once, there is one, and after Redis lost everything the next assertion starts it anew. (BullMQ's job schedulers make jobs
 * without deduplication, which a trigger could neither pull forward nor fold into.) Asserting again is cheap and changes nothing.
 */
export async function ensureStanding(on: ClusterQueue, work: readonly Trigger[]): Promise<void> {
  const missing = new Map((await on.ledger.missing(work.map(({ key }) => key))).map((one) => [one.key, one]))
  await addJobs(
    on,
    work.flatMap((trigger) => {
      const found = missing.get(trigger.key)
      return found ? [{ ...trigger, delayMs: found.failed ? FAILED_DELAY_MS : trigger.delayMs }] : []
    }),
  )
}
