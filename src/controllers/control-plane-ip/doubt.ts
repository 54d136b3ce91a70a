export interface DoubtTimes {
  /** An address that fails on a machine that answers stays there so long. */
  doubtMs: number
  /** And after a move on such doubt, so long until the next one. */
  restMs: number
  /** Two failures further apart are no unbroken run of them: nobody looked in between, or another process did. */
  gapMs: number
}

/** Whether the address waits where it fails. Times are of the monotonic clock. */
export interface Doubt {
  /** True as long as it should stay. `machineAnswers`: the holder does at its own addresses, so that the way to the other may be what is broken. */
  waits(nowMs: number, machineAnswers: boolean): boolean
  /** It answers, or has moved. */
  settled(): void
}

export function createDoubt({ doubtMs, restMs, gapMs }: DoubtTimes): Doubt {
  let failing: { sinceMs: number; lastMs: number } | undefined
  let doubtfulMoveMs = Number.NEGATIVE_INFINITY
  return {
    waits(nowMs, machineAnswers) {
      const sinceMs = failing && nowMs - failing.lastMs <= gapMs ? failing.sinceMs : nowMs
      failing = { sinceMs, lastMs: nowMs }
      if (!machineAnswers) return false
      if (nowMs - sinceMs < doubtMs || nowMs - doubtfulMoveMs < restMs) return true
      doubtfulMoveMs = nowMs
      return false
    },
    settled() {
      failing = undefined
    },
  }
}
