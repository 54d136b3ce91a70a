/** How long the forwarder waits for what. All in milliseconds. */
export interface Pace {
  /** A change is sent at once if none was just before, else together with those of this time. */
  gatherMs: number
  /** An empty batch is sent this long after the last answer, so that a new epoch is heard of. */
  keepAliveMs: number
  requestTimeoutMs: number
  /** First and longest wait after no answer, a 5xx, 429. */
  retryMinMs: number
  retryMaxMs: number
  /** First and longest wait after an answer that only a human can change: 401, 403, 404, … */
  refusedMinMs: number
  refusedMaxMs: number
  /** First and longest time until an event that the server found faulty is tried again unchanged. */
  faultyMinMs: number
  faultyMaxMs: number
  /** Least time between two snapshots of a kind that only new epochs ask for. */
  snapshotGapMs: number
  /** How long a stop goes on delivering what is pending. */
  flushMs: number
  /** A watch hears at least a bookmark each minute; one that has heard nothing for so long is told. */
  silentMs: number
}

export const DEFAULT_PACE: Pace = {
  gatherMs: 200,
  keepAliveMs: 12_000,
  requestTimeoutMs: 10_000,
  retryMinMs: 250,
  retryMaxMs: 30_000,
  refusedMinMs: 2_000,
  refusedMaxMs: 60_000,
  faultyMinMs: 60_000,
  faultyMaxMs: 600_000,
  snapshotGapMs: 5_000,
  flushMs: 5_000,
  silentMs: 180_000,
}

/** The wait before try number `attempt` + 1 (from 0): doubles up to the longest, of which a random half is taken off. */
export function backoffMs(attempt: number, minMs: number, maxMs: number, random = Math.random()): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(attempt, 30)) * (1 - random / 2)
}

const LONGEST_RETRY_AFTER_MS = 300_000

/** Milliseconds that a `Retry-After` header (seconds or a date) asks for, at most five minutes; undefined without one. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (!header) return undefined
  const waitMs = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs
  return Number.isNaN(waitMs) ? undefined : Math.min(LONGEST_RETRY_AFTER_MS, Math.max(0, waitMs))
}

/** A wait that can be cut short. A ring while nobody waits is kept for the next. */
export class Alarm {
  #rung = false
  #cut: (() => void) | undefined

  ring(): void {
    this.#rung = true
    this.#cut?.()
  }

  async wait(ms: number): Promise<void> {
    if (!this.#rung && ms > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(ms, 2 ** 31 - 1))
        this.#cut = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    this.#cut = undefined
    this.#rung = false
  }
}
