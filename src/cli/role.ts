import { flushCompileCache } from 'node:module'
import closeWithGrace from 'close-with-grace'
import { messageOf } from '../errors.ts'
import { fatalFields } from '../telemetry/fatal.ts'
import type { Logger } from '../telemetry/log.ts'
import { stopTraces } from '../telemetry/traces.ts'
import { leaveSignalsToRole } from './early-end.ts'

/** A role that runs. */
export interface Role {
  /** Ends in an orderly way within its own limits; safe to call again. */
  stop(): Promise<void>
  /** Resolves when the role ends by itself; never for one that only a signal ends. */
  readonly ended?: Promise<void>
}

/** On top of a role's own limits: then the process ends whatever still holds it. */
const HARD_LIMIT_MS = 15_000

/**
 * Runs until a signal, or the role's own end; the one place of the program where that is decided. Resolves with the exit code; after a signal
 * the process ends instead, once the role has stopped.
 */
export async function untilEnded(role: Role, graceMs: number, log: Logger): Promise<number> {
  leaveSignalsToRole()
  const signals = closeWithGrace(
    {
      delay: graceMs + HARD_LIMIT_MS,
      logger: { error: (what: unknown) => log.error({ error: messageOf(what) }, 'the shutdown was cut short') },
    },
    async ({ err, signal }) => {
      if (err) log.fatal(fatalFields(err), 'ending after a fault that nothing caught')
      else log.info({ signal }, 'ending')
      await role.stop()
      await stopTraces()
    },
  )
  // Node keeps what it compiled at its end, if told where (NODE_COMPILE_CACHE); a process that is killed would begin anew each time.
  flushCompileCache()
  await (role.ended ?? new Promise(() => {}))
  signals.uninstall()
  await role.stop()
  await stopTraces()
  return 0
}
