import type { Call } from '../../call.ts'
import { metallbQueries, OUR_LABELS, POOL } from '../../cloud/cherry/load-balancers/metallb-kinds.ts'
import type { ObjectKind } from '../../cloud/provider.ts'
import { messageOf, WindlassError } from '../../errors.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import type { KubeObject } from '../../kubernetes/objects.ts'
import { apiVersionOf, type Resource } from '../../kubernetes/resources.ts'
import { looked, ok, problem, some, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'metallb'

/**
 * Whether the cluster has MetalLB's kinds, and its namespace takes them. Rights are looked at with all others.
 * @param api whose dry runs are let through
 */
export async function checkMetallb(api: KubernetesApi, namespace: string, call: Call): Promise<Finding[]> {
  return await looked(AREA, 'See what was found about the cluster and the rights', async () => {
    const missing: ObjectKind[] = []
    for (const { kind, labelSelector } of metallbQueries(namespace))
      if (!(await objectsOf(api, kind, { namespace, labelSelector }, call))) missing.push(kind)
    if (missing.length > 0)
      return [
        problem(
          AREA,
          `The cluster does not have ${missing.map((kind) => `${kind.kind} (${apiVersionOf(kind)})`).join(', ')}: Services wait for MetalLB`,
          'Install MetalLB 0.13.2 or newer, or set CHERRY_LOAD_BALANCER to what announces addresses here',
        ),
      ]
    return [await checkNamespace(api, namespace, call)]
  })
}

/**
 * Objects of ours from before CHERRY_LOAD_BALANCER was changed: nothing keeps them, and MetalLB goes on with what they say.
 * @param namespace that of MetalLB, if it is what announces addresses
 */
export async function checkFormerMetallb(
  api: KubernetesApi,
  namespace: string | undefined,
  call: Call,
): Promise<Finding[]> {
  return await looked(AREA, 'See what was found about the cluster and the rights', async () => {
    const left: { kind: string; at: string; name: string }[] = []
    for (const { kind, labelSelector } of metallbQueries('')) {
      const objects = (await objectsOf(api, kind, { labelSelector }, call)) ?? []
      for (const { metadata } of objects)
        if (metadata.namespace !== namespace)
          left.push({ kind: kind.kind, at: metadata.namespace ?? '', name: metadata.name })
    }
    if (left.length === 0) return []
    const [label] = Object.entries(OUR_LABELS)
    return [
      warning(
        AREA,
        `MetalLB has objects from before CHERRY_LOAD_BALANCER was changed, and announces what they say: ${some(left.map(({ kind, at, name }) => `${kind} ${at}/${name}`))}`,
        `Once the Services are served as CHERRY_LOAD_BALANCER says now: delete the ipaddresspools, bgpadvertisements and bgppeers labelled ${label?.join('=')} in namespace ${[...new Set(left.map(({ at }) => at))].join(' and ')}`,
      ),
    ]
  })
}

/** Undefined for a kind that the cluster does not have. Without the right to list, none are seen. */
async function objectsOf(
  api: KubernetesApi,
  kind: Resource<KubeObject>,
  at: { namespace?: string; labelSelector?: string },
  call: Call,
): Promise<KubeObject[] | undefined> {
  try {
    return (await api.list(kind, at, call)).items
  } catch (error) {
    const { status } = error instanceof WindlassError ? error : {}
    if (status === 404) return undefined
    if (status === 403) return []
    throw error
  }
}

/** A worker need not be able to read namespaces: that this one is there is told by how a pool is taken that is not stored. */
async function checkNamespace(api: KubernetesApi, namespace: string, call: Call): Promise<Finding> {
  const metadata = { name: 'windlass-doctor', namespace }
  // Of a network that is kept for documentation.
  const spec = { addresses: ['192.0.2.1/32'], autoAssign: false }
  try {
    await api.create(POOL, { metadata, spec }, call, { dryRun: true })
  } catch (error) {
    const { status } = error instanceof WindlassError ? error : {}
    if (status === 404)
      return problem(
        AREA,
        `There is no namespace ${namespace}, in which CHERRY_LOAD_BALANCER asks for MetalLB's objects`,
        "Set CHERRY_LOAD_BALANCER to metallb:///<MetalLB's namespace>, or install MetalLB in this one",
      )
    return warning(
      AREA,
      `Whether namespace ${namespace} takes MetalLB's objects is not known: ${messageOf(error)}`,
      status === 403
        ? 'Grant the rights of k8s/base/cherry-rbac.yaml'
        : "Look at MetalLB's controller, which checks its objects",
    )
  }
  return ok(AREA, `MetalLB is installed, and namespace ${namespace} takes its objects`)
}
