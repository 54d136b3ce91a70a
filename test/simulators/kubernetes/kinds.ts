import { isIP } from 'node:net'
import { isObject, type Json, type JsonObject } from './json.ts'
import type { Cause } from './refusal.ts'
import type { MergeSchema } from './strategic-merge.ts'

/** One kind that the simulator serves, with what the API server does to its objects. */
export interface Kind {
  group: string
  version: string
  plural: string
  kind: string
  namespaced: boolean
  /** Has a `status` subresource. */
  status?: boolean
  /** Without one, strategic merge is refused with 415, as for custom resources. */
  mergeSchema?: MergeSchema
  /** Field names, as `a.b`, that a field selector may name beside metadata.name and metadata.namespace. */
  selectable?: string[]
  /** PUT needs a resourceVersion. */
  conditionalUpdate?: boolean
  /** Fills in what the API server fills in. `old` is absent on create. */
  complete?(object: JsonObject, old: JsonObject | undefined, allocate: Allocator): void
  /** `part` is what the write may change: of a status nothing of the spec is looked at, and the other way round. */
  validate?(object: JsonObject, old: JsonObject | undefined, part: 'spec' | 'status'): Cause[]
}

export interface Allocator {
  nodePort(wanted: number | undefined, own: ReadonlySet<number>): number | undefined
  clusterIp(): string
}

const META: MergeSchema = {
  metadata: { fields: { finalizers: { merge: {} }, ownerReferences: { merge: { key: 'uid' } } } },
}
const CONDITIONS = { merge: { key: 'type' } }

export const KINDS: Kind[] = [
  {
    ...core('Node', 'nodes', false),
    status: true,
    mergeSchema: {
      ...META,
      spec: { fields: { podCIDRs: { merge: {} } } },
      status: { fields: { conditions: CONDITIONS, addresses: { merge: { key: 'type' } } } },
    },
    selectable: ['spec.unschedulable'],
    validate: validateNode,
  },
  {
    ...core('Namespace', 'namespaces', false),
    status: true,
    mergeSchema: { ...META, status: { fields: { conditions: CONDITIONS } } },
    selectable: ['status.phase'],
    complete: (namespace, old) => {
      if (!old) namespace.status = { phase: 'Active' }
    },
  },
  {
    ...core('Service', 'services', true),
    status: true,
    mergeSchema: {
      ...META,
      spec: { fields: { ports: { merge: { key: 'port' } } } },
      status: { fields: { conditions: CONDITIONS } },
    },
    selectable: ['spec.clusterIP', 'spec.type'],
    complete: completeService,
    validate: validateService,
  },
  {
    ...core('Event', 'events', true),
    mergeSchema: META,
    selectable: [
      'involvedObject.kind',
      'involvedObject.namespace',
      'involvedObject.name',
      'involvedObject.uid',
      'reason',
      'type',
    ],
    validate: validateEvent,
  },
  { ...core('Endpoints', 'endpoints', true), mergeSchema: META },
  { ...core('Secret', 'secrets', true), mergeSchema: META, selectable: ['type'] },
  { ...core('ConfigMap', 'configmaps', true), mergeSchema: META },
  {
    group: 'coordination.k8s.io',
    version: 'v1',
    plural: 'leases',
    kind: 'Lease',
    namespaced: true,
    mergeSchema: META,
    conditionalUpdate: true,
  },
  {
    group: 'discovery.k8s.io',
    version: 'v1',
    plural: 'endpointslices',
    kind: 'EndpointSlice',
    namespaced: true,
    mergeSchema: META,
  },
]

export function apiVersionOf({ group, version }: Kind): string {
  return group === '' ? version : `${group}/${version}`
}

function core(kind: string, plural: string, namespaced: boolean) {
  return { group: '', version: 'v1', kind, plural, namespaced }
}

