import { kindOf, messageOf, throttled, WindlassError } from '../errors.ts'
import type { Cluster } from './cluster.ts'
import type { Reconcile } from './reconcile.ts'
import { tellObject } from './tell-object.ts'

/** A cloud that is busy with one thing, or an account that has used up its requests, is mostly good again before that. */
const LASTING_MS = 60_000
/** Waits further apart than this are two: between them the object may have been served elsewhere. */
const APART_MS = 600_000

/** Codes of waits whose time is told by what is waited for: it is neither sooner nor later. */
const TIMED = new Set(['rate_limit_exceeded', 'address_in_doubt'])
const LONGEST_MS = 60_000

/**
 * Says on the object what it waits for once that lasts. A run that is put off has not failed, so nothing else would tell its user why a
 * Service has no address, or does not go. And waits longer and longer: a run that only finds a thing locked once more takes some requests,
 * and an action that never ends locks it for ever.
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
      if (kind !== 'throttled') throw error
      const lastMs = lasts(request.key)
      if (lastMs >= LASTING_MS)
        await tellObject(
          cluster,
          request.key,
          {
            reason: 'Waiting',
            message: `Nothing can be done for it now, and it is tried again and again: ${messageOf(error)}`,
          },
          request.call,
        )
      throw later(error, cluster.nowMs() + Math.min(LONGEST_MS, lastMs / 10))
    }
  }
}

/** The same, no sooner than then. */
function later(error: unknown, atMs: number): unknown {
  if (!(error instanceof WindlassError) || TIMED.has(error.code ?? '')) return error
  const { message, cause, code, status, faults, retryAtMs = 0, userRetryAtMs = 0 } = error
  if (Math.min(retryAtMs, userRetryAtMs) >= atMs) return error
  return throttled(message, Math.max(retryAtMs, atMs), {
    userRetryAtMs: Math.max(userRetryAtMs, atMs),
    ...(cause === undefined ? {} : { cause }),
    ...(code === undefined ? {} : { code }),
    ...(status === undefined ? {} : { status }),
    ...(faults === undefined ? {} : { faults }),
  })
}
