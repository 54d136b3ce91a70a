import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { bullPrefix } from './keys.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { queueName } from './names.ts'
import type { JobData } from './types.ts'

/** One cluster's queue, with what Windlass keeps beside it. */
export interface ClusterQueue {
  readonly cluster: string
  readonly queue: Queue<JobData>
  readonly ledger: Ledger
  readonly redis: Redis
}

/** Queues of clusters on one connection, which stays the caller's: `close` leaves it open. */
export interface ClusterQueues {
  of(cluster: string): ClusterQueue
  close(): Promise<void>
}

export function openClusterQueues(redis: Redis, prefix: string): ClusterQueues {
  const open = new Map<string, ClusterQueue>()
  return {
    of(cluster) {
      const known = open.get(cluster)
      if (known) return known
      const queue = new Queue<JobData>(queueName(cluster), {
        connection: redis,
        prefix: bullPrefix(prefix),
        // Without these two an add waits for a Redis that was never there, and a version check that failed once fails for ever.
        skipWaitingForReady: true,
        skipVersionCheck: true,
        skipMetasUpdate: true,
      })
      // Every call that fails says so to its caller.
      queue.on('error', () => {})
      const opened = { cluster, queue, ledger: createLedger(redis, prefix, cluster), redis }
      open.set(cluster, opened)
      return opened
    },
    async close() {
      await Promise.allSettled([...open.values()].map(({ queue }) => queue.close()))
      open.clear()
    },
  }
}
