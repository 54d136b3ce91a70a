import { pino } from 'pino'
import type { Test } from 'tap'
import type { WorkKind } from '../../src/queue/types.ts'
import {
  type Handler,
  startWorker,
  type WorkerHost,
  type WorkerInternals,
  type WorkerOptions,
} from '../../src/worker/host.ts'
import type { Rig } from '../queue/rig.ts'

/** The same handler for all kinds of work. */
export const all = (handler: Handler): Record<WorkKind, Handler> => ({
  node: handler,
  service: handler,
  targets: handler,
  route: handler,
  addresses: handler,
  resync: handler,
})

/** A worker of cluster `c` that is stopped when the test ends. */
export function startWorkers(
  t: Test,
  rig: Rig,
  handler: Handler,
  internals: WorkerInternals = {},
  options: Partial<WorkerOptions> = {},
): { host: WorkerHost } {
  const host = startWorker(
    {
      redis: rig.settings,
      clusters: ['c'],
      handlers: all(handler),
      concurrency: 1,
      log: pino({ level: 'silent' }),
      graceMs: 500,
      ...options,
    },
    internals,
  )
  t.teardown(() => host.stop())
  return { host }
}
