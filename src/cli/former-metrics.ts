import { parseListen } from '../config/grammar.ts'
import type { ClusterSettings } from '../config/types.ts'
import { messageOf } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type Probes, serveProbes } from '../telemetry/probes.ts'
import { listening } from './listening.ts'
import type { WorkerRole } from './worker-role.ts'

/**
 * Serves the metrics where Hetzner's controller did (`HCLOUD_METRICS_ADDRESS`), so that scrapers go on. As there, an address that can't be had
 * is no reason not to start.
 */
export async function serveFormerMetrics(
  clusters: readonly ClusterSettings[],
  role: WorkerRole,
  metrics: Metrics,
  log: Logger,
): Promise<Probes | undefined> {
  const address = clusters.find(({ clouds }) => clouds.hcloud?.metricsAddress)?.clouds.hcloud?.metricsAddress
  const listen = address === undefined ? undefined : parseListen(address)
  if (!listen || 'fault' in listen) return undefined
  try {
    return await listening('HCLOUD_METRICS_ADDRESS', listen.value, () =>
      serveProbes({
        listen: listen.value,
        isAlive: role.isAlive,
        problems: role.problems,
        metrics: () => metrics.text(),
        log,
      }),
    )
  } catch (error) {
    log.warn({ address, error: messageOf(error) }, 'metrics are not served at the address of HCLOUD_METRICS_ADDRESS')
    return undefined
  }
}
