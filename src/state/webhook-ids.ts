import type { Redis } from 'ioredis'
import { stateKey } from './keys.ts'

/** Longer than a signature is valid on either side of the clock, so that no replay outlives its memory. */
const MEMORY_S = 15 * 60

/** Batches whose jobs Redis holds. */
export interface WebhookIds {
  isKnown(cluster: string, id: string): Promise<boolean>
  /** Only after Redis holds all that the batch asked for. */
  remember(cluster: string, id: string): Promise<void>
}

export function createWebhookIds(redis: Redis, prefix: string): WebhookIds {
  const key = (cluster: string, id: string) => stateKey(prefix, cluster, `webhook:${id}`)
  return {
    isKnown: async (cluster, id) => (await redis.exists(key(cluster, id))) === 1,
    remember: async (cluster, id) => void (await redis.set(key(cluster, id), '1', 'EX', MEMORY_S)),
  }
}
