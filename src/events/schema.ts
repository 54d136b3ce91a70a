import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { describe } from './describe.ts'
import { flag, list, name, port, resourceVersion, stringMap, text, uid } from './fields.ts'
import { keepKnownFields } from './known-fields.ts'
import { ACCEPTED_BATCH_EVENTS } from './limits.ts'
import type { LoadBalancerIngress, NodeProjection, ServiceProjection } from './projection.ts'
import { type Subject, subjectOf } from './subject.ts'
import {
  type Deleted,
  EVENT_TYPE,
  type EventType,
  type Fault,
  type SnapshotBegin,
  type SnapshotEnd,
  sourceOf,
  type WindlassEvent,
} from './types.ts'

/*
 * Forwarder and server of version N and N−1 work together, so:
 * - inside `data`, fields that we don't know are ignored (and left out of what is returned): a newer forwarder may send them.
 *   A field that is added must be optional, since an older forwarder does not send it.
 * - the envelope is closed: a misspelt `snapshot` would change what an event means. A new attribute, or a new event type,
 *   is accepted by one version of the server before the next version's forwarder sends it.
 */

const kind = Type.Union([Type.Literal('Node'), Type.Literal('Service')], { description: '"Node" or "Service"' })
const snapshot = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "the snapshot's id, up to 128 characters",
})

const NodeProjectionSchema = Type.Object(
  {
    name,
    uid,
    resourceVersion,
    creationTimestamp: text,
    deleting: flag,
    labels: stringMap,
    providedNodeIp: Type.Optional(text),
    annotations: Type.Optional(stringMap),
    providerId: Type.Optional(text),
    podCidrs: list(text, 'a list of CIDRs'),
    taints: list(
      Type.Object(
        { key: text, value: Type.Optional(text), effect: text, timeAdded: Type.Optional(text) },
        { description: '{ key, value?, effect, timeAdded? }' },
      ),
      'a list of taints',
    ),
    addresses: list(
      Type.Object({ type: text, address: text }, { description: '{ type, address }' }),
      'a list of addresses',
    ),
    ready: Type.Union([Type.Literal('True'), Type.Literal('False'), Type.Literal('Unknown')], {
      description: '"True", "False" or "Unknown"',
    }),
    networkUnavailable: Type.Optional(
      Type.Object({ status: text, reason: Type.Optional(text) }, { description: '{ status, reason? }' }),
    ),
  },
  { description: 'the projection of a Node' },
)

const ServiceProjectionSchema = Type.Object(
  {
    namespace: name,
    name,
    uid,
    resourceVersion,
    creationTimestamp: text,
    deleting: flag,
    annotations: stringMap,
    finalizers: list(text, 'a list of finalizers'),
    type: text,
    loadBalancerClass: Type.Optional(text),
    ports: list(
      Type.Object(
        {
          name: Type.Optional(text),
          protocol: Type.Optional(text),
          port,
          nodePort: Type.Optional(port),
          appProtocol: Type.Optional(text),
        },
        { description: '{ name?, protocol?, port, nodePort?, appProtocol? }' },
      ),
      'a list of ports',
    ),
    externalTrafficPolicy: Type.Optional(text),
    healthCheckNodePort: Type.Optional(port),
    sessionAffinity: Type.Optional(text),
    ipFamilies: list(text, 'a list of "IPv4" and "IPv6"'),
    loadBalancerIp: Type.Optional(text),
    loadBalancerSourceRanges: list(text, 'a list of CIDRs'),
    externalIps: list(text, 'a list of addresses'),
    ingress: list(
      Type.Object(
        { ip: Type.Optional(text), hostname: Type.Optional(text), ipMode: Type.Optional(text) },
        { description: '{ ip?, hostname?, ipMode? }' },
      ),
      'a list of { ip?, hostname?, ipMode? }',
    ),
  },
  { description: 'the projection of a Service' },
)

const DeletedSchema = Type.Object({ uid, resourceVersion }, { description: '{ uid, resourceVersion }' })

