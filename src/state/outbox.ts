import type { Redis } from 'ioredis'
import { stateKey } from './keys.ts'
import { defineScript } from './script.ts'

/** Something that a change of the state asks to be enqueued. */
export interface Pending {
  /** Queue key of the work: `Cluster/targets`, `Node/worker-1`, … */
  key: string
  /** Why, for people: `changed`, `deleted`, `vanished`. */
  cause: string
  /** uid of the object that changed. */
  uid: string
  /** As it stands in Redis: a later change of the same key has another. */
  entry: string
}

export interface Outbox {
  read(cluster: string): Promise<Pending[]>
  /** The queue holds these; what changed since then stays. */
  clear(cluster: string, done: readonly Pending[]): Promise<void>
}

export const outboxKey = (prefix: string, cluster: string) => stateKey(prefix, cluster, 'outbox')

/** Field of the outbox that numbers its entries. */
export const OUTBOX_SEQUENCE = '#'

/**
 * What the state says must be enqueued, until the queue holds it. Entries are made in the same step as the change that asks for them, so a
 * server that dies between the two, or a batch that is sent again and now changes nothing, loses no work: the next request finds them.
 */
export function createOutbox(redis: Redis, prefix: string): Outbox {
  const clear = defineScript(
    redis,
    `for i = 1, #ARGV, 2 do
       if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('HDEL', KEYS[1], ARGV[i]) end
     end`,
  )
  return {
    async read(cluster) {
      const fields = await redis.hgetall(outboxKey(prefix, cluster))
      return Object.entries(fields)
        .filter(([key]) => key !== OUTBOX_SEQUENCE)
        .map(([key, entry]) => {
          const { uid, cause } = JSON.parse(entry) as { uid: string; cause: string }
          return { key, uid, cause, entry }
        })
    },
    async clear(cluster, done) {
      if (done.length === 0) return
      await clear(
        [outboxKey(prefix, cluster)],
        done.flatMap(({ key, entry }) => [key, entry]),
      )
    },
  }
}
