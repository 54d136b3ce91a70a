import type { KubeLease } from '../../kubernetes/resources.ts'

/** The lease by which replicas of every cloud controller manager agree on who works. Windlass takes none. */
export const LEASE = { namespace: 'kube-system', name: 'cloud-controller-manager' } as const

export type LeaseState =
  /** Nobody holds it. */
  | { kind: 'none' }
  /** Somebody is named, and it was not looked at long enough to know whether he still renews it. */
  | { kind: 'undecided'; holder: string }
  /** Renewed while we looked. */
  | { kind: 'held'; holder: string }
  /** Left behind. */
  | { kind: 'stale'; holder: string }

export interface LeaseWatch {
  /**
   * @param monotonicMs when it was read, of a clock that never goes back
   * @param wallMs the same in unix time
   */
  see(lease: KubeLease | undefined, monotonicMs: number, wallMs: number): LeaseState
}

const DEFAULT_DURATION_S = 15
/** A renewal so many lease durations ago by the clock on the wall needs only a short look. */
const LONG_AGO = 10
/** Part of the lease duration; longer than a holder waits between two renewals. */
const SHORT_LOOK = 1 / 5

/**
 * Whether a lease is alive, by looking at it several times, as candidates for it do: clocks of two machines may differ, so its times are
 * compared with each other. The clock on the wall only shortens the look at a lease that seems long dead.
 */
export function createLeaseWatch(): LeaseWatch {
  let seen: { key: string; sinceMs: number; renewed: boolean } | undefined
  return {
    see(lease, monotonicMs, wallMs) {
      const { holderIdentity: holder, renewTime = '', leaseDurationSeconds, leaseTransitions } = lease?.spec ?? {}
      if (!holder) {
        seen = undefined
        return { kind: 'none' }
      }
      const key = `${holder} ${renewTime} ${leaseTransitions}`
      if (seen?.key !== key) seen = { key, sinceMs: monotonicMs, renewed: seen !== undefined }
      const durationMs = (leaseDurationSeconds || DEFAULT_DURATION_S) * 1000
      const unchangedMs = monotonicMs - seen.sinceMs
      const longAgo = wallMs - Date.parse(renewTime) > LONG_AGO * durationMs
      if (unchangedMs >= durationMs || (longAgo && unchangedMs >= durationMs * SHORT_LOOK))
        return { kind: 'stale', holder }
      return { kind: seen.renewed ? 'held' : 'undecided', holder }
    },
  }
}