const SnapshotBeginSchema = Type.Object({ kind, snapshot }, { description: '{ kind, snapshot }' })

const SnapshotEndSchema = Type.Object(
  {
    kind,
    snapshot,
    items: Type.Integer({ minimum: 0, description: 'how many different objects the snapshot named' }),
    listVersion: resourceVersion,
  },
  { description: '{ kind, snapshot, items, listVersion }' },
)

const nodeSubject = Type.Unsafe<Subject>(
  Type.String({ maxLength: 512, pattern: '^Node/[^/]+$', description: '"Node/{name}"' }),
)
const serviceSubject = Type.Unsafe<Subject>(
  Type.String({ maxLength: 512, pattern: '^Service/[^/]+/[^/]+$', description: '"Service/{namespace}/{name}"' }),
)

function envelope<T extends EventType, D extends TSchema>(type: T, data: D) {
  return {
    specversion: Type.Literal('1.0', { description: '"1.0"' }),
    id: Type.String({
      maxLength: 128,
      pattern: '^[!-~]+$',
      description: 'up to 128 printable ASCII characters that no other event of the cluster has',
    }),
    source: Type.String({ maxLength: 512, description: '"/clusters/{cluster}"' }),
    type: Type.Literal(type),
    time: Type.String({
      pattern: '^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?([Zz]|[+-]\\d\\d:\\d\\d)$',
      description: 'a time as in RFC 3339',
    }),
    datacontenttype: Type.Literal('application/json', { description: '"application/json"' }),
    data,
    traceparent: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$',
        maxLength: 512,
        description: 'a W3C traceparent, or nothing',
      }),
    ),
  }
}

const closed = { additionalProperties: false }
const changedOf = <T extends EventType, S extends TSchema, D extends TSchema>(type: T, subject: S, data: D) =>
  Type.Object({ ...envelope(type, data), subject, snapshot: Type.Optional(snapshot) }, closed)
const deletedOf = <T extends EventType, S extends TSchema>(type: T, subject: S) =>
  Type.Object({ ...envelope(type, DeletedSchema), subject }, closed)

/** JSON schema of each event, by its `type`. */
const EventSchemas = {
  [EVENT_TYPE.nodeChanged]: changedOf(EVENT_TYPE.nodeChanged, nodeSubject, NodeProjectionSchema),
  [EVENT_TYPE.nodeDeleted]: deletedOf(EVENT_TYPE.nodeDeleted, nodeSubject),
  [EVENT_TYPE.serviceChanged]: changedOf(EVENT_TYPE.serviceChanged, serviceSubject, ServiceProjectionSchema),
  [EVENT_TYPE.serviceDeleted]: deletedOf(EVENT_TYPE.serviceDeleted, serviceSubject),
  [EVENT_TYPE.snapshotBegin]: Type.Object(envelope(EVENT_TYPE.snapshotBegin, SnapshotBeginSchema), closed),
  [EVENT_TYPE.snapshotEnd]: Type.Object(envelope(EVENT_TYPE.snapshotEnd, SnapshotEndSchema), closed),
}

/** JSON schema of a batch, for the API's description. `validateBatch` says more sharply what is wrong. */
export const BatchSchema = Type.Array(Type.Union(Object.values(EventSchemas)), { maxItems: ACCEPTED_BATCH_EVENTS })

const MAX_FAULTS = 50
const MAX_FAULTS_OF_ONE = 5

const validators = new Map<unknown, Validator>(
  Object.entries(EventSchemas).map(([type, schema]) => [type, Compile(schema as TSchema) as Validator]),
)

const cleaners = new Map<unknown, (event: unknown) => unknown>(
  Object.entries(EventSchemas).map(([type, schema]) => [type, keepKnownFields(schema)]),
)

/**
 * The events of a batch that was posted to a cluster's path, or what is wrong with it.
 * @param json the parsed body
 * @param cluster the cluster of the path
 */
