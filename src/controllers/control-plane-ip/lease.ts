import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { aborted } from '../../errors.ts'

/** A stretch of time in which this process had the lease without a gap. What was seen in one is no ground for a write in another. */
export type Term = string

/** One process of all looks after the address. It knows that it may only by Redis, and for no longer than it last said so. */
export interface Lease {
  /** Takes or renews it. Undefined when another process has it, or Redis does not answer. */
  hold(): Promise<Term | undefined>
  /** Throws `aborted` unless it is held now, and has been without a gap since the term began. */
  check(what: string, term: Term): Promise<void>
  release(): Promise<void>
}

export function createLease(redis: Redis, key: string, ttlMs: number): Lease {
  let term: Term = randomUUID()
  let untilMs = Number.NEGATIVE_INFINITY

  /** Once it has run out, here or in Redis, the next hold is a new term. */
  function lapse(): void {
    term = randomUUID()
    untilMs = Number.NEGATIVE_INFINITY
  }

  return {
    async hold() {
      const asked = performance.now()
      if (asked >= untilMs) lapse()
      const mine = term
      try {
        const held = Number(await redis.eval(HOLD, 1, key, mine, ttlMs, untilMs > asked ? 1 : 0)) === 1
        // Another call may have begun a new term meanwhile.
        if (mine !== term) return performance.now() < untilMs ? term : undefined
        if (held) untilMs = Math.max(untilMs, asked + ttlMs)
        else lapse()
      } catch {
        // It lasts as long as it was last said to.
      }
      return performance.now() < untilMs ? term : undefined
    },
    async check(what, since) {
      const holder = performance.now() < untilMs ? await redis.get(key).catch(() => null) : null
      if (since !== term || holder !== term || performance.now() >= untilMs)
        throw aborted(
          `${what}: not done, since this process has not looked after the control plane's address all the time`,
        )
    },
    async release() {
      const last = term
      lapse()
      await redis.eval(RELEASE, 1, key, last).catch(() => undefined)
    },
  }
}

/** A renewal of what is gone in Redis is refused: whoever else had it meanwhile may have moved the address. */
const HOLD = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if not holder and ARGV[3] == '1' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
