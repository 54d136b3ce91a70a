import type { Logger } from 'pino'

const WINDOW_MS = 60_000
const MAX_KINDS = 200

export interface FoldedLog {
  /** Warns at once of the first of a kind; of those of the next minute in one line at its end, with how many there were. */
  warn(kind: string, fields: Record<string, unknown>, message: string): void
  /** Says what is still to be said. */
  close(): void
}

/** For lines that anybody can cause by sending something: a flood of them must not fill a disk. */
export function createFoldedLog(log: Logger, windowMs = WINDOW_MS): FoldedLog {
  const kinds = new Map<string, { more: number; say(): void; timer: NodeJS.Timeout }>()

  function warn(given: string, fields: Record<string, unknown>, message: string): void {
    const kind = kinds.has(given) || kinds.size < MAX_KINDS ? given : 'other'
    const open = kinds.get(kind)
    const say = () => log.warn({ ...fields, times: kinds.get(kind)?.more }, message)
    if (open) {
      open.more++
      open.say = say
      return
    }
    log.warn(fields, message)
    kinds.set(kind, { more: 0, say, timer: setInterval(() => end(kind), windowMs).unref() })
  }

  function end(kind: string): void {
    const open = kinds.get(kind)
    if (!open) return
    if (open.more > 0) open.say()
    else {
      clearInterval(open.timer)
      kinds.delete(kind)
    }
    open.more = 0
  }

  return {
    warn,
    close() {
      for (const [kind, { more, say, timer }] of kinds) {
        clearInterval(timer)
        if (more > 0) say()
        kinds.delete(kind)
      }
    },
  }
}
