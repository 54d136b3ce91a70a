import type { Redis } from 'ioredis'
import { stateKey } from './keys.ts'

/** The settings under which a cluster was worked for last, as a fingerprint. */
export interface AppliedSettings {
  get(cluster: string): Promise<string | undefined>
  put(cluster: string, fingerprint: string): Promise<void>
}

export function createAppliedSettings(redis: Redis, prefix: string): AppliedSettings {
  const key = (cluster: string) => stateKey(prefix, cluster, 'settings')
  return {
    get: async (cluster) => (await redis.get(key(cluster))) ?? undefined,
    async put(cluster, fingerprint) {
      await redis.set(key(cluster), fingerprint)
    },
  }
}
