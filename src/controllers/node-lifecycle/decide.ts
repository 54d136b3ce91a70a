/** What is known about a node that is not ready and whose machine the cloud just said it does not have. Times in unix milliseconds. */
export interface Evidence {
  nowMs: number
  nodeCreatedMs: number
  /** When the present unbroken run of "not found" answers began. */
  firstNotFoundMs: number
  monitorPeriodMs: number
  /** The present credential was once answered with this very machine. */
  sighted: boolean
  /** The present credential is answered, now, with another machine of this cluster. */
  seesOthers: boolean
}

export type Verdict =
  | { kind: 'delete' }
  /** More time must pass. */
  | { kind: 'wait'; forMs: number }
  /** Time alone proves nothing: a human should look. */
  | { kind: 'hold'; why: string }

/** A cloud's read side may lag behind its own create: a machine nobody has seen yet gets this long to appear. */
export const YOUNG_NODE_MS = 5 * 60_000
/** A credential that shows nothing of the cluster any more may have lost its access: only what lasts this long counts as gone. */
export const ALONE_MS = 10 * 60_000

/**
 * Whether absence is proven. A wrong project's token, too, answers "not found": so it takes two answers, a monitor period apart, and a
 * witness that this credential would see the machine if it were there.
 */
export function decideDeletion(evidence: Evidence): Verdict {
  const { nowMs, nodeCreatedMs, firstNotFoundMs, monitorPeriodMs, sighted, seesOthers } = evidence
  const youngForMs = nodeCreatedMs + YOUNG_NODE_MS - nowMs
  if (!sighted && youngForMs > 0) return { kind: 'wait', forMs: youngForMs }
  const unprovenForMs = firstNotFoundMs + monitorPeriodMs - nowMs
  if (unprovenForMs > 0) return { kind: 'wait', forMs: unprovenForMs }
  if (!sighted && !seesOthers)
    return {
      kind: 'hold',
      why: 'the cloud credential in use has never shown this machine and shows no other machine of this cluster either: it may belong to another project',
    }
  if (!seesOthers && nowMs - firstNotFoundMs < ALONE_MS)
    return {
      kind: 'hold',
      why: 'the cloud credential in use shows no other machine of this cluster any more: it may have lost its access. If that lasts ten minutes, the machine counts as gone',
    }
  return { kind: 'delete' }
}
