export interface FailureLimit {
  note(address: string, nowMs: number): void
  /** How long this address must wait; 0 when it need not. */
  waitMs(address: string, nowMs: number): number
}

/** Addresses remembered at most; the oldest is forgotten first. */
const MAX_ADDRESSES = 10_000

/** Counts failures only: whoever knows the password may ask as often as he likes. */
export function createFailureLimit(limit: { failures: number; windowMs: number }): FailureLimit {
  const windows = new Map<string, { failures: number; endsAtMs: number }>()
  const current = (address: string, nowMs: number) => {
    const window = windows.get(address)
    return window && window.endsAtMs > nowMs ? window : undefined
  }
  return {
    note(address, nowMs) {
      const window = current(address, nowMs) ?? { failures: 0, endsAtMs: nowMs + limit.windowMs }
      window.failures++
      windows.delete(address)
      windows.set(address, window)
      const [oldest] = windows.keys()
      if (windows.size > MAX_ADDRESSES && oldest !== undefined) windows.delete(oldest)
    },
    waitMs(address, nowMs) {
      const window = current(address, nowMs)
      return window && window.failures >= limit.failures ? window.endsAtMs - nowMs : 0
    },
  }
}
