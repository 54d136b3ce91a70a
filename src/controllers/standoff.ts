import { isOlder } from '../kubernetes/resource-version.ts'
import type { Cluster } from './cluster.ts'

/** The same was written so often, and undone in between: somebody else writes there, too. */
const ENOUGH = 3
const WINDOW_MS = 600_000

interface Written {
  text: string
  atMs: number[]
  /** What the last write made of the object; undefined while that is not known. */
  version?: string
}

/**
 * What somebody else undoes each time that it is written. Each write is an event for the other side, so that two who do not agree would go on
 * as fast as they can, with requests to the cloud in between. After some writes of the same it is left for a while.
 */
export interface Standoffs {
  /**
   * It is about to be written into an object that was seen at this resourceVersion. True when it was undone often enough to be told: what
   * was seen before our own last write does not show that anybody undid it.
   */
  writes(what: string, text: string, seen: string): boolean
  /** The write that was said last has made this resourceVersion of the object. */
  wrote(what: string, version: string): void
  /** Whatever was written of it, it was not somebody else who took it away. */
  forget(what: string): void
  /** So long yet it is not to be written again; 0 for no reason not to. Without `text`, whatever it was. */
  heldMs(what: string, holdMs: number, text?: string): number
}

const all = new WeakMap<object, Standoffs>()

/** Those that this process has seen of a cluster. */
export function standoffsOf(cluster: Pick<Cluster, 'state' | 'nowMs'>): Standoffs {
  const known = all.get(cluster.state)
  if (known) return known
  const made = createStandoffs(cluster.nowMs)
  all.set(cluster.state, made)
  return made
}

export function createStandoffs(nowMs: () => number): Standoffs {
  const written = new Map<string, Written>()
  const isOver = ({ atMs }: Written, now: number) => now - (atMs.at(-1) ?? 0) > 2 * WINDOW_MS
  return {
    writes(what, text, seen) {
      const now = nowMs()
      for (const [key, one] of written) if (isOver(one, now)) written.delete(key)
      const before = written.get(what)
      const isSame = before?.text === text
      // Nor does a write whose end is not known show anything.
      if (isSame && (before.version === undefined || isOlder(seen, before.version))) return false
      const atMs = isSame ? before.atMs.filter((at) => now - at <= 2 * WINDOW_MS) : []
      written.delete(what)
      written.set(what, { text, atMs: [...atMs.slice(-ENOUGH), now] })
      return atMs.length + 1 >= ENOUGH
    },
    wrote(what, version) {
      const one = written.get(what)
      if (one) written.set(what, { ...one, version })
    },
    forget(what) {
      written.delete(what)
    },
    heldMs(what, holdMs, text) {
      const one = written.get(what)
      if (!one || one.atMs.length < ENOUGH || (text !== undefined && one.text !== text)) return 0
      return Math.max(0, (one.atMs.at(-1) ?? 0) + Math.min(holdMs, WINDOW_MS) - nowMs())
    },
  }
}
