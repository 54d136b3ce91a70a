import { kindOf, messageOf } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'

/** Redis at the start: what can't change while it runs ends the process, what may pass is waited for with readiness red. */
export async function redisAtStart(check: () => Promise<unknown>, log: Logger): Promise<void> {
  try {
    await check()
  } catch (error) {
    if (kindOf(error) === 'permanent') throw error
    log.error({ error: messageOf(error) }, 'Redis is not ready yet')
  }
}
