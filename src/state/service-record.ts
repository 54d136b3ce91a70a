import type { Redis } from 'ioredis'
import { stateKey } from './keys.ts'

/** What is remembered of a Service after its load balancer was brought to its state. */
export interface ServiceRecord {
  uid: string
  /** Those that say which nodes are targets. */
  annotations: Record<string, string>
  /** Name of the cloud that has the load balancer. */
  cloud: string
  /** Other clouds where there may be something of it that has to go. */
  elsewhere?: readonly string[]
  /** The target set it has now, as `LoadBalancers.targetsKey` names it; empty until the load balancer is made. */
  targetsKey: string
}

export interface ServiceRecords {
  /** By `namespace/name`. */
  all(cluster: string): Promise<Map<string, ServiceRecord>>
  get(cluster: string, name: string): Promise<ServiceRecord | undefined>
  put(cluster: string, name: string, record: ServiceRecord): Promise<void>
  remove(cluster: string, name: string): Promise<void>
  /**
   * Changes with each comparison of the records with the nodes that begins: a run between whose begin and whose record one began has to
   * compare for itself.
   */
  comparisons(cluster: string): Promise<string>
  beginComparison(cluster: string): Promise<void>
}

export function createServiceRecords(redis: Redis, prefix: string): ServiceRecords {
  const key = (cluster: string) => stateKey(prefix, cluster, 'service-records')
  const comparisons = (cluster: string) => stateKey(prefix, cluster, 'service-comparisons')
  return {
    async all(cluster) {
      const fields = Object.entries(await redis.hgetall(key(cluster)))
      return new Map(fields.map(([name, record]) => [name, JSON.parse(record) as ServiceRecord]))
    },
    async get(cluster, name) {
      const record = await redis.hget(key(cluster), name)
      return record === null ? undefined : (JSON.parse(record) as ServiceRecord)
    },
    put: async (cluster, name, record) => void (await redis.hset(key(cluster), name, JSON.stringify(record))),
    remove: async (cluster, name) => void (await redis.hdel(key(cluster), name)),
    comparisons: async (cluster) => (await redis.get(comparisons(cluster))) ?? '',
    beginComparison: async (cluster) => void (await redis.incr(comparisons(cluster))),
  }
}
