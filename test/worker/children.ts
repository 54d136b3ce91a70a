import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import type { ChildOptions } from './child.ts'

export interface Children {
  start(name: string, timings?: ChildOptions['timings']): ChildProcess
  /** What the workers did, in order. */
  log(): Promise<string[]>
  end(): Promise<void>
}

/** Workers in processes of their own on one Redis. */
export function children(url: string): Children {
  const redis = new Redis(url)
  const started = new Set<ChildProcess>()
  return {
    start(name, timings = {}) {
      const options: ChildOptions = { name, url, timings }
      const child = spawn(
        process.execPath,
        [fileURLToPath(new URL('child.ts', import.meta.url)), JSON.stringify(options)],
        { stdio: ['ignore', 'inherit', 'inherit'] },
      )
      started.add(child)
      return child
    },
    log: () => redis.lrange('log', 0, -1),
    async end() {
      redis.disconnect()
      await Promise.all(
        [...started].map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return
          const gone = once(child, 'exit')
          child.kill('SIGKILL')
          await gone
        }),
      )
    },
  }
}
