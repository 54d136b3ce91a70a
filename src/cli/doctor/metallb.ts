import type { Call } from '../../call.ts'
import { metallbQueries, POOL } from '../../cloud/cherry/load-balancers/metallb-kinds.ts'
import type { ObjectKind } from '../../cloud/provider.ts'
import { messageOf, WindlassError } from '../../errors.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import type { KubeObject } from '../../kubernetes/objects.ts'
import { apiVersionOf, type Resource } from '../../kubernetes/resources.ts'
import { looked, ok, problem, warning } from './finding.ts'
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
      if (!(await isServed(api, kind, { namespace, labelSelector }, call))) missing.push(kind)
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

/** Undecided, as without the right to list, it counts as there. */
async function isServed(
  api: KubernetesApi,
  kind: Resource<KubeObject>,
  at: { namespace: string; labelSelector?: string },
  call: Call,
): Promise<boolean> {
  try {
    await api.list(kind, at, call)
    return true
  } catch (error) {
    const { status } = error instanceof WindlassError ? error : {}
    if (status === 404) return false
    if (status === 403) return true
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
