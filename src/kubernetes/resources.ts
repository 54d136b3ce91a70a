import type { KubeNode, KubeObject, KubeService, ObjectMeta } from './objects.ts'

/** Where the API keeps the objects of one kind. `T` is their shape and exists only for the compiler. */
export interface Resource<T = KubeObject> {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  readonly shape?: T
}

/** One object of a resource. `namespace` is left out for kinds of the cluster. */
export interface ObjectName {
  namespace?: string
  name: string
}

export interface KubeEvent {
  metadata: ObjectMeta & { namespace: string }
  involvedObject: { kind: string; namespace?: string; name: string; uid?: string; apiVersion?: string }
  type: string
  reason: string
  message: string
  source?: { component?: string }
  reportingComponent?: string
  count?: number
  firstTimestamp?: string | null
  lastTimestamp?: string | null
}

export interface KubeLease {
  metadata: ObjectMeta & { namespace: string }
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}

export interface KubeEndpointSlice {
  metadata: ObjectMeta & { namespace: string }
  addressType: string
  endpoints?: { addresses: string[]; conditions?: { ready?: boolean; serving?: boolean }; nodeName?: string }[] | null
  ports?: { name?: string; protocol?: string; port?: number }[] | null
}

export interface KubeEndpoints {
  metadata: ObjectMeta & { namespace: string }
  subsets?: {
    addresses?: { ip: string; nodeName?: string }[]
    ports?: { name?: string; port: number; protocol?: string }[]
  }[]
}

export interface KubeSecret {
  metadata: ObjectMeta & { namespace: string }
  type?: string
  /** Values in base64. */
  data?: Record<string, string>
}

export const NODES: Resource<KubeNode> = core('Node', 'nodes', false)
export const NAMESPACES: Resource<KubeObject> = core('Namespace', 'namespaces', false)
export const SERVICES: Resource<KubeService> = core('Service', 'services', true)
export const EVENTS: Resource<KubeEvent> = core('Event', 'events', true)
export const ENDPOINTS: Resource<KubeEndpoints> = core('Endpoints', 'endpoints', true)
export const SECRETS: Resource<KubeSecret> = core('Secret', 'secrets', true)
export const LEASES: Resource<KubeLease> = custom('coordination.k8s.io', 'v1', 'Lease', 'leases', true)
export const ENDPOINT_SLICES: Resource<KubeEndpointSlice> = custom(
  'discovery.k8s.io',
  'v1',
  'EndpointSlice',
  'endpointslices',
  true,
)

/** A resource of any group, custom ones included. */
export function custom<T = KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  namespaced: boolean,
): Resource<T> {
  return { group, version, kind, plural, namespaced }
}

/** `v1`, `coordination.k8s.io/v1`. */
export function apiVersionOf({ group, version }: Resource<unknown>): string {
  return group === '' ? version : `${group}/${version}`
}

/** URL path of a collection, or of one object in it. Without a namespace, a namespaced collection spans all of them. */
export function resourcePath(
  resource: Resource<unknown>,
  at: { namespace?: string; name?: string; subresource?: string } = {},
): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  const namespace =
    resource.namespaced && at.namespace !== undefined ? `/namespaces/${encodeURIComponent(at.namespace)}` : ''
  const name = at.name === undefined ? '' : `/${encodeURIComponent(at.name)}`
  const subresource = at.subresource === undefined ? '' : `/${at.subresource}`
  return `${root}${namespace}/${resource.plural}${name}${subresource}`
}

/** `Service default/web`, for messages. */
export function describe(resource: Resource<unknown>, { namespace, name }: ObjectName): string {
  return `${resource.kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}

function core<T>(kind: string, plural: string, namespaced: boolean): Resource<T> {
  return custom('', 'v1', kind, plural, namespaced)
}
