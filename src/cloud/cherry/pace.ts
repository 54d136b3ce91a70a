import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import { aborted, throttled } from '../../errors.ts'

export interface PaceOptions {
  /** Shared by all workers; without it each process keeps a pace of its own. */
  redis?: Redis
  prefix: string
  /** What identifies the account; only its hash is kept. */
  credential: string
  /** Requests in any stretch of `windowMs`. */
  limit?: number
  windowMs?: number
  /** Longest wait in one `take`. */
  patienceMs?: number
}

/**
 * Cherry allows four requests a second and refuses the fifth. That is so short a time that a run waits for its turn rather than being put
 * off: a run that is begun anew reads everything once more.
 */
export interface Pace {
  /** Resolves when a request may be sent. Throws `throttled` when that would take longer than it may wait. */
  take(call: Pick<Call, 'urgency' | 'signal'>): Promise<void>
  /** The cloud refused a request for its rate: nobody asks again before that time (unix milliseconds). */
  block(untilMs: number): Promise<void>
}

const LIMIT = 4
/** A little more than a second: what leaves here evenly may arrive bunched. */
const WINDOW_MS = 1100
const PATIENCE_MS = 10_000
const LONGEST_BLOCK_MS = 600_000
/** Behind a longer block what is urgent asks all the same: the control plane may be away as long as that. */
const URGENT_WAIT_MS = 5000

export function createPace(options: PaceOptions): Pace {
  const { redis, prefix, limit = LIMIT, windowMs = WINDOW_MS, patienceMs = PATIENCE_MS } = options
  const id = createHash('sha256').update(options.credential).digest('hex').slice(0, 16)
  const key = `{${prefix}}:v1:cherry-pace:${id}`
  const local = createLocalPace(limit, windowMs)

  /** Who waits here goes in the order in which they came: of many that ask anew at one time the last might wait for ever. */
  const lines = { user: createLine(), background: createLine() }

  /** Milliseconds until it is worth asking again; 0 when one was taken. A Redis that is away must not stop work. */
  async function ask(background: boolean): Promise<number> {
    if (!redis) return local.ask(background, Date.now())
    try {
      const keys = [key, `${key}:blocked`, `${key}:user-waits`] as const
      return Number(await redis.eval(ASK, keys.length, ...keys, limit, windowMs, background ? 1 : 0))
    } catch {
      return local.ask(background, Date.now())
    }
  }

  const tooMany = (waitMs: number, urgency: Call['urgency']) => {
    const untilMs = Date.now() + waitMs
    return throttled(
      `Cherry Servers: more requests wait than the API takes (${limit} a second), going on at ${new Date(untilMs).toISOString()}`,
      untilMs,
      // The lines are apart: who waits behind all others keeps no user from his.
      { code: 'rate_limit_exceeded', ...(urgency === 'background' ? { userRetryAtMs: Date.now() } : {}) },
    )
  }

  return {
    async take({ urgency, signal }) {
      const giveUpAt = performance.now() + patienceMs
      const tryUntilTaken = async () => {
        for (;;) {
          const waitMs = await ask(urgency === 'background')
          if (waitMs <= 0) return
          if (urgency === 'urgent' && waitMs > URGENT_WAIT_MS) {
            await pause(URGENT_WAIT_MS, signal)
            return
          }
          if (performance.now() + waitMs > giveUpAt) throw tooMany(waitMs, urgency)
          // Processes that wait for the same slot must not ask in the same millisecond.
          const apartMs = urgency === 'urgent' ? 0 : Math.random() * 50
          await pause(waitMs + apartMs, signal)
        }
      }
      if (urgency === 'urgent') return await tryUntilTaken()
      const line = lines[urgency]
      const waitMs = Math.floor(line.length / limit) * windowMs
      // No use in standing in a line that is too long.
      if (waitMs > patienceMs) throw tooMany(waitMs, urgency)
      await line.stand(tryUntilTaken, signal)
    },
    async block(untilMs) {
      const forMs = Math.round(Math.min(Math.max(untilMs - Date.now(), 1000), LONGEST_BLOCK_MS))
      local.block(Date.now() + forMs)
      await redis?.set(`${key}:blocked`, '1', 'PX', forMs).catch(() => undefined)
    },
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch((cause) => {
    throw stopped(cause)
  })
}

const stopped = (cause: unknown) =>
  aborted('the run was stopped while it waited for its turn at Cherry Servers', { cause })

function createLine() {
  let last: Promise<unknown> = Promise.resolve()
  let length = 0
  return {
    get length() {
      return length
    },
    /** Does it when all who came before have done theirs, or have left. */
    async stand(turn: () => Promise<void>, signal: AbortSignal): Promise<void> {
      length++
      const mine = last.then(() => (signal.aborted ? undefined : turn()))
      last = mine
        .catch(() => {})
        .finally(() => {
          length--
        })
      await new Promise<void>((resolve, reject) => {
        const leave = () => reject(stopped(signal.reason))
        if (signal.aborted) leave()
        signal.addEventListener('abort', leave, { once: true })
        mine.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
      })
    },
  }
}

/**
 * A log of the last requests by Redis' own clock. Background work leaves one of them to users, and all while one of those waits.
 * Returns the milliseconds to wait, 0 when one was taken.
 */
const ASK = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window, background = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local blocked = redis.call('PTTL', KEYS[2])
if blocked > 0 then return blocked end
if background and redis.call('EXISTS', KEYS[3]) == 1 then return math.ceil(window / limit) end
local room = background and limit > 1 and limit - 1 or limit
local last = tonumber(redis.call('LINDEX', KEYS[1], room - 1) or '0')
if now - last < window and last <= now then
  local wait = window - (now - last)
  if not background then redis.call('SET', KEYS[3], '1', 'PX', wait + 100) end
  return wait
end
redis.call('LPUSH', KEYS[1], now)
redis.call('LTRIM', KEYS[1], 0, limit - 1)
redis.call('PEXPIRE', KEYS[1], window)
return 0
`

function createLocalPace(limit: number, windowMs: number) {
  let sent: number[] = []
  let blockedUntil = 0
  let userWaitsUntil = 0
  return {
    ask(background: boolean, now: number): number {
      if (blockedUntil > now) return blockedUntil - now
      if (background && userWaitsUntil > now) return Math.ceil(windowMs / limit)
      sent = sent.filter((at) => now - at < windowMs && at <= now)
      const room = background && limit > 1 ? limit - 1 : limit
      const last = sent.at(-room)
      if (last !== undefined && sent.length >= room) {
        const wait = windowMs - (now - last)
        if (!background) userWaitsUntil = now + wait + 100
        return wait
      }
      sent.push(now)
      return 0
    },
    block(untilMs: number) {
      blockedUntil = untilMs
    },
  }
}
