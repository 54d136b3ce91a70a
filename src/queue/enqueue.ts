import { type ErrorKind, permanent, transient, WindlassError } from '../errors.ts'
import type { ClusterQueues } from './cluster-queue.ts'
import { addJobs, carryOut, jobData } from './move.ts'
import { JOB_BYTES, priorityOf } from './names.ts'
import { whenReady } from './redis.ts'
import type { Enqueued, Enqueuer, Trigger } from './types.ts'

/** Redis must have taken so many triggers within this time: a long list must not be taken for a Redis that is away. */
const DEADLINE_MS = 1900
const AT_ONCE = 250

/**
 * The one way into the queue, for events, resync and people alike. First the objects are marked as due, then a job is made to stand for
 * each, then the standing job is moved to where it runs soon enough: whatever dies in between, a worker's sweep finds what is marked.
 * `queues` should be on a `producerConnection`, so that a Redis that is away is told at once.
 */
export function createEnqueuer(queues: ClusterQueues): Enqueuer {
  return {
    async enqueue(cluster, triggers) {
      if (triggers.length === 0) return []
      const folded = fold(triggers)
      for (const trigger of folded) refuseTooBig(cluster, trigger)
      const to = queues.of(cluster)
      const take = async (part: readonly Trigger[]): Promise<Enqueued[]> => {
        await whenReady(to.redis, DEADLINE_MS)
        const generations = await to.ledger.raise(part)
        const jobIds = await addJobs(to, part)
        await carryOut(to, await to.ledger.standing(part.map(({ key }) => key)))
        return part.map(({ key }, index) => ({
          key,
          jobId: jobIds[index] ?? '',
          generation: generations[index] ?? 0,
        }))
      }
      try {
        const byKey = new Map<string, Enqueued>()
        for (let i = 0; i < folded.length; i += AT_ONCE)
          for (const one of await within(DEADLINE_MS, take(folded.slice(i, i + AT_ONCE)))) byKey.set(one.key, one)
        return triggers.flatMap(({ key }) => byKey.get(key) ?? [])
      } catch (error) {
        if (error instanceof WindlassError && PASSED_ON.has(error.kind)) throw error
        throw transient(`Redis did not take the jobs of cluster ${cluster}: look at its log, memory and role`, {
          cause: error,
        })
      }
    },
  }
}

const PASSED_ON: ReadonlySet<ErrorKind> = new Set(['transient', 'permanent'])

/** One trigger per object: the most urgent one's words, of equally urgent ones the last's, and the earliest one's time. */
function fold(triggers: readonly Trigger[]): Trigger[] {
  const byKey = new Map<string, Trigger>()
  for (const trigger of triggers) {
    const before = byKey.get(trigger.key)
    if (before === undefined) byKey.set(trigger.key, trigger)
    else {
      const words = priorityOf(before) < priorityOf(trigger) ? before : trigger
      const delayMs = Math.min(before.delayMs ?? 0, trigger.delayMs ?? 0)
      byKey.set(trigger.key, { ...words, kind: before.kind, delayMs })
    }
  }
  return [...byKey.values()]
}

function refuseTooBig(cluster: string, trigger: Trigger): void {
  const bytes = Buffer.byteLength(JSON.stringify(jobData(cluster, trigger)))
  if (bytes > JOB_BYTES) {
    throw permanent(
      `The job for ${trigger.key.slice(0, 200)} has ${bytes} bytes of data, more than the ${JOB_BYTES} that are allowed: jobs name an object and don't carry it`,
    )
  }
}

async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(transient(`Redis did not answer within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
