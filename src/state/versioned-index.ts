import { randomUUID } from 'node:crypto'
import type { ChainableCommander, Redis } from 'ioredis'
import { confirmedEpochKey } from './epoch.ts'
import { stateKey } from './keys.ts'
import { OUTBOX_SEQUENCE, outboxKey } from './outbox.ts'
import { answerOf, defineScript, listOf, textOf } from './script.ts'

/** A fact of an object that others depend on. `''` stands for its absence. */
export interface Aspect {
  /** What is written into the outbox when the value changes. */
  outboxKey: string
  value: string
}

export interface IndexedItem {
  name: string
  uid: string
  /** Unsigned decimal. */
  resourceVersion: string
  /** Equal for states that can't be told apart. */
  fingerprint: string
  aspects: Aspect[]
  /** What `all` and `get` return; empty when the index keeps no bodies. */
  body: string
  /** The snapshot that names the object, if any. */
  snapshot?: string
}

export interface Put {
  /** `stale`: something newer is known, this version or the object's deletion. */
  outcome: 'stale' | 'unchanged' | 'changed'
  /** Outbox keys of the aspects that changed. */
  changedAspects: string[]
  /** The object is part of a snapshot that looks at everything again. */
  recheck: boolean
}

export interface Vanished {
  name: string
  uid: string
}

export interface SnapshotResult {
  /** False when Redis saw another number of objects than the snapshot named: its end is not believed. */
  complete: boolean
  vanished: Vanished[]
  /**
   * The list is older than what was known before it began, or has an object in an older state than it can have: it came late, or the
   * versions that are known are of a former life of the cluster. Only a list read after them can tell.
   */
  isBehind: boolean
}

/** Versions as they are known: none that is read from the API afterwards can be lower, unless they are of a former life. */
export interface KnownVersions {
  /** Of all that was ever told, deletions and lists too; undefined before anything was. */
  highest: string | undefined
  byName: ReadonlyMap<string, string>
}

/** The objects of one kind that a cluster has, as far as Redis was told. */
export interface VersionedIndex {
  put(cluster: string, items: readonly IndexedItem[]): Promise<Put[]>
  remove(cluster: string, name: string, uid: string, resourceVersion: string): Promise<'removed' | 'stale' | 'unknown'>
  beginSnapshot(cluster: string, snapshot: string): Promise<void>
  /** `epoch` is that of the answer: a Redis that lost anything since counts as incomplete. */
  endSnapshot(
    cluster: string,
    snapshot: string,
    end: { items: number; listVersion: string; epoch: string },
  ): Promise<SnapshotResult>
  /** Bodies of all objects; `complete` when nothing but what is here exists, as of the last finished snapshot and all events since. */
  all(cluster: string): Promise<{ complete: boolean; bodies: string[] }>
  /** The body of one object; `complete` as of all: without it, a later state may not have been told. */
  get(cluster: string, name: string): Promise<{ complete: boolean; body: string | undefined }>
  /** Events may have been lost: nothing counts as complete until the next finished snapshot. */
  doubt(cluster: string): Promise<void>
  versions(cluster: string): Promise<KnownVersions>
  /**
   * The cluster was made anew or brought back from a backup, and counts its versions from lower ones: what is known is forgotten, with its
   * deletions. The outbox has what depended on it.
   */
  beginLife(cluster: string): Promise<void>
}

const TOMBSTONE_S = 3600
const SNAPSHOT_S = 900
/** Snapshots after short gaps trust what was handled; one in this time looks at all objects again, as after a start of the forwarder. */
const RECHECK_S = 600

/** Versions are unsigned decimals without leading zeros: the longer is the greater. */
const SHARED = `
local meta, bodies, outbox, snapshots, highest, life = KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[7], KEYS[8]
-- Those of a former life are never read again.
local tombstones = KEYS[4] .. (redis.call('GET', life) or '')
local function newer(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end
local function reached(version)
  local before = redis.call('GET', highest)
  if not before or newer(version, before) then redis.call('SET', highest, version) end
end
local function enqueue(key, uid, cause)
  local sequence = redis.call('HINCRBY', outbox, '${OUTBOX_SEQUENCE}', 1)
  redis.call('HSET', outbox, key, cjson.encode({ sequence = sequence, uid = uid, cause = cause }))
end
local function bury(name, old, version, cause)
  redis.call('HDEL', meta, name)
  redis.call('HDEL', bodies, name)
  redis.call('SET', tombstones .. name, version, 'EX', ${TOMBSTONE_S})
  for _, aspect in ipairs(old.aspects) do
    if aspect[2] ~= '' then enqueue(aspect[1], old.uid, cause) end
  end
end`

