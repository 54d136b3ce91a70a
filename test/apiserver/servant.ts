import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'

export interface Servant {
  readonly pid: number
  /** Resolves when it has ended, for whatever reason. */
  readonly gone: Promise<void>
  readonly ended: boolean
  /** The last lines that it logged. */
  lastWords(): string
  end(signal: NodeJS.Signals): Promise<void>
}

/**
 * Starts a server of this folder's Go module. It lives as long as the pipe on its standard input, so it ends with this
 * process however that ends, and it doesn't keep this process alive.
 */
export function startServant(command: string, args: string[], logFile: string, throwAway: string): Servant {
  const log = openSync(logFile, 'a')
  const child: ChildProcess = spawn(command, args, {
    cwd: throwAway,
    stdio: ['pipe', log, log],
    env: { PATH: process.env.PATH, HOME: throwAway, WINDLASS_TEST_THROW_AWAY: throwAway },
  })
  closeSync(log)
  let ended = false
  const gone = new Promise<void>((resolve) => {
    const end = () => {
      ended = true
      resolve()
    }
    child.once('exit', end)
    child.once('error', end)
  })
  child.stdin?.on('error', () => {})
  child.unref()
  const pipe = child.stdin as unknown as { unref?(): void } | null
  pipe?.unref?.()

  return {
    pid: child.pid ?? 0,
    gone,
    get ended() {
      return ended
    },
    lastWords: () => readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-12).join('\n'),
    async end(signal) {
      if (ended) return
      child.ref()
      child.kill(signal)
      await gone
    },
  }
}