function validateNode(node: JsonObject, old: JsonObject | undefined): Cause[] {
  const causes: Cause[] = []
  const providerId = at(node, 'spec', 'providerID') ?? ''
  const before = at(old, 'spec', 'providerID') ?? ''
  if (before !== '' && providerId !== before)
    causes.push(forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'))
  const cidrs = at(old, 'spec', 'podCIDRs')
  if (
    Array.isArray(cidrs) &&
    cidrs.length > 0 &&
    JSON.stringify(cidrs) !== JSON.stringify(at(node, 'spec', 'podCIDRs'))
  )
    causes.push(forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'))
  const taints = new Set<string>()
  for (const [i, taint] of items(at(node, 'spec', 'taints')).entries()) {
    const field = `metadata.taints[${i}]`
    const { key, effect } = taint
    if (typeof key !== 'string' || key === '') causes.push(required(`${field}.key`, ''))
    if (!['NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(String(effect)))
      causes.push(unsupported(`${field}.effect`, effect, ['NoSchedule', 'PreferNoSchedule', 'NoExecute']))
    const identity = `${key}:${effect}`
    if (taints.has(identity)) causes.push(duplicate(field, taint, 'taints must be unique by key and effect pair'))
    taints.add(identity)
  }
  const addresses = new Set<string>()
  for (const [i, address] of items(at(node, 'status', 'addresses')).entries()) {
    const identity = `${address.type} ${address.address}`
    if (addresses.has(identity)) causes.push(duplicate(`status.addresses[${i}]`, address))
    addresses.add(identity)
  }
  return causes
}

const hasNodePorts = (type: Json | undefined) => type === 'NodePort' || type === 'LoadBalancer'

function completeService(service: JsonObject, old: JsonObject | undefined, allocate: Allocator): void {
  if (!old) service.status = { loadBalancer: {} }
  const spec = isObject(service.spec) ? service.spec : {}
  service.spec = spec
  spec.type ??= 'ClusterIP'
  spec.sessionAffinity ??= 'None'
  spec.internalTrafficPolicy ??= 'Cluster'
  if (spec.type !== 'ExternalName') {
    spec.clusterIP ??= at(old, 'spec', 'clusterIP') ?? allocate.clusterIp()
    spec.clusterIPs ??= [spec.clusterIP]
    spec.ipFamilies ??= ['IPv4']
    spec.ipFamilyPolicy ??= 'SingleStack'
  }
  const external = hasNodePorts(spec.type)
  if (external) spec.externalTrafficPolicy ??= 'Cluster'
  else delete spec.externalTrafficPolicy
  if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true
  else {
    delete spec.allocateLoadBalancerNodePorts
    delete spec.loadBalancerClass
  }
  const before = new Map(
    items(at(old, 'spec', 'ports')).map((port) => [`${port.port}/${port.protocol}`, port.nodePort]),
  )
  const own = new Set<number>()
  for (const port of before.values()) if (typeof port === 'number') own.add(port)
  const healthBefore = at(old, 'spec', 'healthCheckNodePort')
  if (typeof healthBefore === 'number') own.add(healthBefore)
  for (const port of items(spec.ports)) {
    port.protocol ??= 'TCP'
    port.targetPort ??= port.port as Json
    if (!external) delete port.nodePort
    else if (spec.type !== 'LoadBalancer' || spec.allocateLoadBalancerNodePorts !== false || port.nodePort) {
      const wanted = port.nodePort || before.get(`${port.port}/${port.protocol}`)
      const allotted = allocate.nodePort(typeof wanted === 'number' ? wanted : undefined, own)
      if (allotted !== undefined) port.nodePort = allotted
    }
  }
  if (spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local') {
    const wanted = spec.healthCheckNodePort ?? healthBefore
    const allotted = allocate.nodePort(typeof wanted === 'number' ? wanted : undefined, own)
    if (allotted !== undefined) spec.healthCheckNodePort = allotted
  } else delete spec.healthCheckNodePort
  if (spec.type !== 'LoadBalancer' && at(old, 'spec', 'type') === 'LoadBalancer' && isObject(service.status))
    service.status.loadBalancer = {}
  for (const entry of items(at(service, 'status', 'loadBalancer', 'ingress'))) if (entry.ip) entry.ipMode ??= 'VIP'
}

function validateService(service: JsonObject, old: JsonObject | undefined, part: 'spec' | 'status'): Cause[] {
  const type = at(service, 'spec', 'type')
  // A Service that is no load balancer any more keeps its ingress until someone takes it away.
  if (part === 'status') return validateIngress(items(at(service, 'status', 'loadBalancer', 'ingress')), type)
  const causes: Cause[] = []
  const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName']
  if (!types.includes(String(type))) causes.push(unsupported('spec.type', type, types))
  const ports = items(at(service, 'spec', 'ports'))
  if (ports.length === 0 && type !== 'ExternalName' && at(service, 'spec', 'clusterIP') !== 'None')
    causes.push(required('spec.ports', ''))
  for (const [i, port] of ports.entries()) {
    if (!(Number(port.port) >= 1 && Number(port.port) <= 65535))
      causes.push(invalidValue(`spec.ports[${i}].port`, port.port, 'must be between 1 and 65535, inclusive'))
    if (ports.length > 1 && !port.name) causes.push(required(`spec.ports[${i}].name`, ''))
  }
  const lbClass = at(service, 'spec', 'loadBalancerClass')
  const classBefore = at(old, 'spec', 'loadBalancerClass')
  if (old && type === 'LoadBalancer' && at(old, 'spec', 'type') === 'LoadBalancer' && lbClass !== classBefore)
    causes.push(invalidValue('spec.loadBalancerClass', lbClass, 'may not change once set'))
  return causes
}

function validateIngress(ingress: JsonObject[], type: Json | undefined): Cause[] {
  const field = 'status.loadBalancer.ingress'
  if (type !== 'LoadBalancer' && ingress.length > 0)
    return [forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")]
  const causes: Cause[] = []
  for (const [i, { ip, hostname, ipMode }] of ingress.entries()) {
    const entry = `${field}[${i}]`
    if (ip && isIP(String(ip)) === 0) causes.push(invalidValue(`${entry}.ip`, ip, 'must be a valid IP address'))
    if (ipMode !== undefined && !ip)
      causes.push(forbidden(`${entry}.ipMode`, 'may not be specified when `ip` is not set'))
    else if (ipMode !== undefined && ipMode !== 'VIP' && ipMode !== 'Proxy')
      causes.push(unsupported(`${entry}.ipMode`, ipMode, ['Proxy', 'VIP']))
    if (hostname && isIP(String(hostname)) !== 0)
      causes.push(invalidValue(`${entry}.hostname`, hostname, 'must be a DNS name, not an IP address'))
    else if (hostname && !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(String(hostname)))
      causes.push(
        invalidValue(`${entry}.hostname`, hostname, 'a lowercase RFC 1123 subdomain must consist of lower case'),
      )
  }
  return causes
}

function validateEvent(event: JsonObject): Cause[] {
  const of = at(event, 'involvedObject', 'namespace')
  const namespace = at(event, 'metadata', 'namespace')
  if (of === undefined || of === '')
    return namespace === 'default' || namespace === 'kube-system'
      ? []
      : [invalidValue('involvedObject.namespace', of ?? '', 'does not match event.namespace')]
  return of === namespace ? [] : [invalidValue('involvedObject.namespace', of, 'does not match event.namespace')]
}

/** The value below a path of fields. */
export function at(object: Json | undefined, ...path: string[]): Json | undefined {
  return path.reduce((value: Json | undefined, key) => (isObject(value) ? value[key] : undefined), object)
}

function items(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}

const show = (value: Json | undefined) => JSON.stringify(value ?? null)
const forbidden = (field: string, why: string): Cause => ({
  field,
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${why}`,
})
const required = (field: string, why: string): Cause => ({
  field,
  reason: 'FieldValueRequired',
  message: `Required value${why ? `: ${why}` : ''}`,
})
const duplicate = (field: string, value: Json, why = ''): Cause => ({
  field,
  reason: 'FieldValueDuplicate',
  message: `Duplicate value: ${show(value)}${why ? `: ${why}` : ''}`,
})
const invalidValue = (field: string, value: Json | undefined, why: string): Cause => ({
  field,
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${show(value)}: ${why}`,
})
const unsupported = (field: string, value: Json | undefined, known: string[]): Cause => ({
  field,
  reason: 'FieldValueNotSupported',
  message: `Unsupported value: ${show(value)}: supported values: ${known.map((one) => `"${one}"`).join(', ')}`,
})
