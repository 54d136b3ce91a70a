import { randomBytes, randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { NodeProjection, ServiceProjection } from '../../src/events/projection.ts'
import { sign } from '../../src/events/sign.ts'
import { subjectOf } from '../../src/events/subject.ts'
import { BATCH_CONTENT_TYPE, EVENT_TYPE, eventsPath, sourceOf, type WindlassEvent } from '../../src/events/types.ts'
import { backlog } from '../../src/queue/backlog.ts'
import { type ClusterQueues, openClusterQueues } from '../../src/queue/cluster-queue.ts'
import { createEnqueuer } from '../../src/queue/enqueue.ts'
import { producerConnection, whenReady } from '../../src/queue/redis.ts'
import type { JobData, Trigger } from '../../src/queue/types.ts'
import { buildServer, type Server } from '../../src/server/app.ts'
import type { ServerDeps } from '../../src/server/deps.ts'
import { createStores, type Stores } from '../../src/state/stores.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { type RedisFixture, startRedis } from '../redis.ts'

const PLACING = { classes: { 'example.com/ours': 'hcloud' } }
export const KEY = `whsec_${randomBytes(32).toString('base64')}`
export const OLD_KEY = randomBytes(32).toString('base64')
const PREFIX = 'w'

export interface Harness {
  server: Server
  redis: Redis
  fixture: RedisFixture
  stores: Stores
  queues: ClusterQueues
  deps: ServerDeps
  /** Log lines so far. */
  logged: Record<string, unknown>[]
  /** How often schedules were asserted. */
  asserted(): number
  /** What was enqueued, since the last call. */
  triggers(): Trigger[]
  /** Data of the jobs that Redis holds, by key. */
  jobs(cluster?: string): Promise<Map<string, JobData>>
  post(events: readonly WindlassEvent[], options?: PostOptions): Promise<Answer>
}

export interface PostOptions {
  cluster?: string
  id?: string
  atMs?: number
  key?: string
}

export interface Answer {
  status: number
  headers: Record<string, unknown>
  body: { message?: string; faults?: { path: string }[]; accepted?: number; epoch?: string }
}

/** A server on a real Redis and the real queue, with clusters `default` (pod routes on) and `other` (off). */
export async function harness(t: Test, more: Partial<ServerDeps> = {}, start = true): Promise<Harness> {
  const fixture = await startRedis()
  if (!start) await fixture.stop()
  const redis = producerConnection({ url: fixture.url, prefix: PREFIX })
  const queues = openClusterQueues(redis, PREFIX)
  const stores = createStores(redis, PREFIX)
  const enqueuer = createEnqueuer(queues)
  const logged: Record<string, unknown>[] = []
  const enqueued: Trigger[] = []
  let asserted = 0
  const deps: ServerDeps = {
    clusters: new Map([
      ['default', { webhookKeys: [KEY, OLD_KEY], routes: true, placing: PLACING }],
      ['other', { webhookKeys: [KEY], routes: false, placing: PLACING }],
    ]),
    enqueuer: {
      async enqueue(cluster, triggers) {
        const done = await enqueuer.enqueue(cluster, triggers)
        enqueued.push(...triggers)
        return done
      },
    },
    stores,
    assertSchedules: async () => void asserted++,
    backlog: (cluster) => backlog(queues.of(cluster)),
    metrics: createMetrics(),
    log: createLogger({ level: 'debug', destination: { write: (line) => void logged.push(JSON.parse(line)) } }),
    bodyLimitBytes: 1024 * 1024,
    ...more,
  }
  const server = await buildServer(deps)
  t.teardown(async () => {
    await server.app.close()
    await queues.close()
    redis.disconnect()
    await fixture.stop()
  })
  if (start) await whenReady(redis, 5000)

  return {
    server,
    redis,
    fixture,
    stores,
    queues,
    deps,
    logged,
    asserted: () => asserted,
    triggers: () => enqueued.splice(0),
    async jobs(cluster = 'default') {
      const jobs = await queues.of(cluster).queue.getJobs()
      return new Map(jobs.map(({ data }) => [data.key, data]))
    },
    async post(events, { cluster = 'default', id = randomUUID(), atMs = Date.now(), key = KEY } = {}) {
      const payload = JSON.stringify(events)
      const answer = await server.app.inject({
        method: 'POST',
        url: eventsPath(cluster),
        headers: { 'content-type': BATCH_CONTENT_TYPE, ...sign(key, id, atMs, payload) },
        payload,
      })
      return { status: answer.statusCode, headers: answer.headers, body: answer.json() }
    },
  }
}

const envelope = (cluster: string) =>
  ({
    specversion: '1.0',
    id: randomUUID(),
    source: sourceOf(cluster),
    time: new Date().toISOString(),
    datacontenttype: 'application/json',
  }) as const

export const nodeChanged = (
  data: NodeProjection,
  more: { snapshot?: string; traceparent?: string } = {},
): WindlassEvent => ({
  ...envelope('default'),
  type: EVENT_TYPE.nodeChanged,
  subject: subjectOf({ kind: 'Node', name: data.name }),
  data,
  ...more,
})

export const nodeDeleted = (name: string, uid: string, version: number): WindlassEvent => ({
  ...envelope('default'),
  type: EVENT_TYPE.nodeDeleted,
  subject: subjectOf({ kind: 'Node', name }),
  data: { uid, resourceVersion: String(version) },
})

export const serviceChanged = (data: ServiceProjection, more: { snapshot?: string } = {}): WindlassEvent => ({
  ...envelope('default'),
  type: EVENT_TYPE.serviceChanged,
  subject: subjectOf({ kind: 'Service', namespace: data.namespace, name: data.name }),
  data,
  ...more,
})

export const serviceDeleted = (name: string, uid: string, version: number): WindlassEvent => ({
  ...envelope('default'),
  type: EVENT_TYPE.serviceDeleted,
  subject: subjectOf({ kind: 'Service', namespace: 'default', name }),
  data: { uid, resourceVersion: String(version) },
})

export const snapshotBegin = (kind: 'Node' | 'Service', snapshot: string): WindlassEvent => ({
  ...envelope('default'),
  type: EVENT_TYPE.snapshotBegin,
  data: { kind, snapshot },
})

export const snapshotEnd = (
  kind: 'Node' | 'Service',
  snapshot: string,
  items: number,
  version: number,
): WindlassEvent => ({
  ...envelope('default'),
  type: EVENT_TYPE.snapshotEnd,
  data: { kind, snapshot, items, listVersion: String(version) },
})
