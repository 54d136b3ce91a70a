import { createHash } from 'node:crypto'
import type { ClusterSettings } from '../config/types.ts'
import { messageOf } from '../errors.ts'
import type { Enqueuer } from '../queue/types.ts'
import type { AppliedSettings } from '../state/applied-settings.ts'
import type { Logger } from '../telemetry/log.ts'
import { VERSION } from '../version.ts'

/**
 * What was brought in order under other settings, or by another version, need not be in order any more, and no event tells: it is looked
 * at once more. With an empty Redis everything is looked at anyhow.
 */
export async function resyncUnderNewSettings(
  settings: ClusterSettings,
  { applied, enqueuer, log }: { applied: AppliedSettings; enqueuer: Enqueuer; log: Logger },
): Promise<void> {
  try {
    const [before, now] = [await applied.get(settings.id), fingerprintOf(settings)]
    if (before === now) return
    if (before !== undefined) {
      log.info('the settings or the version are new, so everything is looked at once more')
      const again = { kind: 'resync', key: 'Cluster/resync', cause: 'settings', urgency: 'background' } as const
      await enqueuer.enqueue(settings.id, [again])
    }
    await applied.put(settings.id, now)
  } catch (error) {
    log.warn(
      { error: messageOf(error) },
      'whether the settings are new is not known: the next resync brings them about',
    )
  }
}

/** Of what decides on objects, and not of how the cluster is reached. Secrets have no value in JSON. */
function fingerprintOf({ kubernetes: _, webhookKeys: __, ...deciding }: ClusterSettings): string {
  const text = JSON.stringify([VERSION, deciding], (_key, value: unknown) =>
    value instanceof Set ? [...value].sort() : value,
  )
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