export function validateBatch(
  json: unknown,
  cluster: string,
): { events: WindlassEvent[]; faults?: undefined } | { faults: Fault[]; events?: undefined } {
  if (!Array.isArray(json)) return { faults: [{ path: '$', message: 'must be a JSON array of CloudEvents' }] }
  if (json.length > ACCEPTED_BATCH_EVENTS)
    return { faults: [{ path: '$', message: `must have at most ${ACCEPTED_BATCH_EVENTS} events, not ${json.length}` }] }
  const events: WindlassEvent[] = []
  const faults: Fault[] = []
  const ids = new Set<string>()
  for (const [index, one] of json.entries()) {
    const found = faultsOf(one, cluster)
    if (found.length === 0) {
      const event = one as WindlassEvent
      if (ids.has(event.id)) found.push({ path: '.id', message: 'must differ from the id of every other event' })
      ids.add(event.id)
      events.push(cleaners.get(event.type)?.(event) as WindlassEvent)
    }
    for (const { path, message } of found.slice(0, MAX_FAULTS_OF_ONE))
      faults.push({ path: `$[${index}]${path}`, message })
    if (faults.length >= MAX_FAULTS) break
  }
  return faults.length > 0 ? { faults } : { events }
}

function faultsOf(event: unknown, cluster: string): Fault[] {
  if (event === null || typeof event !== 'object' || Array.isArray(event))
    return [{ path: '', message: 'must be a CloudEvent, a JSON object' }]
  const type = 'type' in event ? event.type : undefined
  const validator = validators.get(type)
  if (!validator) {
    const known = [...validators.keys()].join(', ')
    return [
      {
        path: '.type',
        message: `must be an event type that this server knows (${known}); if the forwarder is newer, update the server first`,
      },
    ]
  }
  if (!validator.Check(event)) return describe(validator, event)
  const valid = event as WindlassEvent
  const faults: Fault[] = []
  const source = sourceOf(cluster)
  if (valid.source !== source)
    faults.push({ path: '.source', message: `must be "${source}", the cluster that it was posted to` })
  const subject = subjectInData(valid)
  if (subject && 'subject' in valid && valid.subject !== subject)
    faults.push({ path: '.subject', message: `must be "${subject}", the object in data` })
  return faults
}

function subjectInData(event: WindlassEvent): Subject | undefined {
  if (event.type === EVENT_TYPE.nodeChanged) return subjectOf({ kind: 'Node', name: event.data.name })
  if (event.type === EVENT_TYPE.serviceChanged) {
    const { namespace, name } = event.data
    return subjectOf({ kind: 'Service', namespace, name })
  }
  return undefined
}

/*
 * The hand-written types are the contract; a schema that says anything else does not compile.
 */
type Flat<T> = T extends (infer E)[] ? Flat<E>[] : T extends object ? { [K in keyof T]: Flat<T[K]> } : T
type Same<A, B> =
  (<T>() => T extends Flat<A> ? 1 : 2) extends <T>() => T extends Flat<B> ? 1 : 2 ? true : [Flat<A>, Flat<B>]
type EventOf<T extends EventType> = Extract<WindlassEvent, { type: T }>
type SchemaOf<T extends EventType> = Static<(typeof EventSchemas)[T]>

type Disagreeing = { [T in EventType]: Same<SchemaOf<T>, EventOf<T>> extends true ? never : T }[EventType]
type Holds<T extends true> = T

export type SchemasAgree = [
  Holds<Same<Static<typeof NodeProjectionSchema>, NodeProjection>>,
  Holds<Same<Static<typeof ServiceProjectionSchema>, ServiceProjection>>,
  Holds<Same<Static<typeof ServiceProjectionSchema>['ingress'][number], LoadBalancerIngress>>,
  Holds<Same<Static<typeof DeletedSchema>, Deleted>>,
  Holds<Same<Static<typeof SnapshotBeginSchema>, SnapshotBegin>>,
  Holds<Same<Static<typeof SnapshotEndSchema>, SnapshotEnd>>,
  Holds<[Disagreeing] extends [never] ? true : Disagreeing>,
]
