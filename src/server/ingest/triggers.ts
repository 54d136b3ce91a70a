import { EVENT_TYPE } from '../../events/types.ts'
import type { Trigger, WorkKind } from '../../queue/types.ts'
import { ROUTES_KEY, TARGETS_KEY } from '../../state/node-projection.ts'
import type { Pending } from '../../state/outbox.ts'
import type { Seen } from './observe.ts'

/** Nodes join and leave in bursts: work on all of a cluster waits this long for the rest of the burst. */
export const GATHER_MS = 200

/** What a batch asks for, by its events or outright, and what the state still owes: one trigger per key. */
export function triggersFor(
  seen: readonly Seen[],
  pending: readonly Pending[],
  cluster: { routes: boolean },
  asked: readonly Trigger[] = [],
): Trigger[] {
  const triggers = new Map<string, Trigger>()
  const add = (trigger: Trigger) => {
    const other = triggers.get(trigger.key)
    const urgency = other?.urgency === 'user' ? 'user' : trigger.urgency
    triggers.set(trigger.key, { ...other, ...trigger, urgency })
  }
  for (const trigger of asked) if (trigger.kind !== 'route' || cluster.routes) add(trigger)
  for (const owed of pending) {
    const kind = kindOf(owed.key)
    if (kind === 'route' && !cluster.routes) continue
    if (kind === 'targets' || kind === 'route') add({ ...gathered(kind, owed), ...traceOf(kind, seen) })
    else add({ kind, key: owed.key, cause: owed.cause, urgency: 'user', uid: owed.uid })
  }
  for (const { event, verdict } of seen) {
    if (verdict !== 'changed' && verdict !== 'recheck') continue
    add({
      kind: event.type === EVENT_TYPE.nodeChanged ? 'node' : 'service',
      key: event.subject,
      cause: verdict === 'recheck' ? 'snapshot' : event.type,
      urgency: verdict === 'recheck' ? 'background' : 'user',
      uid: event.data.uid,
      eventId: event.id,
      ...(event.traceparent === undefined ? {} : { traceparent: event.traceparent }),
    })
  }
  return [...triggers.values()]
}

function gathered(kind: WorkKind, owed: Pending): Trigger {
  return { kind, key: owed.key, cause: `node ${owed.cause}`, urgency: 'user', delayMs: GATHER_MS }
}

/** The event that this batch blames for work on the whole cluster: the last one that changed what it depends on. */
function traceOf(kind: WorkKind, seen: readonly Seen[]): Pick<Trigger, 'eventId' | 'traceparent'> {
  const cause = seen.findLast((one) => (kind === 'targets' ? one.targetsChanged : one.routesChanged))?.event
  if (!cause) return {}
  return { eventId: cause.id, ...(cause.traceparent === undefined ? {} : { traceparent: cause.traceparent }) }
}

function kindOf(key: string): WorkKind {
  if (key === TARGETS_KEY) return 'targets'
  if (key === ROUTES_KEY) return 'route'
  return key.startsWith('Node/') ? 'node' : 'service'
}