const PUT = `${SHARED}
local known = {}
local function note(snapshot, name)
  if snapshot == nil then return 0 end
  local key = snapshots .. snapshot
  if known[snapshot] == nil then
    if redis.call('SISMEMBER', key, '#recheck') == 1 then known[snapshot] = 1
    elseif redis.call('SISMEMBER', key, '#') == 1 then known[snapshot] = 0
    else known[snapshot] = -1 end
    if known[snapshot] >= 0 then redis.call('EXPIRE', key, ${SNAPSHOT_S}) end
  end
  if known[snapshot] >= 0 then redis.call('SADD', key, name) end
  return known[snapshot] == 0 and 0 or 1
end
local function put(item, body)
  local name, recheck = item.name, note(item.snapshot, item.name)
  local stored = redis.call('HGET', meta, name)
  local old = stored and cjson.decode(stored)
  local buried = redis.call('GET', tombstones .. name)
  if (old and newer(old.version, item.version)) or (buried and not newer(item.version, buried)) then
    local key = item.snapshot and old and snapshots .. item.snapshot .. '#ahead'
    local ahead = key and redis.call('GET', key)
    if key and newer(old.version, item.version) and (not ahead or newer(ahead, old.version)) then
      redis.call('SET', key, old.version, 'EX', ${SNAPSHOT_S})
    end
    return { 'stale', recheck }
  end
  local same = old and old.uid == item.uid
  local answer = { (same and old.fingerprint == item.fingerprint) and 'unchanged' or 'changed', recheck }
  for i, aspect in ipairs(item.aspects) do
    local was = old and old.aspects[i] and old.aspects[i][2] or ''
    if was ~= aspect[2] or (old and not same and was ~= '') then
      enqueue(aspect[1], item.uid, 'changed')
      table.insert(answer, aspect[1])
    end
  end
  if #answer > 2 or answer[1] == 'changed' or old.version ~= item.version then
    item.snapshot = nil
    reached(item.version)
    redis.call('HSET', meta, name, cjson.encode(item))
    if body ~= '' then redis.call('HSET', bodies, name, body) end
    if buried then redis.call('DEL', tombstones .. name) end
  end
  return answer
end
local answers = {}
for i = 1, #ARGV, 2 do answers[#answers + 1] = put(cjson.decode(ARGV[i]), ARGV[i + 1]) end
return answers`

const REMOVE = `${SHARED}
local name, uid, version = ARGV[1], ARGV[2], ARGV[3]
reached(version)
local stored = redis.call('HGET', meta, name)
if not stored then
  local buried = redis.call('GET', tombstones .. name)
  if not buried or newer(version, buried) then redis.call('SET', tombstones .. name, version, 'EX', ${TOMBSTONE_S}) end
  return 'unknown'
end
local old = cjson.decode(stored)
-- A deletion that is older is about an earlier object of this name; a newer one of another uid says that the known one went before it.
if newer(old.version, version) or (old.uid ~= uid and old.version == version) then return 'stale' end
bury(name, old, version, 'deleted')
return 'removed'`

const BEGIN = `${SHARED}
local key = snapshots .. ARGV[1]
if redis.call('EXISTS', key) == 1 then return end
local recheck = redis.call('SET', snapshots .. '#recheck', '1', 'NX', 'EX', ${RECHECK_S})
redis.call('SADD', key, recheck and '#recheck' or '#')
local before = redis.call('GET', highest)
if before then redis.call('SET', key .. '#highest', before, 'EX', ${SNAPSHOT_S}) end
redis.call('EXPIRE', key, ${SNAPSHOT_S})`

const END = `${SHARED}
local snapshot, items, version, epoch = snapshots .. ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
if redis.call('SCARD', snapshot) - 1 ~= items then return { 0, 0 } end
local before, ahead = redis.call('GET', snapshot .. '#highest'), redis.call('GET', snapshot .. '#ahead')
-- A list has each object at least in the state that it had at the version of the list.
local behind = (before and newer(before, version)) or (ahead and not newer(ahead, version))
local answer = { 1, behind and 1 or 0 }
reached(version)
local all = redis.call('HGETALL', meta)
for i = 1, #all, 2 do
  local name, old = all[i], cjson.decode(all[i + 1])
  if not newer(old.version, version) and redis.call('SISMEMBER', snapshot, name) == 0 then
    bury(name, old, version, 'vanished')
    answer[#answer + 1] = name
    answer[#answer + 1] = old.uid
  end
end
redis.call('SET', KEYS[6], epoch)
return answer`

