import type { RedisSettings } from '../../config/types.ts'
import { kindOf, messageOf } from '../../errors.ts'
import { checkRedis, producerConnection, whenReady } from '../../queue/redis.ts'
import { ok, problem, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'redis'
const CONNECT_MS = 3000

/** Reads only what Redis says of itself. */
export async function checkRedisSettings(settings: RedisSettings): Promise<Finding[]> {
  if (settings.url === '')
    return [warning(AREA, 'No Redis is configured', 'Set WINDLASS_REDIS_URL, unless this is a forwarder or plan')]
  const redis = producerConnection(settings, 'doctor')
  try {
    await whenReady(redis, CONNECT_MS)
    const { version } = await checkRedis(redis)
    const text = await redis.info('persistence')
    const persists = /^aof_enabled:1/m.test(text) || /^rdb_changes_since_last_save:/m.test(text)
    return [
      ok(AREA, `Redis ${version} answers, and evicts nothing`),
      /^aof_enabled:1/m.test(text)
        ? ok(AREA, 'It keeps an append-only file: jobs survive a restart')
        : ok(
            AREA,
            `It keeps ${persists ? 'no append-only file' : 'nothing on disk'}: what a restart loses, forwarders send again within a minute`,
          ),
    ]
  } catch (error) {
    const toDo =
      kindOf(error) === 'permanent' ? 'Use a Redis as docs/operate.md asks for' : 'See also what Redis says in its log'
    return [problem(AREA, messageOf(error), toDo)]
  } finally {
    redis.disconnect()
  }
}
