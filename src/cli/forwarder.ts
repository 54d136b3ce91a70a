import { serveProbes } from '../telemetry/probes.ts'
import type { CommandContext } from './context.ts'
import { forwarderMetrics } from './forwarder-metrics.ts'
import { startForwarderRole } from './forwarder-role.ts'
import { listening } from './listening.ts'
import { untilEnded } from './role.ts'

/** Time that is left for what is pending, once the forwarder is told to end. */
const GRACE_MS = 5000

/** `windlass forwarder`: one cluster's watches. */
export async function run({ settings, log }: CommandContext): Promise<number> {
  const [cluster] = settings.clusters
  if (!cluster) throw new Error('the forwarder has no cluster')
  const role = await startForwarderRole(cluster, settings.forwarder, log.child({ role: 'forwarder' }))
  const { listen } = settings.forwarder
  const probes =
    listen &&
    (await listening(
      'WINDLASS_LISTEN',
      listen,
      () =>
        serveProbes({
          listen,
          isAlive: () => true,
          problems: () => [
            ...(role.forwarder.stats().ready ? [] : ['the server has not acknowledged a whole snapshot yet']),
            ...role.forwarder.silences(),
          ],
          metrics: async () => forwarderMetrics(new Map([[cluster.id, role.forwarder.stats()]])),
          log,
        }),
      role.stop,
    ))
  const stop = async () => {
    await role.stop()
    await probes?.close()
  }
  return await untilEnded({ stop }, GRACE_MS, log)
}
