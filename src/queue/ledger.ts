import type { Redis } from 'ioredis'
import { defineScript, listOf, textOf } from '../state/script.ts'
import { type ClusterKeys, clusterKeys } from './keys.ts'
import { priorityOf } from './names.ts'
import type { Trigger } from './types.ts'

/** What to do about the job that stands for an object which is due; each is a call to BullMQ's own API. */
export interface Move {
  key: string
  /** The standing job; undefined when none stands and one must be added. */
  jobId?: string
  /** It waits behind less urgent work. */
  priority?: number
  /** It is put off for longer than the object wants: run it in this many milliseconds (0: now). */
  runInMs?: number
  /** The trigger that nobody stands for. */
  trigger?: Trigger
}

export type Claim =
  | { kind: 'granted'; lockLeftMs: number; trigger?: Trigger; generation?: number }
  /** The job's lock is not ours any more: another worker has the job. */
  | { kind: 'lost' }
  /** Another job's run is at the object. */
  | { kind: 'busy' }
  /** No run may start yet. */
  | { kind: 'early'; waitMs: number }

/**
 * What Windlass keeps beside BullMQ's queue so that no trigger is lost and one run at a time may write. Every method is one step in Redis.
 * An object is *due* from a trigger until a run has begun that reads the object after it. Redis' clock decides, never two machines' clocks.
 */
export interface Ledger {
  readonly keys: ClusterKeys
  /**
   * Makes objects due; resolves to their new generations, which never repeat, even when Redis lost some. Of several triggers the most urgent
   * one's words are kept, of equally urgent ones the last's.
   */
  raise(triggers: readonly Trigger[]): Promise<number[]>
  /** What must be moved so that these objects run when they want to. */
  standing(keys: readonly string[]): Promise<Move[]>
  /** The same for all objects that are overdue by `graceMs`. */
  overdue(graceMs: number): Promise<Move[]>
  /** Those of the keys that no job stands for; `failed` when their last job did for good. */
  missing(keys: readonly string[]): Promise<{ key: string; failed: boolean }[]>
  /** Takes the object for a run of this job, if its lock is held with this token. Before the object is read. */
  claim(key: string, jobId: string, token: string): Promise<Claim>
  /** Whether this run still has the object: one GET. */
  holds(key: string, jobId: string, token: string): Promise<boolean>
  /** No run of the object may start for so long. Resolves to whether the object became due since its run began. */
  hold(key: string, forMs: number): Promise<{ due: boolean }>
  /** The object's job in the failed list from now on; resolves to the one that was there. */
  fail(key: string, jobId: string): Promise<string | undefined>
  /** Gives the object back. `succeeded` forgets its failed job, which is answered; `due`: it became due since the run began. */
  release(
    key: string,
    jobId: string,
    token: string,
    succeeded: boolean,
  ): Promise<{ due: boolean; failedJobId?: string }>
  /** True for one caller per period. */
  takeTurn(periodMs: number): Promise<boolean>
}

