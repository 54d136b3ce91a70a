import { setTimeout as delay } from 'node:timers/promises'
import type { Health } from './health.ts'

/** The holder has failed when it fails so often in a row. */
export const PROBES = 3

export interface WatchTimes {
  /** From the beginning of one probe to the beginning of the next, whether that one has been answered or not. */
  everyMs: number
  /** The same while the last one failed. */
  gapMs: number
  timeoutMs: number
  /** After the address went to another machine nothing is concluded for so long: routers have to learn of it. */
  settleMs: number
}

export interface Place {
  at: string
  port: number
  /** The machine that has the address. */
  holder: string
}

export type Seen =
  /** It answered just now. */
  | 'sound'
  /** It failed several times in a row. */
  | 'failing'
  /** The address went there so recently that no answer says nothing. */
  | 'settling'
  | 'unknown'

/** Asks the API server at the control plane's address all the time, so that its failure is known within seconds. */
export interface Watch {
  /** What is asked from now on; another place or machine than before begins anew. */
  follow(place: Place | undefined): void
  /** We have moved the address. */
  moved(): void
  see(at: string, port: number): Seen
}

/** @param onFailing told once when the place begins to count as failing */
export function startWatch(
  health: Health,
  { everyMs, gapMs, timeoutMs, settleMs }: WatchTimes,
  signal: AbortSignal,
  onFailing: () => void,
): Watch {
  let place: (Omit<Place, 'holder'> & { holder: string | undefined }) | undefined
  let failures = 0
  let told = false
  let soundAtMs = Number.NEGATIVE_INFINITY
  let settledAtMs = Number.NEGATIVE_INFINITY

  function begin(next: typeof place): void {
    place = next
    failures = 0
    told = false
    soundAtMs = Number.NEGATIVE_INFINITY
  }

  async function probe(asked: NonNullable<typeof place>): Promise<void> {
    const { at: address, port } = asked
    const sound = await health({ address, port, timeoutMs, signal })
    // Of a place that is no more the one.
    if (place !== asked || signal.aborted) return
    if (sound) {
      failures = 0
      told = false
      soundAtMs = performance.now()
      return
    }
    failures++
    if (told || see(address, port) !== 'failing') return
    told = true
    onFailing()
  }

  function see(at: string, port: number): Seen {
    if (place?.at !== at || place.port !== port) return 'unknown'
    const now = performance.now()
    if (now < settledAtMs) return 'settling'
    if (failures >= PROBES) return 'failing'
    return failures === 0 && now - soundAtMs <= 2 * everyMs ? 'sound' : 'unknown'
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      if (place) void probe(place)
      await delay(failures > 0 ? gapMs : everyMs, undefined, { signal }).catch(() => {})
    }
  }
  void run()

  return {
    follow(next) {
      const same = place?.at === next?.at && place?.port === next?.port
      if (same && place?.holder === next?.holder) return
      if (same && place && next && place.holder === undefined) {
        place.holder = next.holder
        return
      }
      if (place && next) settledAtMs = performance.now() + settleMs
      begin(next)
    },
    moved() {
      settledAtMs = performance.now() + settleMs
      if (place) begin({ ...place, holder: undefined })
    },
    see,
  }
}
