import type { Redis } from 'ioredis'
import { messageOf } from '../errors.ts'
import { globalKey } from './keys.ts'
import { answerOf, textOf } from './script.ts'

/**
 * Why Redis can't be used now, in sentences; empty when it can. It is written to, since a full or read-only Redis still answers a ping.
 * Rejects never.
 */
export async function redisProblems(redis: Redis, prefix: string): Promise<string[]> {
  try {
    const results = await redis.pipeline().set(globalKey(prefix, 'health'), Date.now(), 'EX', 60).info('memory').exec()
    answerOf(results, 0)
    const policy = /^maxmemory_policy:(\S+)/m.exec(textOf(answerOf(results, 1)) ?? '')?.[1]
    return policy === undefined || policy === 'noeviction'
      ? []
      : [`Redis evicts keys (maxmemory-policy is ${policy}), so jobs can vanish: set maxmemory-policy to noeviction`]
  } catch (error) {
    return [`Redis takes no writes: ${messageOf(error)}`]
  }
}
