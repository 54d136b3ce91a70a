#!/usr/bin/env node
import { parseArgs } from './cli/args.ts'
import type { Run } from './cli/context.ts'
import { endAtSignal } from './cli/early-end.ts'
import { helpOf } from './cli/help.ts'
import { keepHeapSmall } from './cli/small-heap.ts'
import { formatFaults } from './config/fault.ts'
import { loadSettings } from './config/load.ts'
import type { Command } from './config/setting.ts'
import type { Settings } from './config/types.ts'
import { fatalFields } from './telemetry/fatal.ts'
import { createLogger, type Logger } from './telemetry/log.ts'
import { startTraces } from './telemetry/traces.ts'
import { VERSION } from './version.ts'

/** Roles that run beside what a cluster is for, with the room that each has for young objects. */
const SMALL: Partial<Record<Command, number>> = { forwarder: 1, all: 4 }

/** A wrong flag too, as in the replaced controllers: 2 is `plan`'s word for changes. */
const EXIT_FAILED = 1

process.exitCode = await main(process.argv.slice(2), process.env)

async function main(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const invocation = parseArgs(argv)
  switch (invocation.kind) {
    case 'help':
      process.stdout.write(helpOf(invocation.command))
      return 0
    case 'version':
      process.stdout.write(`windlass ${VERSION}\n`)
      return 0
    case 'wrong':
      process.stderr.write(`${formatFaults('windlass:', invocation.faults)}\n`)
      return EXIT_FAILED
  }

  const { command, flags, subjects, faults } = invocation
  if (command !== 'plan' && command !== 'doctor') endAtSignal()
  const newSpaceMb = SMALL[command]
  if (newSpaceMb !== undefined) keepHeapSmall(newSpaceMb)
  const loaded = await loadSettings({ command, flags, env })
  if ('faults' in loaded || faults.length > 0) {
    const all = [...faults, ...('faults' in loaded ? loaded.faults : [])]
    process.stderr.write(`${formatFaults(`windlass ${command} can't start:`, all)}\n`)
    return EXIT_FAILED
  }

  const log = await loggerOf(loaded.settings, command)
  for (const { name, message, harmless } of loaded.notices)
    log[harmless ? 'info' : 'warn']({ setting: name, notice: message }, 'setting noticed')
  const { traces } = loaded.settings
  try {
    if (traces) await startTraces({ ...traces, service: `windlass-${command}`, version: VERSION, log })
    const { run } = (await import(`./cli/${command}.ts`)) as { run: Run }
    return await run({ settings: loaded.settings, flags: { subjects, json: loaded.json }, log, env })
  } catch (error) {
    log.fatal(fatalFields(error), 'command failed')
    return EXIT_FAILED
  }
}

/** What `plan` and `doctor` print is for programs too, so their log goes elsewhere. */
async function loggerOf({ log: { level, format } }: Settings, command: Command): Promise<Logger> {
  const fd = command === 'plan' || command === 'doctor' ? 2 : 1
  if (format === 'json') return createLogger({ level, fd })
  try {
    const { default: pretty } = await import('pino-pretty')
    return createLogger({ level, destination: pretty({ sync: true, destination: fd }) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    const log = createLogger({ level, fd })
    const notice = 'pretty needs the package pino-pretty, which is not installed here: lines are JSON'
    log.warn({ setting: 'WINDLASS_LOG_FORMAT', notice }, 'setting noticed')
    return log
  }
}
