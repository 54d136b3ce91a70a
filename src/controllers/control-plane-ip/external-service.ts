import { isDeepStrictEqual } from 'node:util'
import type { Call } from '../../call.ts'
import type { KubernetesApi, Patch } from '../../kubernetes/api.ts'
import { ENDPOINT_SLICES, ENDPOINTS, type KubeEndpointSlice, type Resource } from '../../kubernetes/resources.ts'
import { SERVICE_NAME, WHOLE_SERVICES, type WholeService } from './control-plane.ts'

/** Kept under the replaced controller's name, so that either can go on where the other stopped. */
const FIELD_MANAGER = 'cloud-provider-cherry-auto'
export const EXTERNAL = { namespace: 'kube-system', name: 'cloud-provider-cherry-kubernetes-external' } as const
/** MetalLB must not take the address for one of its own. */
const NOT_METALLBS = {
  'metallb.universe.tf/address-pool': 'disabled-metallb-do-not-use-any-address-pool',
} as const

export interface ExternalFacts {
  /** The floating address. */
  ip: string
  /** Port at the address, and port of the API servers. */
  port: number
  targetPort: number
  /** Of default/kubernetes. */
  slices: readonly KubeEndpointSlice[]
}

/** One step towards it, bound to nothing: the objects are ours, by their names. */
export interface ExternalChange {
  kind: string
  summary: string
  make(kubernetes: KubernetesApi, call: Call): Promise<unknown>
}

/**
 * Makes every node take traffic for the floating address and spread it over all API servers, whoever has the address. `Proxy` keeps
 * clients inside from reaching it by a short cut.
 */
export async function syncExternalService(kubernetes: KubernetesApi, facts: ExternalFacts, call: Call): Promise<void> {
  for (const { make } of await planExternalService(kubernetes, facts, call)) await make(kubernetes, call)
}

/** What is missing of the Service and its slices. Only reads. */
export async function planExternalService(
  kubernetes: KubernetesApi,
  facts: ExternalFacts,
  call: Call,
): Promise<ExternalChange[]> {
  const { namespace, name } = EXTERNAL
  const labelSelector = `${SERVICE_NAME}=${name},${MANAGED_BY}=${MANAGER}`
  const [service, { items: slices }, endpoints] = await Promise.all([
    kubernetes.get(WHOLE_SERVICES, EXTERNAL, call),
    kubernetes.list(ENDPOINT_SLICES, { namespace, labelSelector }, call),
    kubernetes.get(ENDPOINTS, EXTERNAL, call),
  ])
  const wanted = slicesOf(facts.slices)
  return [
    ...planService(service, facts),
    ...planSlices(slices, wanted),
    // Kubernetes would make slices of the replaced controller's Endpoints, beside ours.
    ...(endpoints && wanted.length > 0 ? [deletion(ENDPOINTS, name)] : []),
  ]
}

function planService(present: WholeService | undefined, facts: ExternalFacts): ExternalChange[] {
  const { namespace, name } = EXTERNAL
  const { ip, port, targetPort } = facts
  const ingress = [{ ip, ipMode: 'Proxy' }]
  const changes: ExternalChange[] = []
  const write = (kind: string, summary: string, patch: Patch) =>
    changes.push({
      kind,
      summary,
      make: (kubernetes, call) =>
        kubernetes.patch(WHOLE_SERVICES, EXTERNAL, patch, call, { fieldManager: FIELD_MANAGER }),
    })
  if (present && hasForeign(present, facts)) {
    const { ports } = serviceOf(facts).spec
    const body = { metadata: { uid: present.metadata.uid }, spec: { ports, selector: null } }
    write('take-foreign', `take ports and selector of others off Service ${namespace}/${name}`, { type: 'merge', body })
  }
  if (!present || !sameService(present, facts)) {
    const verb = present ? 'change' : 'create'
    const summary = `${verb} Service ${namespace}/${name}: ${ip}:${port} leads to port ${targetPort} of the API servers`
    write(`${verb}-service`, summary, { type: 'apply', body: serviceOf(facts) })
  }
  if (!isDeepStrictEqual(present?.status?.loadBalancer?.ingress, ingress)) {
    const body = { metadata: EXTERNAL, status: { loadBalancer: { ingress } } }
    const summary = `list ${ip} in the status of Service ${namespace}/${name}`
    write('set-status', summary, { type: 'apply', subresource: 'status', body })
  }
  return changes
}