export function createLedger(redis: Redis, prefix: string, cluster: string): Ledger {
  const keys = clusterKeys(prefix, cluster)
  const scripts = scriptsOf(redis)
  const standing = async (keyList: readonly string[]) => {
    if (keyList.length === 0) return []
    return listOf(await scripts.standing([keys.due, keys.held, keys.why], [keys.bull, ...keyList])).map(parseMove)
  }
  return {
    keys,
    async raise(triggers) {
      const args = triggers.flatMap((trigger) => {
        const { delayMs = 0, ...rest } = trigger
        return [trigger.key, delayMs, priorityOf(trigger), JSON.stringify(rest)]
      })
      return listOf(await scripts.raise([keys.due, keys.why, keys.clock], args)).map(Number)
    },
    standing,
    async overdue(graceMs) {
      const moves: Move[] = []
      for (let offset = 0; ; offset += PAGE) {
        const page = listOf(await scripts.overdue([keys.due, keys.held], [graceMs, offset, PAGE])).map(String)
        moves.push(...(await standing(page)))
        if (page.length < PAGE) return moves
      }
    },
    async missing(keyList) {
      if (keyList.length === 0) return []
      return listOf(await scripts.missing([keys.failed], [keys.bull, ...keyList])).map((row) => {
        const [key, failed] = listOf(row)
        return { key: String(key), failed: failed === 1 }
      })
    },
    async claim(key, jobId, token) {
      const [kind, value, why] = listOf(
        await scripts.claim([keys.due, keys.why, keys.held, keys.fence], [keys.bull, key, jobId, token]),
      )
      if (kind === 'early') return { kind, waitMs: Number(value) }
      if (kind === 'granted') return { kind, lockLeftMs: Number(value), ...parseWhy(textOf(why)) }
      return { kind: kind === 'busy' ? 'busy' : 'lost' }
    },
    holds: async (key, jobId, token) => (await redis.hget(keys.fence, key)) === fenceOf(jobId, token),
    async hold(key, forMs) {
      return { due: (await scripts.hold([keys.due, keys.held], [key, Math.round(forMs)])) === 1 }
    },
    fail: async (key, jobId) => textOf(await scripts.fail([keys.failed], [key, jobId])),
    async release(key, jobId, token, succeeded) {
      const [due, failedJobId] = listOf(
        await scripts.release([keys.fence, keys.failed, keys.due], [key, fenceOf(jobId, token), succeeded ? 1 : 0]),
      )
      return { due: due === 1, ...(failedJobId ? { failedJobId: String(failedJobId) } : {}) }
    },
    takeTurn: async (periodMs) => (await redis.set(keys.sweep, '1', 'PX', periodMs, 'NX')) === 'OK',
  }
}

const PAGE = 500

const fenceOf = (jobId: string, token: string) => `${jobId}|${token}`

function parseMove(row: unknown): Move {
  const [key, jobId, priority, runInMs, why] = listOf(row)
  const { trigger } = parseWhy(textOf(why))
  return {
    key: String(key),
    ...(jobId ? { jobId: String(jobId) } : {}),
    ...(Number(priority) >= 0 ? { priority: Number(priority) } : {}),
    ...(Number(runInMs) >= 0 ? { runInMs: Number(runInMs) } : {}),
    ...(trigger ? { trigger } : {}),
  }
}

function parseWhy(why: string | undefined): { trigger?: Trigger; generation?: number } {
  const [, generation, json] = /^[0-9]+\|([0-9]+)\|(.*)$/s.exec(why ?? '') ?? []
  if (generation === undefined || !json) return {}
  return { trigger: JSON.parse(json) as Trigger, generation: Number(generation) }
}

const defined = new WeakMap<Redis, ReturnType<typeof define>>()

function scriptsOf(redis: Redis) {
  const scripts = defined.get(redis) ?? define(redis)
  defined.set(redis, scripts)
  return scripts
}

const NOW = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`

function define(redis: Redis) {
  return {
    // Generations are microseconds of Redis' clock, pushed on where it stands still or goes back: unique even after Redis lost the newest.
    raise: defineScript(
      redis,
      `${NOW}
