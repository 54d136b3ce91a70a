import type { Placing } from '../../config/types.ts'
import { CLEANUP_FINALIZER, isOfOurClass, wantsLoadBalancer } from '../../controllers/service/wants.ts'
import { fingerprint, type ServiceProjection } from '../../events/projection.ts'
import { parseSubject, type Subject } from '../../events/subject.ts'
import { EVENT_TYPE, type WindlassEvent } from '../../events/types.ts'
import type { Stores } from '../../state/stores.ts'

type NodeChanged = Extract<WindlassEvent, { type: typeof EVENT_TYPE.nodeChanged }>
type ServiceChanged = Extract<WindlassEvent, { type: typeof EVENT_TYPE.serviceChanged }>
export type Changed = NodeChanged | ServiceChanged

/** What an event turned out to be. */
export type Verdict =
  /** Another state than our own last run left. */
  | 'changed'
  /** The state that our own last run left, in a snapshot that looks at everything again. */
  | 'recheck'
  /** The state that our own last run left. */
  | 'handled'
  /** Something newer is known. */
  | 'stale'
  /** A Service that has no load balancer of ours and wants none. */
  | 'irrelevant'

export interface Seen {
  event: Changed
  verdict: Verdict
  targetsChanged: boolean
  routesChanged: boolean
}

export interface Observed {
  /** In the order of the batch. */
  seen: Seen[]
  deleted: number
  snapshots: { kind: 'Node' | 'Service'; complete: boolean; vanished: number; isBehind: boolean }[]
}

/** Brings the state in Redis to what a batch tells, in its order, and says what each event means. */
export async function observe(
  stores: Stores,
  cluster: string,
  events: readonly WindlassEvent[],
  batch: { epoch: string; nonce: string; placing: Placing },
): Promise<Observed> {
  const observed: Observed = { seen: [], deleted: 0, snapshots: [] }
  for (const run of runsOf(events)) {
    if (isNodeRun(run)) observed.seen.push(...(await seeNodes(stores, cluster, run)))
    else if (isServiceRun(run)) observed.seen.push(...(await seeServices(stores, cluster, run, batch.placing)))
    else for (const event of run) if (!isChanged(event)) await seeOther(stores, cluster, event, batch.epoch, observed)
  }
  await settleHandled(stores, cluster, batch.nonce, observed.seen)
  return observed
}

/** There is, or should be, a load balancer of ours for it, or it waits for us. */
export function concernsUs(service: ServiceProjection, placing: Placing): boolean {
  return (
    wantsLoadBalancer({ ...service, deleting: false }, placing) ||
    (service.finalizers.includes(CLEANUP_FINALIZER) && isOfOurClass(service, placing))
  )
}

async function seeNodes(stores: Stores, cluster: string, events: readonly NodeChanged[]): Promise<Seen[]> {
  const puts = await stores.nodes.put(
    cluster,
    events.map(({ data }) => data),
    events.map(({ snapshot }) => snapshot),
  )
  return events.flatMap((event, i) => {
    const put = puts[i]
    return put ? [{ ...put, event, verdict: verdictOf(put, true) }] : []
  })
}

async function seeServices(
  stores: Stores,
  cluster: string,
  events: readonly ServiceChanged[],
  placing: Placing,
): Promise<Seen[]> {
  const known = events.map(({ data, snapshot }) => ({ service: data, concernsUs: concernsUs(data, placing), snapshot }))
  const puts = await stores.services.put(cluster, known)
  return events.flatMap((event, i) => {
    const put = puts[i]
    const relevant = known[i]?.concernsUs ?? true
    return put ? [{ event, verdict: verdictOf(put, relevant), targetsChanged: false, routesChanged: false }] : []
  })
}

async function seeOther(
  stores: Stores,
  cluster: string,
  event: Exclude<WindlassEvent, Changed>,
  epoch: string,
  observed: Observed,
): Promise<void> {
  if (event.type === EVENT_TYPE.nodeDeleted || event.type === EVENT_TYPE.serviceDeleted) {
    const { uid, resourceVersion } = event.data
    const index = event.type === EVENT_TYPE.nodeDeleted ? stores.nodes : stores.services
    const result = await index.remove(cluster, nameIn(event.subject), uid, resourceVersion)
    if (result === 'removed') await stores.handled.forget(cluster, [event.subject])
    observed.deleted++
    return
  }
  const { kind, snapshot } = event.data
  const index = kind === 'Node' ? stores.nodes : stores.services
  if (event.type === EVENT_TYPE.snapshotBegin) return await index.beginSnapshot(cluster, snapshot)
  const { items, listVersion } = event.data
  const { complete, vanished, isBehind } = await index.endSnapshot(cluster, snapshot, { items, listVersion, epoch })
  await stores.handled.forget(
    cluster,
    vanished.map(({ name }) => `${kind}/${name}` as Subject),
  )
  observed.snapshots.push({ kind, complete, vanished: vanished.length, isBehind })
}

/** Until it is known what was handled. */
function verdictOf(put: { outcome: string; recheck: boolean }, relevant: boolean): Verdict {
  if (put.outcome === 'stale') return 'stale'
  if (!relevant) return 'irrelevant'
  return put.recheck ? 'recheck' : 'changed'
}

async function settleHandled(stores: Stores, cluster: string, nonce: string, seen: readonly Seen[]): Promise<void> {
  const open = seen.filter(({ verdict }) => verdict === 'changed' || verdict === 'recheck')
  const handled = await stores.handled.check(
    cluster,
    nonce,
    open.map(({ event }) => ({ subject: event.subject, fingerprint: fingerprint(event.data) })),
  )
  for (const [i, one] of open.entries()) {
    if (!handled[i]) one.verdict = 'changed'
    else if (one.verdict === 'changed') one.verdict = 'handled'
  }
}

/** `worker-1` of `Node/worker-1`, `default/web` of `Service/default/web`. */
function nameIn(subject: Subject): string {
  const ref = parseSubject(subject)
  if (!ref) return subject
  return ref.kind === 'Node' ? ref.name : `${ref.namespace}/${ref.name}`
}

/** Splits a batch where the type changes, so that what can go to Redis at once does. */
function runsOf(events: readonly WindlassEvent[]): WindlassEvent[][] {
  const runs: WindlassEvent[][] = []
  for (const event of events) {
    const last = runs.at(-1)
    if (last?.[0]?.type === event.type) last.push(event)
    else runs.push([event])
  }
  return runs
}

const isChanged = (event: WindlassEvent): event is Changed =>
  event.type === EVENT_TYPE.nodeChanged || event.type === EVENT_TYPE.serviceChanged
const isNodeRun = (run: WindlassEvent[]): run is NodeChanged[] => run[0]?.type === EVENT_TYPE.nodeChanged
const isServiceRun = (run: WindlassEvent[]): run is ServiceChanged[] => run[0]?.type === EVENT_TYPE.serviceChanged
