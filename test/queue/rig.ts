import type { Test } from 'tap'
import type { RedisSettings } from '../../src/config/types.ts'
import { type ClusterQueue, type ClusterQueues, openClusterQueues } from '../../src/queue/cluster-queue.ts'
import { createEnqueuer } from '../../src/queue/enqueue.ts'
import { producerConnection, whenReady } from '../../src/queue/redis.ts'
import type { Enqueuer, Trigger } from '../../src/queue/types.ts'
import { type RedisFixture, type RedisOptions, startRedis } from '../redis.ts'

export interface Rig extends Enqueuer {
  server: RedisFixture
  settings: RedisSettings
  queues: ClusterQueues
  /** The queue of cluster `c`. */
  queue: ClusterQueue
}

/** A Redis and a producer on it, gone when the test ends. */
export async function startRig(t: Test, options: RedisOptions = {}): Promise<Rig> {
  const server = await startRedis(options)
  const settings = { url: server.url, prefix: 'windlass' }
  const redis = producerConnection(settings)
  await whenReady(redis, 2000)
  const queues = openClusterQueues(redis, settings.prefix)
  t.teardown(async () => {
    await queues.close()
    redis.disconnect()
    await server.stop()
  })
  return { server, settings, queues, queue: queues.of('c'), ...createEnqueuer(queues) }
}

export function trigger(name: string, more: Partial<Trigger> = {}): Trigger {
  return { kind: 'service', key: `Service/default/${name}`, cause: 'test', urgency: 'user', ...more }
}

/** Waits for what must come true; a test that waits in vain ends by its own time limit. */
export async function eventually<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (;;) {
    const seen = await look()
    if (seen) return seen
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
