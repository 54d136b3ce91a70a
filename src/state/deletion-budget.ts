import type { Redis } from 'ioredis'
import { stateKey } from './keys.ts'
import { defineScript, listOf } from './script.ts'

export interface DeletionVerdict {
  allowed: boolean
  /** Deletions in the window, this one included when it is allowed. */
  used: number
  /** How many may be in a window. */
  limit: number
  /** Since when, unix milliseconds, more than one deletion per window waits for a human's word; undefined when none does. */
  heldSinceMs?: number
}

/**
 * How many Nodes may be deleted. Once more were asked for than the limit, only one per window goes on, so that a small cluster still
 * heals, until somebody releases the hold.
 */
export interface DeletionBudget {
  /**
   * Asks for one deletion, and takes it from the budget if it is allowed. Asking again for the same Node takes nothing.
   * @param nodeUid uid of the Node
   * @param nodeCount Nodes of the cluster, this one included
   */
  allow(cluster: string, nodeUid: string, nodeCount: number, nowMs: number): Promise<DeletionVerdict>
  heldSinceMs(cluster: string): Promise<number | undefined>
  /** The human's word: the window starts anew. */
  release(cluster: string): Promise<void>
}

const WINDOW_MS = 600_000

export function createDeletionBudget(redis: Redis, prefix: string): DeletionBudget {
  const keys = (cluster: string) => [
    stateKey(prefix, cluster, 'deletions'),
    stateKey(prefix, cluster, 'deletions:held'),
  ]
  const allow = defineScript(
    redis,
    `local uid, limit, now = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
     redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${WINDOW_MS})
     local used = redis.call('ZCARD', KEYS[1])
     local held = redis.call('GET', KEYS[2])
     local allowed = 1
     if not redis.call('ZSCORE', KEYS[1], uid) then
       if not held and used >= limit then
         held = ARGV[3]
         redis.call('SET', KEYS[2], held)
       end
       if used > 0 and (held or used >= limit) then
         allowed = 0
       else
         redis.call('ZADD', KEYS[1], now, uid)
         redis.call('PEXPIRE', KEYS[1], ${WINDOW_MS * 2})
         used = used + 1
       end
     end
     return { allowed, used, held or '' }`,
  )
  return {
    async allow(cluster, nodeUid, nodeCount, nowMs) {
      const limit = Math.max(2, Math.floor(nodeCount / 5))
      const [allowed, used, held] = listOf(await allow(keys(cluster), [nodeUid, limit, nowMs]))
      return { allowed: allowed === 1, used: Number(used), limit, ...(held ? { heldSinceMs: Number(held) } : {}) }
    },
    async heldSinceMs(cluster) {
      const held = await redis.get(stateKey(prefix, cluster, 'deletions:held'))
      return held === null ? undefined : Number(held)
    },
    release: async (cluster) => void (await redis.del(...keys(cluster))),
  }
}
