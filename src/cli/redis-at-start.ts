import type { Redis } from 'ioredis'
import { kindOf, messageOf } from '../errors.ts'
import { checkRedis, whenReady } from '../queue/redis.ts'
import type { Logger } from '../telemetry/log.ts'

/** A connection that fails fast gets so long for its first handshake. */
const CONNECT_MS = 3000

/** Redis at the start: what can't change while it runs ends the process, what may pass is waited for with readiness red. */
export async function redisAtStart(redis: Redis, log: Logger): Promise<void> {
  try {
    await whenReady(redis, CONNECT_MS)
    const { version } = await checkRedis(redis)
    log.info({ version }, 'Redis answers')
  } catch (error) {
    if (kindOf(error) === 'permanent') throw error
    log.error({ error: messageOf(error) }, 'Redis is not ready yet')
  }
}
