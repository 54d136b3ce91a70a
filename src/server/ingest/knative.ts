import { createHash } from 'node:crypto'
import type { KnativeEvent, KnativeObject } from '../../events/knative.ts'
import { KNATIVE_TYPE } from '../../events/knative-schema.ts'
import { type ObjectRef, subjectOf } from '../../events/subject.ts'
import { EVENT_TYPE, sourceOf, type WindlassEvent } from '../../events/types.ts'
import type { Trigger } from '../../queue/types.ts'
import { ROUTES_KEY, TARGETS_KEY } from '../../state/node-projection.ts'
import type { ServedCluster } from '../deps.ts'
import { concernsUs } from './observe.ts'
import type { Batch } from './receive.ts'
import { GATHER_MS } from './triggers.ts'

/** A reference does not say what changed, and kubelets report all the time: what depends on all nodes is looked at so often at most. */
const REFERENCE_GATHER_MS = 5000

export interface Arrival extends Pick<ServedCluster, 'placing'> {
  cluster: string
  traceparent: string
  /** Unix time in milliseconds. */
  nowMs: number
}

/** What an event of Knative is to Windlass: the forwarder's event of the same change, or outright the work that this would lead to. */
export function batchOf(event: KnativeEvent, arrival: Arrival): Batch {
  const told = tellingEvent(event, arrival)
  return {
    cluster: arrival.cluster,
    webhookId: idOf(event),
    events: told ? [told] : [],
    // A deletion may be the first that is heard of an object, and a reference says nothing of its state.
    asked: event.deleted || !told ? workOn(event, arrival) : [],
    // Nothing tells what got lost between two events.
    gaps: refOf(event.about).kind === 'Node',
  }
}

/** The event by which the forwarder would tell of it; undefined for a reference. */
function tellingEvent(event: KnativeEvent, { cluster, traceparent, nowMs }: Arrival): WindlassEvent | undefined {
  const { about, deleted } = event
  if (about.kind === 'reference') return undefined
  const envelope = {
    specversion: '1.0',
    id: event.id,
    source: sourceOf(cluster),
    time: event.time ?? new Date(nowMs).toISOString(),
    datacontenttype: 'application/json',
    traceparent,
    subject: subjectOf(refOf(about)),
  } as const
  if (about.kind === 'Node') {
    const { uid, resourceVersion } = about.node
    return deleted
      ? { ...envelope, type: EVENT_TYPE.nodeDeleted, data: { uid, resourceVersion } }
      : { ...envelope, type: EVENT_TYPE.nodeChanged, data: about.node }
  }
  const { uid, resourceVersion } = about.service
  return deleted
    ? { ...envelope, type: EVENT_TYPE.serviceDeleted, data: { uid, resourceVersion } }
    : { ...envelope, type: EVENT_TYPE.serviceChanged, data: about.service }
}

/** The object's own work, and of a Node that of all which depends on the nodes. */
function workOn({ id: eventId, type: cause, about }: KnativeEvent, { traceparent, placing }: Arrival): Trigger[] {
  if (about.kind === 'Service' && !concernsUs(about.service, placing)) return []
  const ref = refOf(about)
  const common = { cause, urgency: 'user', eventId, traceparent } as const
  const own = { ...common, key: subjectOf(ref), ...uidOf(about) }
  if (ref.kind === 'Service') return [{ ...own, kind: 'service' }]
  const gathered = { ...common, delayMs: cause === KNATIVE_TYPE.refUpdate ? REFERENCE_GATHER_MS : GATHER_MS }
  return [
    { ...own, kind: 'node' },
    { ...gathered, kind: 'targets', key: TARGETS_KEY },
    { ...gathered, kind: 'route', key: ROUTES_KEY },
  ]
}

function refOf(about: KnativeObject): ObjectRef {
  if (about.kind === 'reference') return about.ref
  if (about.kind === 'Node') return { kind: 'Node', name: about.node.name }
  return { kind: 'Service', namespace: about.service.namespace, name: about.service.name }
}

function uidOf(about: KnativeObject): { uid?: string } {
  if (about.kind === 'reference') return {}
  return { uid: about.kind === 'Node' ? about.node.uid : about.service.uid }
}

/** Source and id together name an event, however often it is sent. */
function idOf({ source, id }: KnativeEvent): string {
  return `knative-${createHash('sha256')
    .update(JSON.stringify([source, id]))
    .digest('base64url')}`
}
