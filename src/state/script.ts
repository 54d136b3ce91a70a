import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'

export type Script = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>

/**
 * Makes a Lua script callable on a connection; it runs as one step in Redis. Not by ioredis' `defineCommand`: each pipeline would carry a copy
 * of every command that was defined, which costs more than the commands do.
 */
export function defineScript(redis: Redis, lua: string): Script {
  const sha = createHash('sha1').update(lua).digest('hex')
  return async (keys, args) => {
    try {
      return await redis.evalsha(sha, keys.length, ...keys, ...args)
    } catch (error) {
      // A Redis that restarted or was flushed has forgotten it.
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return await redis.eval(lua, keys.length, ...keys, ...args)
    }
  }
}

/** The answer of one command of a pipeline, or its error. */
export function answerOf(results: [error: Error | null, result: unknown][] | null, index: number): unknown {
  const [error, value] = results?.[index] ?? [new Error('Redis gave no answer')]
  if (error) throw error
  return value
}

/** A list in a script's answer. */
export const listOf = (answer: unknown): unknown[] => (Array.isArray(answer) ? answer : [])

/** A text in Redis' answer; undefined for nil. */
export const textOf = (answer: unknown): string | undefined => (typeof answer === 'string' ? answer : undefined)