export function serviceOf({ ip, port, targetPort }: ExternalFacts) {
  return {
    metadata: { ...EXTERNAL, annotations: NOT_METALLBS },
    spec: { type: 'LoadBalancer', loadBalancerIP: ip, ports: [{ name: 'https', port, protocol: 'TCP', targetPort }] },
  }
}

function sameService({ metadata, spec }: WholeService, facts: ExternalFacts): boolean {
  const { spec: wanted } = serviceOf(facts)
  const ports = (spec.ports ?? []).map(({ name, port, protocol, targetPort }) => ({ name, port, protocol, targetPort }))
  return (
    Object.entries(NOT_METALLBS).every(([key, value]) => metadata.annotations?.[key] === value) &&
    spec.type === wanted.type &&
    spec.loadBalancerIP === wanted.loadBalancerIP &&
    Object.keys(spec.selector ?? {}).length === 0 &&
    isDeepStrictEqual(ports, wanted.ports)
  )
}

/** An apply only adds to what somebody else has set, and two ports can't have one name. */
function hasForeign({ spec }: WholeService, { port: own }: ExternalFacts): boolean {
  const foreign = spec.ports?.some(({ port, protocol }) => port !== own || protocol !== 'TCP')
  return foreign === true || Object.keys(spec.selector ?? {}).length > 0
}

interface WantedSlice {
  name: string
  addressType: string
  endpoints: KubeEndpointSlice['endpoints']
  ports: KubeEndpointSlice['ports']
}

/** The endpoints of default/kubernetes again, one slice for each family. */
export function slicesOf(slices: readonly KubeEndpointSlice[]): WantedSlice[] {
  return [...new Set(slices.map(({ addressType }) => addressType))].sort().map((addressType) => {
    const ofType = slices.filter((slice) => slice.addressType === addressType)
    return {
      name: addressType === 'IPv4' ? EXTERNAL.name : `${EXTERNAL.name}-${addressType.toLowerCase()}`,
      addressType,
      endpoints: ofType
        .flatMap(({ endpoints }) => endpoints ?? [])
        .map(({ addresses, conditions, nodeName }) => ({
          addresses,
          conditions: { ready: conditions?.ready !== false },
          ...(nodeName === undefined ? {} : { nodeName }),
        }))
        .sort((a, b) => ((a.addresses[0] ?? '') < (b.addresses[0] ?? '') ? -1 : 1)),
      ports: ofType[0]?.ports ?? [],
    }
  })
}

function planSlices(present: readonly KubeEndpointSlice[], wanted: readonly WantedSlice[]): ExternalChange[] {
  const { namespace, name: service } = EXTERNAL
  const changes: ExternalChange[] = []
  for (const { name, ...rest } of wanted) {
    const { addressType, endpoints, ports } = rest
    const old = present.find(({ metadata }) => metadata.name === name)
    const same =
      old?.addressType === addressType && isDeepStrictEqual([old.endpoints ?? [], old.ports ?? []], [endpoints, ports])
    if (same) continue
    const metadata = { namespace, name, labels: { [SERVICE_NAME]: service, [MANAGED_BY]: MANAGER } }
    const patch = { type: 'apply', body: { metadata, ...rest } } as const
    const verb = old ? 'change' : 'create'
    const leads = (endpoints ?? []).flatMap(({ addresses }) => addresses).join(', ') || 'no API server'
    changes.push({
      kind: `${verb}-endpointslice`,
      summary: `${verb} EndpointSlice ${namespace}/${name}: it leads to ${leads}`,
      make: (kubernetes, call) =>
        kubernetes.patch(ENDPOINT_SLICES, { namespace, name }, patch, call, { fieldManager: FIELD_MANAGER }),
    })
  }
  for (const { metadata } of present)
    if (!wanted.some(({ name }) => name === metadata.name)) changes.push(deletion(ENDPOINT_SLICES, metadata.name))
  return changes
}

const deletion = (resource: Resource<unknown>, name: string): ExternalChange => ({
  kind: `delete-${resource.kind.toLowerCase()}`,
  summary: `delete ${resource.kind} ${EXTERNAL.namespace}/${name}`,
  make: (kubernetes, call) => kubernetes.delete(resource, { namespace: EXTERNAL.namespace, name }, call),
})

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
const MANAGER = 'windlass'
