import { Redis, type RedisOptions } from 'ioredis'
import { readFile } from '../config/read-file.ts'
import type { RedisSettings } from '../config/types.ts'
import { permanent, transient } from '../errors.ts'
import { type RedisPlace, redisFault } from './redis-fault.ts'

/** No command of a producer takes longer, whether Redis is slow, frozen, gone, or was never there. */
const PRODUCER_COMMAND_MS = 1500

/**
 * A connection for those who must answer soon: it fails fast while Redis is away, and comes back by itself.
 * Nothing is queued in memory while there is no connection. `gather` sends the commands of one turn of the event loop in one write; not for
 * BullMQ, whose many scripts each such write would copy.
 */
export function producerConnection(settings: RedisSettings, name = 'producer', { gather = false } = {}): Redis {
  return connect(settings, {
    connectionName: `windlass-${name}`,
    enableOfflineQueue: false,
    enableAutoPipelining: gather,
    maxRetriesPerRequest: 1,
    commandTimeout: PRODUCER_COMMAND_MS,
    socketTimeout: 3000,
  })
}

/** A connection for workers: it waits for Redis as long as it takes, and a peer that fell silent is given up after seconds. */
export function workerConnection(settings: RedisSettings, name = 'worker'): Redis {
  return connect(settings, {
    connectionName: `windlass-${name}`,
    maxRetriesPerRequest: null,
    // Longer than a worker blocks for work, and workers speak every second.
    socketTimeout: 8000,
  })
}

/** Resolves when commands can be sent; rejects with `transient` when that takes longer or there is no connection in sight. */
export async function whenReady(redis: Redis, timeoutMs: number): Promise<void> {
  if (redis.status === 'ready') return
  if (redis.status !== 'connecting' && redis.status !== 'connect') {
    throw transient(whyAway(redis))
  }
  await new Promise<void>((resolve, reject) => {
    const settle = (then: () => void) => () => {
      clearTimeout(timer)
      redis.off('ready', ready)
      redis.off('close', failed)
      then()
    }
    const ready = settle(resolve)
    const failed = settle(() => reject(transient(whyAway(redis))))
    const timer = setTimeout(failed, timeoutMs)
    redis.once('ready', ready)
    redis.once('close', failed)
  })
}

/** Why a connection is not there, for an admin: the last that went wrong with it. */
export function whyAway(redis: Redis): string {
  const trouble = TROUBLES.get(redis)
  if (trouble === undefined) return 'Redis is not reachable'
  const { place, last } = trouble
  return last === undefined
    ? `Redis is not reachable: ${place.at} has not answered yet, it may be loading its data`
    : redisFault(last.error, place)
}

/** By connection. `last` is missing until something went wrong, its error where the other side just closed. */
const TROUBLES = new WeakMap<Redis, { place: RedisPlace; last?: { error?: unknown } }>()

/** What a Redis says about itself; `runId` changes with each of its lives. */
export interface RedisFacts {
  version: string
  runId: string
}

/**
 * Whether jobs are safe in this Redis. Rejects with a sentence: `permanent` for what can't change while it runs (version, Redis Cluster),
 * `transient` for what an admin or a fail-over can change (policy, replica, not reachable).
 */
export async function checkRedis(redis: Redis): Promise<RedisFacts> {
  let text: string
  try {
    text = await redis.info()
  } catch (error) {
    throw redis.status === 'ready'
      ? transient('Redis does not answer: look at its log and its load', { cause: error })
      : transient(whyAway(redis))
  }
  const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(text)?.[1]?.trim()
  const version = field('redis_version') ?? '0'
  if (field('redis_mode') === 'cluster' || field('cluster_enabled') === '1') {
    throw permanent(
      "Redis runs in cluster mode, which job queues can't use, since all keys of a queue must be on one node: use one Redis primary, with replicas and Sentinel for fail-over",
    )
  }
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < 6 || (major === 6 && minor < 2)) {
    throw permanent(`Redis ${version} is too old: use 6.2 or newer`)
  }
  if (field('role') === 'slave') {
    throw transient(
      'This Redis is a replica and takes no writes: point WINDLASS_REDIS_URL at the primary, or at the sentinels',
    )
  }
  const policy = field('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    throw transient(
      `Redis evicts keys when it is full (maxmemory-policy is ${policy}), so jobs could vanish: set maxmemory-policy to noeviction`,
    )
  }
  return { version, runId: field('run_id') ?? '' }
}

