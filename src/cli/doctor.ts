import type { CommandContext } from './context.ts'
import { checkCluster } from './doctor/check-cluster.ts'
import { checkRedisSettings } from './doctor/redis.ts'
import { findingsText } from './doctor/text.ts'
import type { DoctorDocument } from './doctor/types.ts'

/** `windlass doctor`: looks at everything that Windlass needs, changes nothing, and says what to do. */
export async function run({ settings, flags, log }: CommandContext): Promise<number> {
  // What goes wrong on the way is a finding; a log of it besides would only say it twice.
  const quiet = log.child({}, { level: 'silent' })
  const document: DoctorDocument = { v: 1, findings: await checkRedisSettings(settings.redis), clusters: [] }
  for (const cluster of settings.clusters)
    document.clusters.push({ cluster: cluster.id, findings: await checkCluster(cluster, settings, quiet) })
  process.stdout.write(flags.json ? `${JSON.stringify(document, undefined, 2)}\n` : textOf(document))
  const all = [...document.findings, ...document.clusters.flatMap(({ findings }) => findings)]
  return all.some(({ level }) => level === 'problem') ? 1 : 0
}

function textOf({ findings, clusters }: DoctorDocument): string {
  return [
    findingsText('For all clusters', findings),
    ...clusters.map(({ cluster, findings }) => findingsText(`Cluster ${cluster}`, findings)),
  ].join('\n')
}
