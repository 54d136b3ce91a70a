import type { Json } from '../../apiserver/admin.ts'

/** Those that a cloud controller writes. */
export const metallbKinds = ['IPAddressPool', 'BGPPeer', 'BGPAdvertisement'] as const

const text = { type: 'string' }
const integer = { type: 'integer' }
const boolean = { type: 'boolean' }
const asn = { type: 'integer', format: 'int64', minimum: 0, maximum: 4_294_967_295 }
const listOf = (items: Json) => ({ type: 'array', items })
const object = (properties: Json, required?: string[]) => ({
  type: 'object',
  properties,
  ...(required && { required }),
})
const labels = { type: 'object', additionalProperties: text }

const selector = object({
  matchLabels: labels,
  matchExpressions: listOf(object({ key: text, operator: text, values: listOf(text) }, ['key', 'operator'])),
})

/** As it was in v1beta1: an expression needs values. */
const selectorWithValues = object({
  matchLabels: labels,
  matchExpressions: listOf(
    object({ key: text, operator: text, values: { ...listOf(text), minItems: 1 } }, ['key', 'operator', 'values']),
  ),
})

const peer = {
  myASN: asn,
  peerASN: asn,
  peerAddress: text,
  sourceAddress: text,
  holdTime: text,
  keepaliveTime: text,
  routerID: text,
  password: text,
  bfdProfile: text,
  ebgpMultiHop: boolean,
}

const oldPeer = object(
  { ...peer, nodeSelectors: listOf(selectorWithValues), peerPort: { ...integer, minimum: 0, maximum: 16_384 } },
  ['myASN', 'peerASN', 'peerAddress'],
)

const newPeer = object(
  {
    ...peer,
    nodeSelectors: listOf(selector),
    peerPort: { ...integer, default: 179, minimum: 1, maximum: 16_384 },
    vrf: text,
    interface: text,
    dynamicASN: text,
    connectTime: text,
    passwordSecret: object({ name: text, namespace: text }),
    disableMP: { ...boolean, default: false },
    dualStackAddressFamily: { ...boolean, default: false },
    enableGracefulRestart: boolean,
  },
  ['myASN'],
)

const pool = object(
  {
    addresses: listOf(text),
    autoAssign: { ...boolean, default: true },
    avoidBuggyIPs: { ...boolean, default: false },
    serviceAllocation: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
  ['addresses'],
)

const advertisement = object({
  aggregationLength: { ...integer, default: 32, minimum: 1 },
  aggregationLengthV6: { ...integer, default: 128 },
  localPref: integer,
  communities: listOf(text),
  ipAddressPools: listOf(text),
  peers: listOf(text),
  ipAddressPoolSelectors: listOf(selector),
  nodeSelectors: listOf(selector),
})

/** MetalLB's definitions, as far as fields, types, required fields and defaults go. */
export const metallbDefinitions: readonly Json[] = [
  definition('IPAddressPool', 'ipaddresspools', [version('v1beta1', pool)]),
  definition('BGPPeer', 'bgppeers', [version('v1beta1', oldPeer, false), version('v1beta2', newPeer)]),
  definition('BGPAdvertisement', 'bgpadvertisements', [version('v1beta1', advertisement)]),
]

function version(name: string, spec: Json, storage = true): Json {
  const properties = { apiVersion: text, kind: text, metadata: { type: 'object' }, spec, status: { type: 'object' } }
  const schema = { openAPIV3Schema: object(properties, ['spec']) }
  return { name, served: true, storage, schema, subresources: { status: {} } }
}

function definition(kind: string, plural: string, versions: Json[]): Json {
  const names = { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.metallb.io` },
    spec: { group: 'metallb.io', scope: 'Namespaced', names, versions },
  }
}
