import type { Cluster } from '../cluster.ts'

/** Of so many nodes each is asked for by its id; of more a list, which others have a use for too, costs less. */
const FEW = 3
const WINDOW_MS = 90_000
const LONGEST_MS = 60_000

const looked = new WeakMap<object, Map<string, number>>()

/** Whether this process has looked of late at more nodes that are not ready than are worth a request each. Counts this look. */
export function areMany({ state, nowMs }: Pick<Cluster, 'state' | 'nowMs'>, uid: string): boolean {
  const looks = looked.get(state) ?? new Map<string, number>()
  looked.set(state, looks)
  const now = nowMs()
  looks.set(uid, now)
  for (const [one, atMs] of looks) if (now - atMs > WINDOW_MS) looks.delete(one)
  return looks.size > FEW
}

/**
 * When to look again at a node whose machine is there, milliseconds: a machine goes or is switched off soon after its node stopped to be
 * ready, or at any time later. A node that stays so must not eat up the account's requests.
 */
export function lookAgainMs(periodMs: number, notReadyForMs: number): number {
  return notReadyForMs > 0 ? Math.max(periodMs, Math.min(LONGEST_MS, notReadyForMs / 10)) : periodMs
}
