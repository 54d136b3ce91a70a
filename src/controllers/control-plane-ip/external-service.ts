import { isDeepStrictEqual } from 'node:util'
import type { Call } from '../../call.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import { ENDPOINT_SLICES, ENDPOINTS, type KubeEndpointSlice } from '../../kubernetes/resources.ts'
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

/**
 * Makes every node take traffic for the floating address and spread it over all API servers, whoever has the address. `Proxy` keeps
 * clients inside from reaching it by a short cut.
 */
export async function syncExternalService(kubernetes: KubernetesApi, facts: ExternalFacts, call: Call): Promise<void> {
  const present = await kubernetes.get(WHOLE_SERVICES, EXTERNAL, call)
  const ours = { fieldManager: FIELD_MANAGER }
  if (!present || !sameService(present, facts))
    await kubernetes.patch(WHOLE_SERVICES, EXTERNAL, { type: 'apply', body: serviceOf(facts) }, call, ours)
  const ingress = [{ ip: facts.ip, ipMode: 'Proxy' }]
  if (!isDeepStrictEqual(present?.status?.loadBalancer?.ingress, ingress)) {
    const body = { metadata: EXTERNAL, status: { loadBalancer: { ingress } } }
    await kubernetes.patch(WHOLE_SERVICES, EXTERNAL, { type: 'apply', subresource: 'status', body }, call, ours)
  }
  await syncSlices(kubernetes, slicesOf(facts.slices), call)
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
    isDeepStrictEqual(ports, wanted.ports)
  )
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

async function syncSlices(kubernetes: KubernetesApi, wanted: readonly WantedSlice[], call: Call): Promise<void> {
  const { namespace, name: service } = EXTERNAL
  const labelSelector = `${SERVICE_NAME}=${service},${MANAGED_BY}=${MANAGER}`
  const { items: present } = await kubernetes.list(ENDPOINT_SLICES, { namespace, labelSelector }, call)
  for (const slice of wanted) {
    const same = present.some(
      ({ metadata, addressType, endpoints, ports }) =>
        metadata.name === slice.name &&
        addressType === slice.addressType &&
        isDeepStrictEqual([endpoints ?? [], ports ?? []], [slice.endpoints, slice.ports]),
    )
    if (same) continue
    const { name, ...rest } = slice
    const metadata = { namespace, name, labels: { [SERVICE_NAME]: service, [MANAGED_BY]: MANAGER } }
    const patch = { type: 'apply', body: { metadata, ...rest } } as const
    await kubernetes.patch(ENDPOINT_SLICES, { namespace, name }, patch, call, { fieldManager: FIELD_MANAGER })
  }
  for (const { metadata } of present)
    if (!wanted.some(({ name }) => name === metadata.name))
      await kubernetes.delete(ENDPOINT_SLICES, { namespace, name: metadata.name }, call)
  // Kubernetes would make slices of the replaced controller's Endpoints, beside ours.
  const old = await kubernetes.get(ENDPOINTS, EXTERNAL, call)
  if (old && wanted.length > 0) await kubernetes.delete(ENDPOINTS, EXTERNAL, call)
}

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
const MANAGER = 'windlass'
