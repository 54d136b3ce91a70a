import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Call, Urgency } from '../call.ts'
import { aborted } from '../errors.ts'

export interface SharedReadOptions<T> {
  /** Shared by all workers; without it each process reads for itself. */
  redis?: Redis
  /** Whole key in Redis. It must name the account, so that a new credential never sees an old one's data. */
  key: () => string
  /** How long a read serves. 0 keeps nothing. */
  maxAgeMs: number
  /** Reads all of it. The value travels as JSON. */
  fetch: Fetch<T>
  /** `fetch` says when it begins to read. */
  saysBegun?: boolean
  gatherMs?: GatherMs
}

/** How long a fresh read waits for others who ask for one: a burst comes within some milliseconds, and requests are few. */
export type GatherMs = number | Readonly<Record<Urgency, number>>

/**
 * `begun` is for reads that wait for their turn first: until they call it, who asks for a read that begins later may have this one.
 * Whether a read does so has to be said, else it counts as begun when it is asked for.
 */
export type Fetch<T> = (call: Call, begun: () => void) => Promise<T>

export interface SharedRead<T> {
  /** A read at most `maxAgeMs` old. One worker refreshes, all others wait for it. */
  get(call: Call): Promise<T>
  /** A read that began after this call. Callers that wait for the next one share it. */
  fresh(call: Call): Promise<T>
  /** A read that began no earlier than this (monotonic milliseconds), be it over. */
  since(beganMs: number, call: Call): Promise<T>
  /** What is known here and still young, without asking anybody. */
  peek(): T | undefined
  /** A write has made what is known here wrong, and this makes it right. It gets no younger by that, and others don't hear of it. */
  amend(change: (value: T) => T): void
  /** Drops what is known: a write has made it wrong. */
  forget(): Promise<void>
}

/** A reader that died or froze holds up the others for so long; one that lives says so in between. */
const LOCK_MS = 3000
const RENEW_MS = 1000
/** Longer than any read takes: then everybody reads for itself. */
const PATIENCE_MS = 20_000
const POLL_MS = 50

