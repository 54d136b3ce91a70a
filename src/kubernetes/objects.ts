/**
 * The objects of the Kubernetes API as they travel in JSON, cut down to what Windlass reads or writes.
 * The generated models of client-node are not used for this: they turn timestamps into `Date` and cost 90 MB to load.
 */
export interface ObjectMeta {
  name: string
  namespace?: string
  uid: string
  resourceVersion: string
  creationTimestamp: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  managedFields?: { manager?: string; operation?: string; time?: string; subresource?: string; fieldsV1?: unknown }[]
}

export interface Taint {
  key: string
  value?: string
  effect: string
  /** Of taints that evict: when, by whoever set it. */
  timeAdded?: string
}

export interface NodeAddress {
  type: string
  address: string
}

export interface NodeCondition {
  type: string
  status: string
  reason?: string
  message?: string
  lastHeartbeatTime?: string
  lastTransitionTime?: string
}

export interface KubeNode {
  metadata: ObjectMeta
  spec?: { providerID?: string; podCIDR?: string; podCIDRs?: string[]; taints?: Taint[]; unschedulable?: boolean }
  status?: { addresses?: NodeAddress[]; conditions?: NodeCondition[] }
}

export interface ServicePort {
  name?: string
  protocol?: string
  port: number
  nodePort?: number
  appProtocol?: string
}

export interface KubeService {
  metadata: ObjectMeta & { namespace: string }
  spec: {
    type?: string
    loadBalancerClass?: string
    ports?: ServicePort[]
    externalTrafficPolicy?: string
    healthCheckNodePort?: number
    sessionAffinity?: string
    ipFamilies?: string[]
    loadBalancerIP?: string
    loadBalancerSourceRanges?: string[]
    externalIPs?: string[]
  }
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string; ipMode?: string }[] } }
}

/** An object of any other kind. */
export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
  [field: string]: unknown
}
