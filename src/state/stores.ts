import type { Redis } from 'ioredis'
import { type AppliedSettings, createAppliedSettings } from './applied-settings.ts'
import { createDeletionBudget, type DeletionBudget } from './deletion-budget.ts'
import { createEpochs, type Epochs } from './epoch.ts'
import { createHandled, type Handled } from './handled.ts'
import { redisProblems } from './health.ts'
import { createNodeProjections, type NodeProjections } from './node-projection.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { createServiceIndex, type ServiceIndex } from './service-index.ts'
import { createServiceRecords, type ServiceRecords } from './service-record.ts'
import { createSightings, type Sightings } from './sightings.ts'
import { createWebhookIds, type WebhookIds } from './webhook-ids.ts'

/** Everything that Windlass keeps in Redis beside jobs. A cache: nothing of it must survive. */
export interface Stores {
  epochs: Epochs
  nodes: NodeProjections
  services: ServiceIndex
  outbox: Outbox
  handled: Handled
  webhookIds: WebhookIds
  serviceRecords: ServiceRecords
  sightings: Sightings
  deletions: DeletionBudget
  settings: AppliedSettings
  /** Why Redis can't be used now, in sentences; empty when it can. */
  problems(): Promise<string[]>
}

/** @param redis a connection that fails fast; whoever made it closes it */
export function createStores(redis: Redis, prefix: string): Stores {
  return {
    epochs: createEpochs(redis, prefix),
    nodes: createNodeProjections(redis, prefix),
    services: createServiceIndex(redis, prefix),
    outbox: createOutbox(redis, prefix),
    handled: createHandled(redis, prefix),
    webhookIds: createWebhookIds(redis, prefix),
    serviceRecords: createServiceRecords(redis, prefix),
    sightings: createSightings(redis, prefix),
    deletions: createDeletionBudget(redis, prefix),
    settings: createAppliedSettings(redis, prefix),
    problems: () => redisProblems(redis, prefix),
  }
}
