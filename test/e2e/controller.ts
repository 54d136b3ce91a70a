import { spawn } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Case } from './case.ts'
import type { Reaper } from './reaper.ts'

export interface ControllerOptions {
  /** A shell command that gets the flags as arguments; Windlass' `all` if absent. */
  command?: string
  definition: Case
  env: Record<string, string>
  logFile: string
  reaper: Reaper
  log: (line: string) => void
}

export interface Controller {
  /** How it ended if it did so by itself. */
  readonly exit: number | string | undefined
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Starts the controller under test with a case's settings. Its output is appended to the log file. */
export function startController(options: ControllerOptions): Controller {
  const { command, definition, logFile, reaper, log } = options
  const flags = flagsOf(definition)
  const [file, args] = command ? ['/bin/sh', ['-c', `${command} "$@"`, 'controller', ...flags]] : windlass(flags)
  const output = openSync(logFile, 'a')
  writeSync(output, `--- start ${new Date().toISOString()} ${flags.join(' ')}\n`)
  // A group of its own, so that a kill reaches what it started too.
  const child = spawn(file, args, { env: envOf(options), stdio: ['ignore', output, output], detached: true })
  closeSync(output)
  const group = child.pid
  if (group) reaper.watch(group)

  let ended: number | string | undefined
  let stopping = false
  const gone = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      ended = code ?? signal ?? 'unknown'
      if (group) reaper.forget(group)
      if (!stopping) log(`controller ended by itself: ${ended}`)
      resolve()
    })
    child.once('error', (error) => {
      ended = error.message
      resolve()
    })
  })
  log(`controller started, pid ${group}`)

  return {
    get exit() {
      return stopping ? undefined : ended
    },
    async stop(signal) {
      if (ended !== undefined || !group) return
      stopping = true
      signalGroup(group, signal)
      const inTime = await Promise.race([gone.then(() => true), delay(stopWithinMs, false, { ref: false })])
      if (!inTime) log('controller did not stop in time, kill -9')
      signalGroup(group, 'SIGKILL')
      await gone
      log(`controller stopped (${signal})`)
    },
  }
}

/** The case's settings as flags of a cloud controller manager. */
export function flagsOf({ settings, controllers }: Case): string[] {
  const values = { node_monitor_period: '1s', ...settings }
  const flags = Object.entries(values).map(([name, value]) => `--${name.replaceAll('_', '-')}=${value}`)
  if (controllers?.length) flags.push(`--controllers=${controllers.map((name) => canonical[name] ?? name).join(',')}`)
  return flags
}

const canonical: Readonly<Record<string, string>> = {
  node: 'cloud-node-controller',
  lifecycle: 'cloud-node-lifecycle-controller',
  service: 'service-lb-controller',
  route: 'node-route-controller',
}

const stopWithinMs = 30_000

function windlass(flags: string[]): [string, string[]] {
  return [process.execPath, [join(import.meta.dirname, '../../src/main.ts'), 'all', ...flags]]
}

/** The case's own variables win; null takes one away. */
function envOf({ definition, env }: ControllerOptions): Record<string, string> {
  const all: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '/root',
    NODE_COMPILE_CACHE: join(tmpdir(), 'windlass-compile-cache'),
    // Its default address is a fixed one.
    HCLOUD_METRICS_ENABLED: 'false',
    LANG: 'C.UTF-8',
    ...env,
  }
  for (const [name, value] of Object.entries(definition.env ?? {})) {
    if (value === null) delete all[name]
    else all[name] = String(value)
  }
  return all
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {
    // Nobody of it is left.
  }
}
