import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { aborted } from '../../errors.ts'

/** One process of all looks after the address. It knows that it may only by Redis, and for no longer than it last said so. */
export interface Lease {
  /** Takes or renews it; false when another process has it, or Redis does not answer. */
  hold(): Promise<boolean>
  /** Throws `aborted` unless it is held now. */
  check(what: string): Promise<void>
  release(): Promise<void>
}

export function createLease(redis: Redis, key: string, ttlMs: number): Lease {
  const token = randomUUID()
  let untilMs = Number.NEGATIVE_INFINITY
  return {
    async hold() {
      const asked = performance.now()
      try {
        const held = (await redis.eval(HOLD, 1, key, token, ttlMs)) === 1
        untilMs = held ? asked + ttlMs : Number.NEGATIVE_INFINITY
        return held
      } catch {
        return performance.now() < untilMs
      }
    },
    async check(what) {
      const holder = performance.now() < untilMs ? await redis.get(key).catch(() => null) : null
      if (holder !== token || performance.now() >= untilMs)
        throw aborted(`${what}: not done, another process looks after the control plane's address now`)
    },
    async release() {
      untilMs = Number.NEGATIVE_INFINITY
      await redis.eval(RELEASE, 1, key, token).catch(() => undefined)
    },
  }
}

const HOLD = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
