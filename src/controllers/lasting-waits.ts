import { kindOf, messageOf } from '../errors.ts'
import type { Cluster } from './cluster.ts'
import type { Reconcile } from './reconcile.ts'
import { tellObject } from './tell-object.ts'

/** A cloud that is busy with one thing, or an account that has used up its requests, is mostly good again before that. */
const LASTING_MS = 60_000
/** Waits further apart than this are two: between them the object may have been served elsewhere. */
const APART_MS = 600_000

/**
 * Says on the object what it waits for once that lasts. A run that is put off has not failed, so nothing else would tell its user why a
 * Service has no address, or does not go.
 */
export function tellOfWaits(
  cluster: Pick<Cluster, 'kubernetes' | 'recorder' | 'nowMs'>,
  reconcile: Reconcile,
): Reconcile {
  const waits = new Map<string, { sinceMs: number; lastMs: number }>()

  /** Milliseconds since the object began to wait. */
  function lasts(key: string): number {
    const nowMs = cluster.nowMs()
    const known = waits.get(key)
    const sinceMs = known && nowMs - known.lastMs <= APART_MS ? known.sinceMs : nowMs
    waits.set(key, { sinceMs, lastMs: nowMs })
    return nowMs - sinceMs
  }

  return async (request) => {
    try {
      const result = await reconcile(request)
      waits.delete(request.key)
      return result
    } catch (error) {
      const kind = kindOf(error)
      if (kind !== 'throttled' && kind !== 'aborted') waits.delete(request.key)
      if (kind === 'throttled' && lasts(request.key) >= LASTING_MS)
        await tellObject(
          cluster,
          request.key,
          {
            reason: 'Waiting',
            message: `Nothing can be done for it now, and it is tried again and again: ${messageOf(error)}`,
          },
          request.call,
        )
      throw error
    }
  }
}
