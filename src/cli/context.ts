import type { Env } from '../config/source.ts'
import type { Settings } from '../config/types.ts'
import type { Logger } from '../telemetry/log.ts'

/** What a command gets. Each of `forwarder`, `server`, `worker`, `all`, `plan` and `doctor` exports a `run` in a file of its name. */
export interface CommandContext {
  settings: Settings
  flags: CommandFlags
  log: Logger
  env: Env
}

export interface CommandFlags {
  /** Objects that `plan` is about, as written (`Service/default/web`); none means all. */
  subjects: string[]
  json: boolean
}

/** Resolves with the exit code, once everything that it started has ended. */
export type Run = (context: CommandContext) => Promise<number>
