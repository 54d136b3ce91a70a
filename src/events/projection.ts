import { createHash } from 'node:crypto'
import type { KubeNode, KubeService, NodeAddress, ServicePort, Taint } from '../kubernetes/objects.ts'

/** The part of a Node that a cloud controller looks at. Everything else (heartbeats, images, capacity) never leaves the cluster. */
export interface NodeProjection {
  name: string
  uid: string
  resourceVersion: string
  creationTimestamp: string
  deleting: boolean
  labels: Record<string, string>
  /** `alpha.kubernetes.io/provided-node-ip`, as kubelet wrote it. */
  providedNodeIp?: string
  /** Those that a cloud looks at, if there are any. */
  annotations?: Record<string, string>
  providerId?: string
  podCidrs: string[]
  taints: Taint[]
  addresses: NodeAddress[]
  /** Status of the condition `Ready`; a missing condition counts as Unknown. */
  ready: 'True' | 'False' | 'Unknown'
  /** Status and reason of the condition `NetworkUnavailable`, if there is one. */
  networkUnavailable?: { status: string; reason?: string }
}

export interface LoadBalancerIngress {
  ip?: string
  hostname?: string
  ipMode?: string
}

/** The part of a Service that a cloud controller looks at. */
export interface ServiceProjection {
  namespace: string
  name: string
  uid: string
  resourceVersion: string
  creationTimestamp: string
  deleting: boolean
  annotations: Record<string, string>
  finalizers: string[]
  type: string
  loadBalancerClass?: string
  ports: ServicePort[]
  externalTrafficPolicy?: string
  healthCheckNodePort?: number
  sessionAffinity?: string
  ipFamilies: string[]
  loadBalancerIp?: string
  loadBalancerSourceRanges: string[]
  externalIps: string[]
  ingress: LoadBalancerIngress[]
}

export const PROVIDED_NODE_IP = 'alpha.kubernetes.io/provided-node-ip'
/** The address that a machine at Hetzner really uses, of the many that are its own. */
export const EXTERNAL_IPV6 = 'instance.hetzner.cloud/external-ipv6'
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

export function projectNode(node: KubeNode): NodeProjection {
  const { metadata, spec = {}, status = {} } = node
  const condition = (type: string) => status.conditions?.find((one) => one.type === type)
  const ready = condition('Ready')?.status
  const network = condition('NetworkUnavailable')
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    creationTimestamp: metadata.creationTimestamp,
    deleting: metadata.deletionTimestamp !== undefined,
    labels: metadata.labels ?? {},
    ...optional('providedNodeIp', metadata.annotations?.[PROVIDED_NODE_IP]),
    ...optional('annotations', cloudAnnotations(metadata.annotations)),
    ...optional('providerId', spec.providerID || undefined),
    podCidrs: spec.podCIDRs ?? (spec.podCIDR ? [spec.podCIDR] : []),
    // In full, since the list is written as a whole.
    taints: (spec.taints ?? []).map(({ key, value, effect, timeAdded }) => ({
      key,
      ...optional('value', value),
      effect,
      ...optional('timeAdded', timeAdded),
    })),
    addresses: status.addresses ?? [],
    ready: ready === 'True' || ready === 'False' ? ready : 'Unknown',
    ...optional('networkUnavailable', network && { status: network.status, ...optional('reason', network.reason) }),
  }
}

function cloudAnnotations(annotations: Record<string, string> = {}): Record<string, string> | undefined {
  const text = annotations[EXTERNAL_IPV6]
  return text === undefined ? undefined : { [EXTERNAL_IPV6]: text }
}

export function projectService(service: KubeService): ServiceProjection {
  const { metadata, spec, status = {} } = service
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations ?? {}
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    creationTimestamp: metadata.creationTimestamp,
    deleting: metadata.deletionTimestamp !== undefined,
    annotations,
    finalizers: metadata.finalizers ?? [],
    type: spec.type ?? 'ClusterIP',
    ...optional('loadBalancerClass', spec.loadBalancerClass),
    ports: (spec.ports ?? []).map(({ name, protocol, port, nodePort, appProtocol }) => ({
      ...optional('name', name),
      ...optional('protocol', protocol),
      port,
      ...optional('nodePort', nodePort),
      ...optional('appProtocol', appProtocol),
    })),
    ...optional('externalTrafficPolicy', spec.externalTrafficPolicy),
    ...optional('healthCheckNodePort', spec.healthCheckNodePort),
    ...optional('sessionAffinity', spec.sessionAffinity),
    ipFamilies: spec.ipFamilies ?? [],
    ...optional('loadBalancerIp', spec.loadBalancerIP || undefined),
    loadBalancerSourceRanges: spec.loadBalancerSourceRanges ?? [],
    externalIps: spec.externalIPs ?? [],
    ingress: (status.loadBalancer?.ingress ?? []).map(({ ip, hostname, ipMode }) => ({
      ...optional('ip', ip),
      ...optional('hostname', hostname),
      ...optional('ipMode', ipMode),
    })),
  }
}

/**
 * Equal for two versions of an object that a cloud controller can't tell apart: the version itself is left out. Of values in a fixed order, so
 * that it does not depend on how an object was put together.
 */
export function fingerprint(projection: NodeProjection | ServiceProjection): string {
  const seen = 'type' in projection ? valuesOfService(projection) : valuesOfNode(projection)
  return createHash('sha256').update(JSON.stringify(seen)).digest('base64url')
}

function valuesOfNode(node: NodeProjection): unknown[] {
  return [
    'Node',
    node.name,
    node.uid,
    node.creationTimestamp,
    node.deleting,
    sorted(node.labels),
    node.providedNodeIp,
    node.providerId,
    node.podCidrs,
    node.taints.map(({ key, value, effect }) => [key, value, effect]),
    node.addresses.map(({ type, address }) => [type, address]),
    node.ready,
    node.networkUnavailable && [node.networkUnavailable.status, node.networkUnavailable.reason],
    ...(node.annotations ? [sorted(node.annotations)] : []),
  ]
}

function valuesOfService(service: ServiceProjection): unknown[] {
  return [
    'Service',
    service.namespace,
    service.name,
    service.uid,
    service.creationTimestamp,
    service.deleting,
    sorted(service.annotations),
    service.finalizers,
    service.type,
    service.loadBalancerClass,
    service.ports.map(({ name, protocol, port, nodePort, appProtocol }) => [
      name,
      protocol,
      port,
      nodePort,
      appProtocol,
    ]),
    service.externalTrafficPolicy,
    service.healthCheckNodePort,
    service.sessionAffinity,
    service.ipFamilies,
    service.loadBalancerIp,
    service.loadBalancerSourceRanges,
    service.externalIps,
    service.ingress.map(({ ip, hostname, ipMode }) => [ip, hostname, ipMode]),
  ]
}

function sorted(map: Record<string, string>): [string, string][] {
  return Object.entries(map).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V })
}
