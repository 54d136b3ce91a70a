import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { globalKey } from './keys.ts'
import { answerOf, textOf } from './script.ts'

export interface Epoch {
  /** Names this life of Redis: another after a restart, a fail-over or a flush. */
  id: string
  /** True until someone has done what a new epoch asks for and confirmed it. */
  isNew: boolean
}

export interface Epochs {
  /** One round trip. Begins an epoch when the marker is missing. */
  current(): Promise<Epoch>
  /** What depends on the epoch (job schedulers, handled states) was put in order for it. */
  confirm(id: string): Promise<void>
  /** Ends the epoch, so that every forwarder sends all it has. */
  end(): Promise<void>
}

/** Name of the key that holds the epoch which was confirmed last. */
export const confirmedEpochKey = (prefix: string) => globalKey(prefix, 'epoch:confirmed')

/**
 * Redis may lose what it confirmed. Its `run_id` changes with the process that answers (restart, fail-over), a random marker is gone after
 * a flush: together they tell the lives of Redis apart.
 */
export function createEpochs(redis: Redis, prefix: string): Epochs {
  const marker = globalKey(prefix, 'epoch:marker')
  const confirmed = confirmedEpochKey(prefix)
  return {
    async current() {
      const results = await redis
        .pipeline()
        .set(marker, randomUUID(), 'NX')
        .get(marker)
        .get(confirmed)
        .info('server')
        .exec()
      answerOf(results, 0)
      const id = `${runIdOf(answerOf(results, 3))}.${textOf(answerOf(results, 1)) ?? ''}`
      return { id, isNew: textOf(answerOf(results, 2)) !== id }
    },
    async confirm(id) {
      await redis.set(confirmed, id)
    },
    async end() {
      await redis.del(marker)
    },
  }
}

function runIdOf(info: unknown): string {
  return /^run_id:(\w+)/m.exec(textOf(info) ?? '')?.[1] ?? 'unknown'
}