function connect(settings: RedisSettings, options: RedisOptions): Redis {
  const redis = new Redis({
    connectTimeout: 1500,
    keepAlive: 10_000,
    noDelay: true,
    // Backoff with jitter, for ever; never long, since a worker's jobs count as stalled after seconds.
    retryStrategy: (times) => Math.min(2000, 50 * 2 ** Math.min(times, 6)) * (0.75 + Math.random() / 2),
    // After a fail-over the old primary answers, but takes no writes: connect anew, and send the command again.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
    ...addressOf(settings),
    ...options,
  })
  remember(redis, placeOf(settings))
  return redis
}

/** Keeps what went wrong last; every command that fails says so to its caller, but not why the connection is away. */
function remember(redis: Redis, place: RedisPlace): void {
  let told = false
  TROUBLES.set(redis, { place })
  // Without a listener ioredis prints each attempt to connect.
  redis.on('error', (error) => {
    told = true
    TROUBLES.set(redis, { place, last: { error } })
  })
  redis.on('close', () => {
    if (!told) TROUBLES.set(redis, { place, last: {} })
    told = false
  })
  redis.on('ready', () => {
    told = false
    TROUBLES.set(redis, { place })
  })
}

const partsOf = ({ url }: RedisSettings) => /^([a-z+]+):\/\/(?:([^/]*)@)?([^/]*)\/?(.*)$/.exec(url)?.slice(1) ?? []

function placeOf(settings: RedisSettings): RedisPlace {
  const [scheme = '', credentials = '', hosts = '', path = ''] = partsOf(settings)
  const [user = ''] = credentials.split(':')
  const withSentinels = scheme.endsWith('+sentinel')
  const at = hosts.split(',').map((one) => {
    const { host, port } = endpoint(one, withSentinels ? 26379 : 6379)
    return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  })
  return {
    at: at.join(', '),
    tls: scheme.startsWith('rediss'),
    ...(user ? { user: decodeURIComponent(user) } : {}),
    ...(withSentinels ? { master: decodeURIComponent(path) } : {}),
  }
}

function addressOf(settings: RedisSettings): RedisOptions {
  const [scheme = '', credentials = '', hosts = '', path = ''] = partsOf(settings)
  const secure = scheme.startsWith('rediss')
  const tls = secure ? { tls: settings.caFile ? { ca: readFile(settings.caFile) } : {} } : {}
  const [user = '', ...rest] = credentials.split(':')
  const login = {
    ...(user ? { username: decodeURIComponent(user) } : {}),
    ...(rest.length > 0 ? { password: decodeURIComponent(rest.join(':')) } : {}),
  }
  if (!scheme.endsWith('+sentinel')) {
    const { host, port } = endpoint(hosts, 6379)
    return { host, port, ...login, ...(path ? { db: Number(path) } : {}), ...tls }
  }
  return {
    sentinels: hosts.split(',').map((one) => endpoint(one, 26379)),
    name: decodeURIComponent(path),
    ...login,
    ...(login.password === undefined ? {} : { sentinelPassword: login.password }),
    ...tls,
    ...(secure ? { enableTLSForSentinelMode: true, sentinelTLS: tls.tls } : {}),
    sentinelRetryStrategy: (times) => Math.min(2000, 100 * times),
    // After a fail-over sentinels may still name the old primary for a moment.
    failoverDetector: true,
  }
}

function endpoint(text: string, defaultPort: number): { host: string; port: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::([0-9]+))?$/.exec(text) ?? []
  return { host: bracketed ?? plain ?? text, port: port ? Number(port) : defaultPort }
}
