import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { describe } from './describe.ts'
import { list, name, port, resourceVersion, stringMap, text, uid } from './fields.ts'
import { isObject, type Read } from './http-binding.ts'
import { keepKnownFields } from './known-fields.ts'
import type { ObjectRef } from './subject.ts'

/** The `type` of each event of an ApiServerSource: with the object as it is, or was last, or with a reference to it. */
export const KNATIVE_TYPE = {
  add: 'dev.knative.apiserver.resource.add',
  update: 'dev.knative.apiserver.resource.update',
  delete: 'dev.knative.apiserver.resource.delete',
  refAdd: 'dev.knative.apiserver.ref.add',
  refUpdate: 'dev.knative.apiserver.ref.update',
  refDelete: 'dev.knative.apiserver.ref.delete',
} as const

export type KnativeType = (typeof KNATIVE_TYPE)[keyof typeof KNATIVE_TYPE]

/** An event's attributes. Others are not looked at: an ApiServerSource adds some, and its user may. */
const Envelope = Type.Object({
  specversion: Type.Literal('1.0', { description: '"1.0"' }),
  id: Type.String({ minLength: 1, maxLength: 256, description: '1 to 256 characters' }),
  source: Type.String({ minLength: 1, maxLength: 512, description: '1 to 512 characters' }),
  type: Type.Unsafe<KnativeType>(
    Type.Union(
      Object.values(KNATIVE_TYPE).map((type) => Type.Literal(type)),
      { description: `an event of an ApiServerSource (${Object.values(KNATIVE_TYPE).join(', ')})` },
    ),
  ),
  time: Type.Optional(Type.String({ maxLength: 64, description: 'a time as in RFC 3339' })),
  traceparent: Type.Optional(text),
  data: Type.Object(
    {
      apiVersion: Type.Literal('v1', { description: `"v1": ${onlyThese()}` }),
      kind: Type.Union([Type.Literal('Node'), Type.Literal('Service')], {
        description: `"Node" or "Service": ${onlyThese()}`,
      }),
    },
    { description: 'the object, or a reference to it' },
  ),
})

function onlyThese(): string {
  return 'an ApiServerSource for Windlass names no other resources than v1 Node and v1 Service'
}

const meta = {
  name,
  uid,
  resourceVersion,
  creationTimestamp: text,
  deletionTimestamp: Type.Optional(text),
  labels: Type.Optional(stringMap),
  annotations: Type.Optional(stringMap),
  finalizers: Type.Optional(list(text, 'a list of finalizers')),
}
const some = <P extends Parameters<typeof Type.Object>[0]>(properties: P) =>
  Type.Object(properties, { description: 'an object' })

const NodeSchema = some({
  metadata: some(meta),
  spec: Type.Optional(
    some({
      providerID: Type.Optional(text),
      podCIDR: Type.Optional(text),
      podCIDRs: Type.Optional(list(text, 'a list of CIDRs')),
      taints: Type.Optional(
        list(
          some({ key: text, value: Type.Optional(text), effect: text, timeAdded: Type.Optional(text) }),
          'a list of taints',
        ),
      ),
    }),
  ),
  status: Type.Optional(
    some({
      addresses: Type.Optional(list(some({ type: text, address: text }), 'a list of addresses')),
      conditions: Type.Optional(
        list(some({ type: text, status: text, reason: Type.Optional(text) }), 'a list of conditions'),
      ),
    }),
  ),
})

const ServiceSchema = some({
  metadata: some({ ...meta, namespace: name }),
  spec: some({
    type: Type.Optional(text),
    loadBalancerClass: Type.Optional(text),
    ports: Type.Optional(
      list(
        some({
          name: Type.Optional(text),
          protocol: Type.Optional(text),
          port,
          nodePort: Type.Optional(port),
          appProtocol: Type.Optional(text),
        }),
        'a list of ports',
      ),
    ),
    externalTrafficPolicy: Type.Optional(text),
    healthCheckNodePort: Type.Optional(port),
    sessionAffinity: Type.Optional(text),
    ipFamilies: Type.Optional(list(text, 'a list of "IPv4" and "IPv6"')),
    loadBalancerIP: Type.Optional(text),
    loadBalancerSourceRanges: Type.Optional(list(text, 'a list of CIDRs')),
    externalIPs: Type.Optional(list(text, 'a list of addresses')),
  }),
  status: Type.Optional(
    some({
      loadBalancer: Type.Optional(
        some({
          ingress: Type.Optional(
            list(
              some({ ip: Type.Optional(text), hostname: Type.Optional(text), ipMode: Type.Optional(text) }),
              'a list of { ip?, hostname?, ipMode? }',
            ),
          ),
        }),
      ),
    }),
  ),
})

const NodeReference = some({ kind: Type.Literal('Node'), name })
const ServiceReference = some({ kind: Type.Literal('Service'), name, namespace: name })

/** For the API's description: the functions below say more sharply what is wrong. */
export const KnativeEventSchema = Type.Object(
  {
    ...Envelope.properties,
    data: Type.Union([NodeSchema, ServiceSchema, NodeReference, ServiceReference]),
  },
  {
    description:
      'A CloudEvent of an ApiServerSource. In binary mode the body is `data`, and the rest are headers `ce-…`.',
  },
)

// What `data` has beside is looked at by the next check.
export const checkEnvelope = checkerOf(Envelope, '$', (value) => value)
export const checkNode = checkerOf(NodeSchema, '$.data')
export const checkService = checkerOf(ServiceSchema, '$.data')
const checkNodeReference = checkerOf(NodeReference, '$.data')
const checkServiceReference = checkerOf(ServiceReference, '$.data')

export function checkReference(data: { kind: 'Node' | 'Service' }): Read<{ value: ObjectRef }> {
  return data.kind === 'Node' ? checkNodeReference(data) : checkServiceReference(data)
}

/** Takes what the schema takes, without what the schema does not name. */
function checkerOf<T extends TSchema>(
  schema: T,
  root: string,
  keep = keepKnownFields(schema),
): (value: unknown) => Read<{ value: Static<T> }> {
  const validator = Compile(schema) as Validator
  return (value) => {
    if (!isObject(value)) return { faults: [{ path: root, message: 'must be a JSON object' }] }
    if (validator.Check(value)) return { value: keep(value) as Static<T> }
    const faults = describe(validator, value).slice(0, MAX_FAULTS)
    return { faults: faults.map(({ path, message }) => ({ path: `${root}${path}`, message })) }
  }
}

const MAX_FAULTS = 20
