import { createMetrics } from '../telemetry/metrics.ts'
import { serveProbes } from '../telemetry/probes.ts'
import type { CommandContext } from './context.ts'
import { serveFormerMetrics } from './former-metrics.ts'
import { listening } from './listening.ts'
import { untilEnded } from './role.ts'
import { startWorkerRole } from './worker-role.ts'

/** `windlass worker`: runs the controllers. */
export async function run({ settings, log }: CommandContext): Promise<number> {
  const metrics = createMetrics({ process: true })
  const role = await startWorkerRole(settings, log.child({ role: 'worker' }), metrics)
  const { listen, graceMs } = settings.worker
  const probes =
    listen &&
    (await listening(
      'WINDLASS_LISTEN',
      listen,
      () =>
        serveProbes({
          listen,
          isAlive: role.isAlive,
          problems: role.problems,
          metrics: () => metrics.text(),
          log,
        }),
      role.stop,
    ))
  const former = await serveFormerMetrics(settings.clusters, role, metrics, log)
  const stop = async () => {
    await role.stop()
    await probes?.close()
    await former?.close()
  }
  return await untilEnded({ stop, ended: role.ended }, graceMs, log)
}
