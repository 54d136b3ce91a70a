/**
 * Names of all Redis keys of the queue. The number is the schema's version: it changes only when a release could not run beside the one
 * before. The braces make one hash tag of everything, so that a Redis that shards by tag keeps it together.
 */
const SCHEMA = 'v1'

export interface ClusterKeys {
  /** BullMQ's own keys of the cluster's queue begin with this. */
  readonly bull: string
  /** Sorted set: object → unix time in ms at which it wants to run; an object is in it from a trigger until a run has begun that sees it. */
  readonly due: string
  /** Hash: object → the trigger that waits, as `priority|generation|json`; the generation is the latest. */
  readonly why: string
  /** Sorted set: object → unix time in ms before which no run may start (throttled by the cloud, or just failed). */
  readonly held: string
  /** Hash: object → `jobId|token` of the run that may write. */
  readonly fence: string
  /** Hash: object → its job in the failed list. */
  readonly failed: string
  /** The newest generation that was given out. */
  readonly clock: string
  /** Present while one worker has the turn to look for work that nobody stands for. */
  readonly sweep: string
}

/** `prefix` for BullMQ's queues and workers. */
export const bullPrefix = (prefix: string) => `{${prefix}}:${SCHEMA}:queue`

export function clusterKeys(prefix: string, cluster: string): ClusterKeys {
  const own = (name: string) => `{${prefix}}:${SCHEMA}:work:${cluster}:${name}`
  return {
    bull: `${bullPrefix(prefix)}:${cluster}:`,
    due: own('due'),
    why: own('why'),
    held: own('held'),
    fence: own('fence'),
    failed: own('failed'),
    clock: own('clock'),
    sweep: own('sweep'),
  }
}
