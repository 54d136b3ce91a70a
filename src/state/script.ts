import type { Redis } from 'ioredis'

export type Script = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>

/** Makes a Lua script callable on a connection; it runs as one step in Redis. `name` must be unique among the scripts of a connection. */
export function defineScript(redis: Redis, name: string, lua: string): Script {
  redis.defineCommand(name, { lua })
  const command = (
    redis as unknown as Record<string, ((...args: (string | number)[]) => Promise<unknown>) | undefined>
  )[name]
  if (!command) throw new Error(`ioredis did not define ${name}`)
  return (keys, args) => command.call(redis, keys.length, ...keys, ...args)
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
