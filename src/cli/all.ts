import { randomBytes } from 'node:crypto'
import type { Settings } from '../config/types.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { CommandContext } from './context.ts'
import { serveFormerMetrics } from './former-metrics.ts'
import { forwarderMetrics } from './forwarder-metrics.ts'
import { type ForwarderRole, startForwarderRole } from './forwarder-role.ts'
import { type Role, untilEnded } from './role.ts'
import { startServerRole } from './server-role.ts'
import { startWorkerRole } from './worker-role.ts'

/** `windlass all`: the three roles in one process, for small clusters. They speak to each other as they would over a network. */
export async function run({ settings: given, log }: CommandContext): Promise<number> {
  const settings = withKeys(given)
  const metrics = createMetrics({ process: true })
  const started: Role[] = []
  const forwarders = new Map<string, ForwarderRole>()
  metrics.add(() => forwarderMetrics(new Map([...forwarders].map(([id, { forwarder }]) => [id, forwarder.stats()]))))
  // The source of events first, then who takes them, then who works on them.
  const stop = async () => {
    for (const role of started) await role.stop()
  }
  try {
    const worker = await startWorkerRole(settings, log.child({ role: 'worker' }), metrics)
    started.unshift(worker)
    const { listen } = settings.server
    const server = await startServerRole(
      settings,
      {
        listen,
        notice: false,
        problems: () => [
          ...worker.problems(),
          ...[...forwarders.values()].flatMap(({ forwarder }) => forwarder.silences()),
        ],
      },
      log.child({ role: 'server' }),
      metrics,
    )
    started.unshift(server)
    const serverUrl = `http://${urlHost(server.host)}:${server.port}`
    for (const cluster of settings.clusters) {
      const forwarderLog = log.child({ role: 'forwarder' })
      const forwarder = await startForwarderRole(cluster, { serverUrl }, forwarderLog)
      forwarders.set(cluster.id, forwarder)
      started.unshift(forwarder)
    }
    const former = await serveFormerMetrics(settings.clusters, worker, metrics, log)
    if (former) started.push({ stop: former.close })
    return await untilEnded({ stop, ended: worker.ended }, settings.worker.graceMs, log)
  } catch (error) {
    await stop()
    throw error
  }
}

/** Forwarder and server of one process need no key from outside. */
function withKeys(settings: Settings): Settings {
  const key = `whsec_${randomBytes(32).toString('base64')}`
  return {
    ...settings,
    clusters: settings.clusters.map((one) => (one.webhookKeys.length > 0 ? one : { ...one, webhookKeys: [key] })),
  }
}

/** An address to connect to: the one that is listened on, unless that stands for all. */
function urlHost(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  if (address === '::') return '[::1]'
  return address.includes(':') ? `[${address}]` : address
}
