import type { WorkKind } from './types.ts'

const CAP_MS = 300_000
/**
 * First waits. Nodes are tried again quickly, as by the framework's own controllers, since pods wait for them. Services and routes are as
 * soon as the replaced controllers' clients tried a request again within a run: an answer that got lost costs a second.
 */
const FIRST_MS: Partial<Record<WorkKind, number>> = { node: 250, service: 1000, route: 1000 }
const OTHER_FIRST_MS = 5000

/** The cloud's own reset time is believed up to here. */
const THROTTLED_CAP_MS = 3_600_000

/** Wait after the n-th failed attempt in a row (n from 1). `random` is in [0, 1). */
export type BackoffMs = (kind: WorkKind, attempt: number, random: number) => number

/** The framework's doubling waits and cap, with up to a fifth of jitter on top. */
export const backoffMs: BackoffMs = (kind, attempt, random) => {
  const first = FIRST_MS[kind] ?? OTHER_FIRST_MS
  const waitMs = Math.min(CAP_MS, first * 2 ** Math.min(attempt - 1, 30))
  return Math.round(waitMs * (1 + random / 5))
}

/** Wait until a throttled object is tried again: not before the cloud's reset, and spread out after it. */
export function throttleMs(retryAtMs: number, nowMs: number, leastMs: number, random: number): number {
  const waitMs = Math.min(THROTTLED_CAP_MS, Math.max(leastMs, retryAtMs - nowMs))
  return Math.round(waitMs + random * Math.min(5000, waitMs / 5))
}
