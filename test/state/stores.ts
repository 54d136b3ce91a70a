import { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { NodeProjection, ServiceProjection } from '../../src/events/projection.ts'
import { createStores, type Stores } from '../../src/state/stores.ts'
import { type RedisFixture, startRedis } from '../redis.ts'

/** Stores on a redis-server of their own, gone with the test. */
export async function storesFor(t: Test): Promise<{ server: RedisFixture; redis: Redis; stores: Stores }> {
  const server = await startRedis()
  const redis = new Redis(server.url, { maxRetriesPerRequest: 1, retryStrategy: () => 20, commandTimeout: 1000 })
  redis.on('error', () => {})
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  return { server, redis, stores: createStores(redis, 'w') }
}

export const nodeOf = (name: string, version: number, more: Partial<NodeProjection> = {}): NodeProjection => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: String(version),
  creationTimestamp: '2026-01-01T00:00:00Z',
  deleting: false,
  labels: {},
  podCidrs: ['10.1.0.0/24'],
  taints: [],
  addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  ready: 'True',
  providerId: `hcloud://1`,
  ...more,
})

export const serviceOf = (name: string, version: number, more: Partial<ServiceProjection> = {}): ServiceProjection => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  resourceVersion: String(version),
  creationTimestamp: '2026-01-01T00:00:00Z',
  deleting: false,
  annotations: {},
  finalizers: [],
  type: 'LoadBalancer',
  ports: [{ port: 80, nodePort: 30080 }],
  ipFamilies: ['IPv4'],
  loadBalancerSourceRanges: [],
  externalIps: [],
  ingress: [],
  ...more,
})
