import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Call } from '../call.ts'
import { throttled } from '../errors.ts'

export interface BudgetOptions {
  /** Shared by all workers; without it each process has a budget of its own. */
  redis?: Redis
  prefix: string
  /** For messages: whose limit it is. */
  account: string
  /** What identifies the account; only its hash is kept. */
  credential: string
  /** Requests per window until the account's own headers say otherwise. */
  limit: number
  windowMs: number
  /** Share of the limit that background work leaves to what users wait for. */
  reserve?: number
  /**
   * For an API that counts requests in windows and tells nobody when one begins: no stretch of the window has more than the limit. Else
   * requests come back one by one, and after a rest twice the limit goes through in one window.
   */
  rolling?: boolean
}

/** What an answer's headers say of the account's limit. */
export interface RateLimitReading {
  limit?: number
  remaining?: number
}

/** The number of requests that an account has left, kept by all its users together. */
export interface Budget {
  /** Takes one request, or throws `throttled` with the time at which there will be one again. */
  take(urgency: Call['urgency']): Promise<void>
  observe(reading: RateLimitReading): Promise<void>
  /** The cloud refused a request for its rate: nobody asks again before that time (unix milliseconds). */
  block(untilMs: number): Promise<void>
}

const LONGEST_BLOCK_MS = 3_600_000
const DEFAULT_RESERVE = 0.1

/** A token bucket that refills evenly over the window, or a log of the window's requests. Blocked wins over everything. */
export function createBudget(options: BudgetOptions): Budget {
  const { redis, prefix, account, limit, windowMs, reserve = DEFAULT_RESERVE, rolling = false } = options
  const id = createHash('sha256').update(options.credential).digest('hex').slice(0, 16)
  const key = `${prefix}:budget:v1:${account}:${id}`
  const local = (rolling ? createLocalLog : createLocalBucket)(limit, windowMs, reserve)
  const ask = (redis: Redis, urgency: Call['urgency']) => {
    const left = urgency === 'background' ? reserve : 0
    return rolling
      ? redis.eval(TAKE_ROLLING, 2, key, `${key}:log`, Date.now(), limit, windowMs, left)
      : redis.eval(TAKE, 1, key, Date.now(), limit, windowMs, left, TTL_MS)
  }

  /** A budget that can't be read must not stop work: the process' own stands in. */
  const shared = async <T>(ask: (redis: Redis) => Promise<T>, alone: () => T): Promise<T> => {
    if (!redis) return alone()
    try {
      return await ask(redis)
    } catch {
      return alone()
    }
  }

  return {
    async take(urgency) {
      const [retryAtMs, userRetryAtMs] = await shared(
        async (redis) =>
          String(await ask(redis, urgency))
            .split(' ')
            .map(Number) as [number, number],
        () => local.take(urgency === 'background', Date.now()),
      )
      if (retryAtMs > 0)
        throw throttled(
          `${account}: the account's request limit is used up${urgency === 'background' ? ' but for the part kept for what users wait for' : ''}, going on at ${new Date(retryAtMs).toISOString()}`,
          retryAtMs,
          { code: 'rate_limit_exceeded', userRetryAtMs },
        )
    },
    async observe({ limit: said, remaining }) {
      if (rolling || remaining === undefined || !Number.isFinite(remaining)) return
      local.observe(said ?? limit, remaining, Date.now())
      await shared(
        async (redis) => void (await redis.eval(OBSERVE, 1, key, Date.now(), said ?? limit, remaining, TTL_MS)),
        () => undefined,
      )
    },
    async block(untilMs) {
      const bounded = Math.min(Math.max(untilMs, Date.now() + 1000), Date.now() + LONGEST_BLOCK_MS)
      local.block(bounded)
      await shared(
        async (redis) => void (await redis.eval(BLOCK, 1, key, bounded, TTL_MS)),
        () => undefined,
      )
    },
  }
}

const TTL_MS = 2 * LONGEST_BLOCK_MS

/** Returns 0 when one was taken, else the unix milliseconds at which to ask again, and at which a user's work is to ask. */
const TAKE = `
local now = tonumber(ARGV[1])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at', 'limit', 'blocked')
local limit = tonumber(bucket[3]) or tonumber(ARGV[2])
local rate = limit / tonumber(ARGV[3])
local blocked = tonumber(bucket[4]) or 0
if blocked > now then return blocked .. ' ' .. blocked end
local at = tonumber(bucket[2]) or now
local tokens = math.min(limit, (tonumber(bucket[1]) or limit) + math.max(0, now - at) * rate)
local floor = math.ceil(limit * tonumber(ARGV[4]))
local answer = '0 0'
local function due(left) return string.format('%.0f', math.ceil(now + math.max(0, left + 1 - tokens) / rate)) end
if tokens < floor + 1 then answer = due(floor) .. ' ' .. due(0) else tokens = tokens - 1 end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', ARGV[1], 'limit', tostring(limit))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return answer
`

/** The same of a log of when requests were sent, newest first. A clock that goes back counts what it finds in its future. */
const TAKE_ROLLING = `
local now, limit, window = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local blocked = tonumber(redis.call('HGET', KEYS[1], 'blocked') or '0')
if blocked > now then return blocked .. ' ' .. blocked end
local function due(room)
  local last = tonumber(redis.call('LINDEX', KEYS[2], room - 1) or '-1')
  if last >= 0 and last + window > now then return math.min(last, now) + window end
  return now
end
local room = limit - math.ceil(limit * tonumber(ARGV[4]))
if due(room) > now then return string.format('%.0f %.0f', due(room), due(limit)) end
redis.call('LPUSH', KEYS[2], ARGV[1])
redis.call('LTRIM', KEYS[2], 0, limit - 1)
redis.call('PEXPIRE', KEYS[2], window)
return '0 0'
`

const OBSERVE = `
redis.call('HSET', KEYS[1], 'at', ARGV[1], 'limit', ARGV[2], 'tokens', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
`

const BLOCK = `
redis.call('HSET', KEYS[1], 'blocked', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

function createLocalBucket(startLimit: number, windowMs: number, reserve: number) {
  let limit = startLimit
  let tokens = startLimit
  let at = 0
  let blocked = 0
  return {
    take(background: boolean, now: number): [retryAtMs: number, userRetryAtMs: number] {
      if (blocked > now) return [blocked, blocked]
      const rate = limit / windowMs
      tokens = Math.min(limit, tokens + (at === 0 ? 0 : Math.max(0, now - at) * rate))
      at = now
      const floor = background ? Math.ceil(limit * reserve) : 0
      const due = (left: number) => Math.ceil(now + Math.max(0, left + 1 - tokens) / rate)
      if (tokens < floor + 1) return [due(floor), due(0)]
      tokens--
      return [0, 0]
    },
    observe(said: number, remaining: number, now: number) {
      limit = said
      tokens = remaining
      at = now
    },
    block(untilMs: number) {
      blocked = untilMs
    },
  }
}

function createLocalLog(limit: number, windowMs: number, reserve: number): ReturnType<typeof createLocalBucket> {
  let sent: number[] = []
  let blocked = 0
  return {
    take(background, now) {
      if (blocked > now) return [blocked, blocked]
      const due = (left: number) => {
        const last = sent.at(left - limit)
        return last !== undefined && last + windowMs > now ? Math.min(last, now) + windowMs : now
      }
      const left = background ? Math.ceil(limit * reserve) : 0
      if (due(left) > now) return [due(left), due(0)]
      sent = [...sent, now].slice(-limit)
      return [0, 0]
    },
    observe() {},
    block(untilMs) {
      blocked = untilMs
    },
  }
}
