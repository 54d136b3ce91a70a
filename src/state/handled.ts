import type { Redis } from 'ioredis'
import type { Subject } from '../events/subject.ts'
import { stateKey } from './keys.ts'
import { defineScript, listOf } from './script.ts'

/**
 * The state that each object's last successful run left behind, so that the echo of our own write costs no job.
 * Any event of another state forgets it, and then only a run that began after that event can record anew: a run that read an
 * older state, or one that failed, can't make a later event look handled.
 */
export interface Handled {
  /** Before a run observes its object; goes to `record` when it has ended well. */
  begin(cluster: string, subject: Subject): Promise<string>
  /**
   * The run that began with `token` brought the object to the state of this fingerprint and has nothing left to do.
   * False when an event came between, so that the state is not recorded.
   */
  record(cluster: string, subject: Subject, token: string, fingerprint: string): Promise<boolean>
  /**
   * For each of these states: is it the one that the last run left? If not, it is noted that another came.
   * @param nonce never used before
   */
  check(
    cluster: string,
    nonce: string,
    states: readonly { subject: Subject; fingerprint: string }[],
  ): Promise<boolean[]>
  forget(cluster: string, subjects: readonly Subject[]): Promise<void>
  /** Forgets all: Redis may have lost what came after what it still holds. */
  reset(cluster: string): Promise<void>
}

export function createHandled(redis: Redis, prefix: string): Handled {
  const key = (cluster: string) => stateKey(prefix, cluster, 'handled')
  const check = defineScript(
    redis,
    `local answers = {}
     for i = 2, #ARGV, 2 do
       local stored = redis.call('HGET', KEYS[1], ARGV[i])
       local space = stored and string.find(stored, ' ', 1, true)
       if space and string.sub(stored, space + 1) == ARGV[i + 1] then
         answers[#answers + 1] = 1
       else
         redis.call('HSET', KEYS[1], ARGV[i], ARGV[1] .. ' ')
         answers[#answers + 1] = 0
       end
     end
     return answers`,
  )
  const record = defineScript(
    redis,
    `local stored = redis.call('HGET', KEYS[1], ARGV[1]) or ' '
     if string.sub(stored, 1, string.find(stored, ' ', 1, true) - 1) ~= ARGV[2] then return 0 end
     redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
     return 1`,
  )
  return {
    async begin(cluster, subject) {
      const stored = (await redis.hget(key(cluster), subject)) ?? ''
      return stored.split(' ')[0] ?? ''
    },
    async record(cluster, subject, token, fingerprint) {
      return (await record([key(cluster)], [subject, token, fingerprint])) === 1
    },
    async check(cluster, nonce, states) {
      if (states.length === 0) return []
      const args = states.flatMap(({ subject, fingerprint }) => [subject, fingerprint])
      return listOf(await check([key(cluster)], [nonce, ...args])).map((one) => one === 1)
    },
    async forget(cluster, subjects) {
      if (subjects.length > 0) await redis.hdel(key(cluster), ...subjects)
    },
    async reset(cluster) {
      await redis.del(key(cluster))
    },
  }
}