local clock = tonumber(redis.call('GET', KEYS[3]) or '0')
local generations = {}
for i = 1, #ARGV, 4 do
  local key, wanted, priority, json = ARGV[i], now + tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3]
  clock = math.max(clock + 1, t[1] * 1000000 + t[2])
  local generation = string.format('%.0f', clock)
  local before = tonumber(redis.call('ZSCORE', KEYS[1], key) or wanted)
  redis.call('ZADD', KEYS[1], string.format('%.0f', math.min(before, wanted)), key)
  local why = redis.call('HGET', KEYS[2], key)
  local urgent, words = string.match(why or '', '^(%d+)|%d+|(.*)$')
  if urgent and tonumber(urgent) < priority then priority, json = tonumber(urgent), words end
  redis.call('HSET', KEYS[2], key, priority .. '|' .. generation .. '|' .. json)
  generations[#generations + 1] = generation
end
redis.call('SET', KEYS[3], string.format('%.0f', clock))
return generations`,
    ),
    // Reads three facts of BullMQ: the deduplication key names the standing job, the job's hash its priority, and the score of a delayed
    // job is its time in milliseconds times 4096.
    standing: defineScript(
      redis,
      `${NOW}
local bull = ARGV[1]
local moves = {}
for i = 2, #ARGV do
  local key = ARGV[i]
  local due = redis.call('ZSCORE', KEYS[1], key)
  if due then
    local wanted = math.max(now, tonumber(due), tonumber(redis.call('ZSCORE', KEYS[2], key) or '0'))
    local why = redis.call('HGET', KEYS[3], key) or ''
    local id = redis.call('GET', bull .. 'de:' .. key)
    local priority = id and redis.call('HGET', bull .. id, 'priority')
    if not priority then
      moves[#moves + 1] = { key, '', -1, wanted - now, why }
    else
      local asked = tonumber(string.match(why, '^(%d+)|') or priority)
      local raised, sooner = -1, -1
      if asked < tonumber(priority) then raised = asked end
      local score = redis.call('ZSCORE', bull .. 'delayed', id)
      if score and math.floor(tonumber(score) / 4096) > wanted + 20 then sooner = wanted - now end
      if raised >= 0 or sooner >= 0 then moves[#moves + 1] = { key, id, raised, sooner, '' } end
    end
  end
end
return moves`,
    ),
    overdue: defineScript(
      redis,
      `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 60000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[1]), 'LIMIT', ARGV[2], ARGV[3])`,
    ),
    missing: defineScript(
      redis,
      `local missing = {}
for i = 2, #ARGV do
  local id = redis.call('GET', ARGV[1] .. 'de:' .. ARGV[i])
  if not id or redis.call('EXISTS', ARGV[1] .. id) == 0 then
    missing[#missing + 1] = { ARGV[i], redis.call('HEXISTS', KEYS[1], ARGV[i]) }
  end
end
return missing`,
    ),
    // The lock is BullMQ's: a string at <job>:lock that holds the worker's token.
    claim: defineScript(
      redis,
      `${NOW}
local bull, key, id, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lock = bull .. id .. ':lock'
if redis.call('GET', lock) ~= token then return { 'lost' } end
local holder = redis.call('HGET', KEYS[4], key)
local other = holder and string.match(holder, '^([^|]*)|')
if other and other ~= id and redis.call('EXISTS', bull .. other .. ':lock') == 1 then return { 'busy' } end
local held = tonumber(redis.call('ZSCORE', KEYS[3], key) or '0')
if held > now then return { 'early', held - now } end
local why = redis.call('HGET', KEYS[2], key) or ''
redis.call('HSET', KEYS[4], key, id .. '|' .. token)
redis.call('ZREM', KEYS[1], key)
redis.call('HDEL', KEYS[2], key)
redis.call('ZREM', KEYS[3], key)
return { 'granted', redis.call('PTTL', lock), why }`,
    ),
    hold: defineScript(
      redis,
      `${NOW}
if tonumber(ARGV[2]) > 0 then redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), ARGV[1]) end
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 1 end
return 0`,
    ),
    fail: defineScript(
      redis,
      `local before = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return before`,
    ),
    release: defineScript(
      redis,
      `if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
local due = redis.call('ZSCORE', KEYS[3], ARGV[1]) and 1 or 0
if ARGV[3] ~= '1' then return { due } end
local failed = redis.call('HGET', KEYS[2], ARGV[1])
if failed then redis.call('HDEL', KEYS[2], ARGV[1]) end
return { due, failed or '' }`,
    ),
  }
}
