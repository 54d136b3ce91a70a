import type { Redis } from 'ioredis'
import { stateKey } from './keys.ts'
import { defineScript, listOf } from './script.ts'

export interface Sighting {
  /** Unix time in milliseconds. */
  atMs: number
  /** Names the credential that was answered, without saying it. */
  credentialId: string
}

/** Answers of "not found" for one provider id, with no success between. */
export interface Absence {
  firstAtMs: number
  lastAtMs: number
}

/** The evidence that stands before a Node is deleted: who was seen at the cloud, by whom, and since when it is not found. */
export interface Sightings {
  /**
   * The cloud answered for these machines. Ends every absence that was noted up to `atMs`. Returns when each was seen last before, in
   * Unix milliseconds; 0 for never.
   */
  seen(cluster: string, providerIds: readonly string[], credentialId: string, atMs: number): Promise<number[]>
  lastSeen(cluster: string, providerId: string): Promise<Sighting | undefined>
  /** The credential was once answered with a machine of the cluster, whether its Node is there still or not. */
  knows(cluster: string, credentialId: string): Promise<boolean>
  /** The cloud answered, by id, that there is no such machine. Returns the absence with this answer in it. */
  notFound(cluster: string, providerId: string, atMs: number): Promise<Absence>
  absence(cluster: string, providerId: string): Promise<Absence | undefined>
}

const DAY_MS = 86_400_000
/** A machine that nobody saw for so long has no Node that could be deleted by it. */
const FORGOTTEN_MS = 30 * DAY_MS
/** Two answers further apart than this are not one absence: too much may have happened between them. */
const ABSENCE_GAP_MS = 3_600_000

export function createSightings(redis: Redis, prefix: string): Sightings {
  const keys = (cluster: string) => [
    stateKey(prefix, cluster, 'seen:at'),
    stateKey(prefix, cluster, 'seen:by'),
    stateKey(prefix, cluster, 'absent'),
  ]
  const seen = defineScript(
    redis,
    `local now, credential = tonumber(ARGV[1]), ARGV[2]
     local before = {}
     for i = 3, #ARGV do
       local id = ARGV[i]
       local last = redis.call('ZSCORE', KEYS[1], id) or '0'
       before[#before + 1] = last
       if tonumber(last) <= now then
         redis.call('ZADD', KEYS[1], now, id)
         redis.call('HSET', KEYS[2], id, credential)
       end
       local absence = redis.call('HGET', KEYS[3], id)
       if absence and tonumber(string.match(absence, '%d+$')) <= now then redis.call('HDEL', KEYS[3], id) end
     end
     for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], 0, now - ${FORGOTTEN_MS}, 'LIMIT', 0, 100)) do
       redis.call('ZREM', KEYS[1], id)
       redis.call('HDEL', KEYS[2], id)
       redis.call('HDEL', KEYS[3], id)
     end
     return before`,
  )
  const notFound = defineScript(
    redis,
    `local now, first = tonumber(ARGV[2]), ARGV[2]
     local absence = redis.call('HGET', KEYS[3], ARGV[1])
     if absence then
       local from, to = string.match(absence, '^(%d+) (%d+)$')
       if now - tonumber(to) <= ${ABSENCE_GAP_MS} then first = tonumber(from) < now and from or ARGV[2] end
       if tonumber(to) > now then now = tonumber(to) end
     end
     local last = string.format('%.0f', now)
     redis.call('HSET', KEYS[3], ARGV[1], first .. ' ' .. last)
     return { first, last }`,
  )
  return {
    async seen(cluster, providerIds, credentialId, atMs) {
      if (providerIds.length === 0) return []
      return listOf(await seen(keys(cluster), [atMs, credentialId, ...providerIds])).map(Number)
    },
    async lastSeen(cluster, providerId) {
      const [at, by] = keys(cluster) as [string, string]
      const [atMs, credentialId] = await Promise.all([redis.zscore(at, providerId), redis.hget(by, providerId)])
      return atMs === null || credentialId === null ? undefined : { atMs: Number(atMs), credentialId }
    },
    async knows(cluster, credentialId) {
      return (await redis.hvals(stateKey(prefix, cluster, 'seen:by'))).includes(credentialId)
    },
    async notFound(cluster, providerId, atMs) {
      const [firstAtMs, lastAtMs] = listOf(await notFound(keys(cluster), [providerId, atMs])).map(Number)
      return { firstAtMs: firstAtMs ?? atMs, lastAtMs: lastAtMs ?? atMs }
    },
    async absence(cluster, providerId) {
      const stored = await redis.hget(stateKey(prefix, cluster, 'absent'), providerId)
      const [firstAtMs, lastAtMs] = (stored ?? '').split(' ').map(Number)
      return firstAtMs && lastAtMs ? { firstAtMs, lastAtMs } : undefined
    },
  }
}