const BEGIN_LIFE = `${SHARED}
local all = redis.call('HGETALL', meta)
for i = 2, #all, 2 do
  local old = cjson.decode(all[i])
  for _, aspect in ipairs(old.aspects) do
    if aspect[2] ~= '' then enqueue(aspect[1], old.uid, 'vanished') end
  end
end
redis.call('DEL', meta, bodies, highest, KEYS[6])
redis.call('SET', life, ARGV[1] .. '#')`

/** @param kind names the index within its keys, e.g. `nodes` */
export function createVersionedIndex(redis: Redis, prefix: string, kind: string): VersionedIndex {
  const key = (cluster: string, what: string) => stateKey(prefix, cluster, `${kind}:${what}`)
  const keys = (cluster: string) => [
    key(cluster, 'meta'),
    key(cluster, 'bodies'),
    outboxKey(prefix, cluster),
    key(cluster, 'tombstone:'),
    key(cluster, 'snapshot:'),
    key(cluster, 'complete'),
    key(cluster, 'highest'),
    key(cluster, 'life'),
  ]
  /** What a pipeline of one command answers, and whether the index was complete then. */
  const withComplete = async (cluster: string, reading: ChainableCommander) => {
    const results = await reading.get(key(cluster, 'complete')).get(confirmedEpochKey(prefix)).exec()
    const completeIn = textOf(answerOf(results, 1))
    const complete = completeIn !== undefined && completeIn === textOf(answerOf(results, 2))
    return { complete, answer: answerOf(results, 0) }
  }
  const put = defineScript(redis, PUT)
  const remove = defineScript(redis, REMOVE)
  const begin = defineScript(redis, BEGIN)
  const end = defineScript(redis, END)
  const beginLife = defineScript(redis, BEGIN_LIFE)
  return {
    async put(cluster, items) {
      if (items.length === 0) return []
      const answer = await put(keys(cluster), items.flatMap(argumentsOf))
      return listOf(answer).map((one) => {
        const [outcome, recheck, ...changedAspects] = listOf(one)
        return { outcome, recheck: recheck === 1, changedAspects } as Put
      })
    },
    async remove(cluster, name, uid, resourceVersion) {
      return (await remove(keys(cluster), [name, uid, resourceVersion])) as 'removed' | 'stale' | 'unknown'
    },
    async beginSnapshot(cluster, snapshot) {
      await begin(keys(cluster), [snapshot])
    },
    async endSnapshot(cluster, snapshot, { items, listVersion, epoch }) {
      const [complete, behind, ...rest] = listOf(await end(keys(cluster), [snapshot, items, listVersion, epoch]))
      const vanished: Vanished[] = []
      for (let i = 0; i < rest.length; i += 2) vanished.push({ name: String(rest[i]), uid: String(rest[i + 1]) })
      return { complete: complete === 1, vanished, isBehind: behind === 1 }
    },
    async all(cluster) {
      const { complete, answer } = await withComplete(cluster, redis.pipeline().hvals(key(cluster, 'bodies')))
      return { complete, bodies: listOf(answer).map(String) }
    },
    async get(cluster, name) {
      const { complete, answer } = await withComplete(cluster, redis.pipeline().hget(key(cluster, 'bodies'), name))
      return { complete, body: textOf(answer) }
    },
    async doubt(cluster) {
      await redis.del(key(cluster, 'complete'))
    },
    async versions(cluster) {
      const results = await redis.pipeline().get(key(cluster, 'highest')).hgetall(key(cluster, 'meta')).exec()
      const byName = Object.entries(answerOf(results, 1) as Record<string, string>).map(
        ([name, meta]) => [name, (JSON.parse(meta) as { version: string }).version] as const,
      )
      return { highest: textOf(answerOf(results, 0)), byName: new Map(byName) }
    },
    async beginLife(cluster) {
      await beginLife(keys(cluster), [randomUUID()])
    },
  }
}

function argumentsOf({ name, uid, resourceVersion, fingerprint, aspects, body, snapshot }: IndexedItem): string[] {
  const pairs = aspects.map((aspect) => [aspect.outboxKey, aspect.value])
  return [JSON.stringify({ name, uid, version: resourceVersion, fingerprint, aspects: pairs, snapshot }), body]
}
