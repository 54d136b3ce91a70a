import { performance } from 'node:perf_hooks'
import { messageOf, transient, WindlassError } from '../../errors.ts'
import type { WindlassEvent } from '../../events/types.ts'
import type { Enqueued, Trigger } from '../../queue/types.ts'
import { traceIdOf } from '../../telemetry/traceparent.ts'
import { beginSpan } from '../../telemetry/traces.ts'
import type { ServedCluster, ServerDeps } from '../deps.ts'
import type { EpochKeeper } from './epoch-keeper.ts'
import { type Observed, observe } from './observe.ts'
import { triggersFor } from './triggers.ts'

export interface Batch {
  cluster: string
  /** Names the batch: the same each time that it comes. */
  webhookId: string
  events: readonly WindlassEvent[]
  /** What it asks for outright, since no event says what changed. */
  asked?: readonly Trigger[]
  /** Its sender does not say when it missed a change of a Node. */
  gaps?: boolean
}

export interface Receipt {
  /** Epoch of the Redis that holds what the batch asked for. */
  epoch: string
}

/**
 * Takes a verified and valid batch: resolves only when Redis holds all that it asks for, and then for good, since a batch that comes again
 * does nothing. Whatever fails in between is repaired by the same batch coming again, or by the outbox if it does not.
 */
export async function receive(deps: ServerDeps, epochs: EpochKeeper, batch: Batch): Promise<Receipt> {
  try {
    return await take(deps, epochs, batch)
  } catch (error) {
    if (error instanceof WindlassError) throw error
    throw transient(
      `Redis could not take the events (${messageOf(error)}): check that it runs, is not full or read-only, and that nothing else writes under Windlass' keys`,
      { cause: error },
    )
  }
}

async function take(
  deps: ServerDeps,
  epochs: EpochKeeper,
  { cluster, webhookId, events, asked = [], gaps = false }: Batch,
): Promise<Receipt> {
  const { stores, enqueuer } = deps
  const begun = performance.now()
  const { id: epoch } = await epochs.current()
  if (await stores.webhookIds.isKnown(cluster, webhookId)) {
    deps.log.info({ cluster, webhookId, events: events.length }, 'a batch came again')
    return { epoch }
  }
  const served = deps.clusters.get(cluster) ?? UNKNOWN
  if (gaps) await stores.nodes.doubt(cluster)
  const observed = await observe(stores, cluster, events, { epoch, nonce: webhookId, placing: served.placing })
  const pending = await stores.outbox.read(cluster)
  const triggers = triggersFor(observed.seen, pending, served, [...asked, ...ofAnotherLife(observed)])
  const enqueued = await traced(triggers, (all) => enqueuer.enqueue(cluster, all))
  await stores.outbox.clear(cluster, pending)
  await stores.webhookIds.remember(cluster, webhookId)
  count(deps, cluster, events, observed, triggers)
  tell(deps, { cluster, webhookId, begun, asked }, events, observed, enqueued)
  return { epoch }
}

/** A span in the trace of each event that asks for something; the job goes on from there. */
async function traced<T>(triggers: readonly Trigger[], enqueue: (all: readonly Trigger[]) => Promise<T>): Promise<T> {
  const spans = triggers.map(({ kind, key, traceparent: parent }) =>
    parent === undefined
      ? undefined
      : beginSpan(`enqueue ${kind}`, { kind: 'PRODUCER', parent, attributes: { 'windlass.object': key } }),
  )
  const end = (error?: unknown) => {
    for (const span of spans) span?.end({ error })
  }
  try {
    const result = await enqueue(
      triggers.map((trigger, i) => {
        const span = spans[i]
        return span ? { ...trigger, traceparent: span.traceparent } : trigger
      }),
    )
    end()
    return result
  } catch (error) {
    end(error)
    throw error
  }
}

/** Only a fresh list tells whether a list was late or what Redis knows is of a former life of the cluster. */
function ofAnotherLife({ snapshots }: Observed): Trigger[] {
  if (!snapshots.some(({ isBehind }) => isBehind)) return []
  return [{ kind: 'resync', key: 'Cluster/resync', cause: 'older versions', urgency: 'user' }]
}

const UNKNOWN: Pick<ServedCluster, 'routes' | 'placing'> = { routes: false, placing: { classes: {} } }

function count(
  { metrics }: ServerDeps,
  cluster: string,
  events: readonly WindlassEvent[],
  { seen, snapshots }: Observed,
  triggers: readonly Trigger[],
): void {
  for (const { type } of events) metrics.increment('windlass_events_received_total', 1, { cluster, type })
  for (const { verdict } of seen) {
    if (verdict === 'handled') metrics.increment('windlass_events_handled_total', 1, { cluster })
    if (verdict === 'stale') metrics.increment('windlass_events_stale_total', 1, { cluster })
  }
  for (const { kind, complete } of snapshots)
    metrics.increment('windlass_snapshots_total', 1, { cluster, kind, result: complete ? 'complete' : 'incomplete' })
  for (const { kind, urgency } of triggers) {
    metrics.increment('windlass_triggers_total', 1, { cluster, kind, urgency })
    metrics.increment('workqueue_adds_total', 1, { name: kind })
  }
}

/** One line per batch, and one per object that changed, so that the way of one Service can be followed. */
function tell(
  { log }: ServerDeps,
  batch: { cluster: string; webhookId: string; begun: number; asked: readonly Trigger[] },
  events: readonly WindlassEvent[],
  { seen, deleted, snapshots }: Observed,
  enqueued: readonly Enqueued[],
): void {
  const { cluster, webhookId } = batch
  const jobs = new Map(enqueued.map(({ key, jobId }) => [key, jobId]))
  for (const { event, verdict } of seen) {
    if (event.snapshot !== undefined) continue
    const traceId = event.traceparent?.split('-')[1]
    const { id: eventId, subject } = event
    log.info({ cluster, eventId, traceId, subject, verdict, jobId: jobs.get(subject) }, 'an object changed')
  }
  for (const { key: subject, kind, eventId, traceparent } of batch.asked)
    if (kind === 'node' || kind === 'service')
      log.info(
        { cluster, eventId, traceId: traceIdOf(traceparent), subject, verdict: 'asked', jobId: jobs.get(subject) },
        'an object changed',
      )
  for (const snapshot of snapshots) log.info({ cluster, ...snapshot }, 'a snapshot ended')
  const of = (verdict: string) => seen.filter((one) => one.verdict === verdict).length
  const level = events.length === 0 && enqueued.length === 0 ? 'debug' : 'info'
  log[level](
    {
      cluster,
      webhookId,
      events: events.length,
      deleted,
      stale: of('stale'),
      handled: of('handled'),
      jobs: enqueued.length,
      durationMs: Math.round(performance.now() - batch.begun),
    },
    'a batch was accepted',
  )
}
