import { createHash } from 'node:crypto'
import type { ClusterSettings } from '../config/types.ts'
import { messageOf } from '../errors.ts'
import type { Enqueuer } from '../queue/types.ts'
import type { AppliedSettings } from '../state/applied-settings.ts'
import type { Logger } from '../telemetry/log.ts'
import { VERSION } from '../version.ts'
import { cloudSecrets } from './secret-faults.ts'

interface Parts {
  applied: AppliedSettings
  enqueuer: Enqueuer
  /** The look that waits for the end of a former period begins at once. */
  resyncPeriodMs: number
  log: Logger
}

/** A file of a secret is looked at so often. */
const LOOK_MS = 2000

/**
 * What was brought in order under other settings, or by another version, need not be in order any more, and no event tells: it is looked
 * at once more. With an empty Redis everything is looked at anyhow. What a refused credential made fail waits for this, too.
 */
export async function resyncUnderNewSettings(settings: ClusterSettings, parts: Parts): Promise<void> {
  const { applied, log } = parts
  try {
    const [before, now] = [await applied.get(settings.id), fingerprintOf(settings, parts)]
    if (before === now) return
    if (before !== undefined) {
      log.info('the settings or the version are new, so everything is looked at once more')
      await lookAgain(settings.id, parts)
    }
    await applied.put(settings.id, now)
  } catch (error) {
    log.warn(
      { error: messageOf(error) },
      'whether the settings are new is not known: the next resync brings them about',
    )
  }
}

/**
 * Does the same when a credential changes in its file while the worker runs. Each worker does, whatever the others did: what one that
 * still had the old credential did in between has failed for good. Returns what ends it.
 */
export function watchCredentials(settings: ClusterSettings, parts: Parts, lookMs = LOOK_MS): () => void {
  const { applied, log } = parts
  let before = fingerprintOf(settings, parts)
  const look = async () => {
    const now = fingerprintOf(settings, parts)
    if (now === before) return
    try {
      await lookAgain(settings.id, parts)
      await applied.put(settings.id, now)
      log.info('a credential is new, so everything is looked at once more')
      before = now
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'what waits for the new credential could not be asked for yet')
    }
  }
  const timer = setInterval(() => void look(), lookMs).unref()
  return () => clearInterval(timer)
}

async function lookAgain(cluster: string, { enqueuer }: Parts): Promise<void> {
  const again = { kind: 'resync', key: 'Cluster/resync', cause: 'settings', urgency: 'background' } as const
  await enqueuer.enqueue(cluster, [again])
}

/** Of what decides on objects, and not of how the cluster is reached. In JSON secrets have no value. */
function fingerprintOf(settings: ClusterSettings, { resyncPeriodMs }: Parts): string {
  const { kubernetes: _, webhookKeys: __, ...deciding } = settings
  const secrets = cloudSecrets(settings).map((secret) => secret.read())
  const text = JSON.stringify([VERSION, deciding, secrets, resyncPeriodMs], (_key, value: unknown) =>
    value instanceof Set ? [...value].sort() : value,
  )
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