/** Something big that many ask for at once: kept in process and in Redis, read by one at a time. */
export function createSharedRead<T>(options: SharedReadOptions<T>): SharedRead<T> {
  const { redis, maxAgeMs } = options
  let memo: { key: string; value: T; untilMs: number; beganMs: number } | undefined
  let refreshing: { key: string; value: Promise<T> } | undefined
  const coalesced = createCoalescedRead<T>(
    async (call, begun) => {
      const key = options.key()
      const beganMs = performance.now()
      const value = await options.fetch(call, begun)
      await publish(key, value, beganMs)
      return value
    },
    { saysBegun: options.saysBegun ?? false, gatherMs: options.gatherMs ?? 0 },
  )

  const remember = (key: string, value: T, forMs: number, beganMs: number) => {
    if (forMs > 0) memo = { key, value, untilMs: performance.now() + forMs, beganMs }
  }

  async function publish(key: string, value: T, beganMs: number): Promise<void> {
    remember(key, value, maxAgeMs, beganMs)
    if (!redis || maxAgeMs <= 0) return
    // Others can read for themselves if Redis does not take it.
    await redis.set(key, JSON.stringify(value), 'PX', maxAgeMs).catch(() => undefined)
  }

  async function published(key: string): Promise<T | undefined> {
    if (!redis) return undefined
    try {
      const [[, text], [, ttlMs]] = (await redis.multi().get(key).pttl(key).exec()) as [
        [unknown, string | null],
        [unknown, number],
      ]
      if (typeof text !== 'string') return undefined
      const value = JSON.parse(text) as T
      // Nobody tells when that began.
      remember(key, value, ttlMs, Number.NEGATIVE_INFINITY)
      return value
    } catch {
      return undefined
    }
  }

  /** True when this worker is the one that reads. Without an answer from Redis everybody is. */
  async function lock(key: string, token: string): Promise<boolean> {
    if (!redis || maxAgeMs <= 0) return true
    return (await redis.set(`${key}:lock`, token, 'PX', LOCK_MS, 'NX').catch(() => 'OK')) === 'OK'
  }

  async function renew(key: string, token: string): Promise<void> {
    if (redis && maxAgeMs > 0) await redis.eval(RENEW, 1, `${key}:lock`, token, LOCK_MS).catch(() => undefined)
  }

  async function unlock(key: string, token: string): Promise<void> {
    if (redis && maxAgeMs > 0) await redis.eval(UNLOCK, 1, `${key}:lock`, token).catch(() => undefined)
  }

  async function refresh(key: string, call: Call): Promise<T> {
    const token = randomUUID()
    const giveUpAt = performance.now() + PATIENCE_MS
    for (;;) {
      const value = await published(key)
      if (value !== undefined) return value
      if ((await lock(key, token)) || performance.now() > giveUpAt) break
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    const renewing = setInterval(() => void renew(key, token), RENEW_MS).unref()
    try {
      // Between our look and our lock another may have published and let go.
      const meanwhile = await published(key)
      if (meanwhile !== undefined) return meanwhile
      const beganMs = performance.now()
      const read = await options.fetch(detached(call), () => {})
      await publish(key, read, beganMs)
      return read
    } finally {
      clearInterval(renewing)
      await unlock(key, token)
    }
  }

  return {
    async get(call) {
      const key = options.key()
      if (memo?.key === key && memo.untilMs > performance.now()) return memo.value
      if (refreshing?.key !== key) {
        const mine = { key, value: refresh(key, call) }
        refreshing = mine
        const done = () => {
          if (refreshing === mine) refreshing = undefined
        }
        mine.value.then(done, done)
      }
      return untilAborted(refreshing?.value ?? refresh(key, call), call)
    },
    fresh: coalesced,
    async since(beganMs, call) {
      return memo && memo.key === options.key() && memo.beganMs >= beganMs ? memo.value : await coalesced(call)
    },
    peek: () => (memo && memo.key === options.key() && memo.untilMs > performance.now() ? memo.value : undefined),
    amend(change) {
      if (memo) memo = { ...memo, value: change(memo.value) }
    },
    async forget() {
      memo = undefined
      await redis?.del(options.key()).catch(() => undefined)
    },
  }
}

const RENEW = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`
const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

/**
 * Reads that must begin after they were asked for, at the cost of few: who asks while a read is on its way gets the next one,
 * together with everybody else who asked meanwhile.
 */
export function createCoalescedRead<T>(
  fetch: Fetch<T>,
  { saysBegun = false, gatherMs = 0 }: { saysBegun?: boolean; gatherMs?: GatherMs } = {},
): (call: Call) => Promise<T> {
  const given = typeof gatherMs === 'number' ? { user: gatherMs, background: gatherMs } : gatherMs
  const gatherFor = { ...given, urgent: 0 }
  let current: Promise<T> | undefined
  /** The current read has not begun: whose urgency it waits with. */
  let waiting: Call['urgency'] | undefined
  /** The current read still waits for company. */
  let gathering: { call: Call; end: AbortController } | undefined
  let next: Promise<T> | undefined
  /** Whose call the next read is: a user's, if one of those who wait for it is. */
  let asked: Call | undefined

  /** Whose call the read is when the wait for company is over. */
  async function gather(call: Call): Promise<Call> {
    const forMs = gatherFor[call.urgency]
    if (forMs <= 0) return call
    const mine = { call, end: new AbortController() }
    gathering = mine
    await delay(forMs, undefined, { signal: mine.end.signal }).catch(() => undefined)
    gathering = undefined
    return mine.call
  }

  /** A user waits no longer for company than a user's own read does, whoever asked for it first. */
  function hurry(user: Call, waited: NonNullable<typeof gathering>): void {
    waited.call = user
    waiting = user.urgency
    if (gatherFor.user < gatherFor.background) setTimeout(() => waited.end.abort(), gatherFor.user)
  }

  const begin = async (asked: Call): Promise<T> => {
    const call = await gather(asked)
    if (!saysBegun) waiting = undefined
    return await fetch(detached(call), () => {
      waiting = undefined
    })
  }

  const start = (call: Call): Promise<T> => {
    waiting = saysBegun || gatherFor[call.urgency] > 0 ? call.urgency : undefined
    const read = begin(call)
    current = read
    const done = () => {
      if (current === read) current = undefined
    }
    read.then(done, done)
    return read
  }

  return (call) => {
    // Behind nobody, not even for company.
    if (call.urgency === 'urgent')
      return untilAborted(
        fetch(detached(call), () => {}),
        call,
      )
    if (!current) return untilAborted(start(call), call)
    if (gathering && waiting === 'background' && call.urgency === 'user') hurry(call, gathering)
    if (waiting === 'user' || waiting === call.urgency) return untilAborted(current, call)
    if (!asked || call.urgency === 'user') asked = call
    if (!next) {
      const after = current
      const following: Promise<T> = after
        .then(
          () => undefined,
          () => undefined,
        )
        .then(() => {
          const first = asked ?? call
          next = undefined
          asked = undefined
          return start(first)
        })
      next = following
    }
    return untilAborted(next, call)
  }
}

/** A read that several wait for does not end with the first of them. */
function detached(call: Call): Call {
  return { ...call, signal: new AbortController().signal, beforeWrite: call.beforeWrite.bind(call) }
}

/** The caller stops waiting when its run is stopped; the read goes on for the others. */
function untilAborted<T>(value: Promise<T>, { signal }: Call): Promise<T> {
  if (signal.aborted) {
    value.catch(() => undefined)
    return Promise.reject(aborted('the run was stopped while it waited for a read', { cause: signal.reason }))
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(aborted('the run was stopped while it waited for a read', { cause: signal.reason }))
    signal.addEventListener('abort', onAbort, { once: true })
    value.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
