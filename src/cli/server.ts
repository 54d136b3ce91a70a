import { createMetrics } from '../telemetry/metrics.ts'
import type { CommandContext } from './context.ts'
import { untilEnded } from './role.ts'
import { startServerRole } from './server-role.ts'

/** `windlass server`: takes events and queues jobs. */
export async function run({ settings, log }: CommandContext): Promise<number> {
  const { listen } = settings.server
  const role = await startServerRole(
    settings,
    { listen },
    log.child({ role: 'server' }),
    createMetrics({ process: true }),
  )
  return await untilEnded(role, settings.worker.graceMs, log)
}
