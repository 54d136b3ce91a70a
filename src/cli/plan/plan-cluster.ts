import type { Call } from '../../call.ts'
import { nearest } from '../../config/nearest.ts'
import type { Cluster } from '../../controllers/cluster.ts'
import type { ApiServerTrust } from '../../controllers/control-plane-ip/health.ts'
import { readFreshNodes } from '../../controllers/nodes.ts'
import { permanent } from '../../errors.ts'
import { projectService } from '../../events/projection.ts'
import { subjectOf } from '../../events/subject.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import { CONTROL_PLANE_ADDRESS_SUBJECT, planControlPlaneAddress } from './control-plane-address.ts'
import { blank } from './item.ts'
import { planOneNode } from './nodes.ts'
import { planAllRoutes, ROUTES_SUBJECT } from './routes.ts'
import { concerns, planOneService } from './services.ts'
import type { ClusterPlan, PlanItem } from './types.ts'

const AT_A_TIME = 16

export interface PlannedCluster extends Cluster {
  /** Whom to believe to be its API server. */
  trust(): ApiServerTrust
}

/**
 * The plans of all controllers of a cluster that are on. Asks `cluster` for reads only.
 * @param subjects of these objects; all if empty
 */
export async function planCluster(
  cluster: PlannedCluster,
  subjects: readonly string[],
  call: Call,
): Promise<ClusterPlan> {
  const meant = (subject: string) => subjects.length === 0 || subjects.includes(subject)
  const nodes = (await readFreshNodes(cluster, call)).sort(byName)
  const servicesOn = cluster.framework.controllers.has('service-lb-controller')
  const services = servicesOn
    ? (await cluster.kubernetes.list(SERVICES, { project: projectService }, call)).items
        .filter((service) => concerns(service, cluster))
        .sort(byName)
    : []
  const all: { subject: string; plan: () => Promise<PlanItem> }[] = [
    ...nodes.map((node) => ({
      subject: subjectOf({ kind: 'Node', name: node.name }),
      plan: () => planOneNode(cluster, node, call),
    })),
    ...services.map((service) => ({
      subject: subjectOf({ kind: 'Service', ...service }),
      plan: () => planOneService(cluster, service, call),
    })),
  ]
  const work = all.filter(({ subject }) => meant(subject))
  /** What is off is told to whoever asks for it by name. */
  const single = async (subject: string, off: string, plan: () => Promise<PlanItem | undefined>) => {
    const item = meant(subject) ? await plan() : undefined
    return item ?? (subjects.includes(subject) ? { ...blank(subject), skipped: off } : undefined)
  }
  const routes = await single(ROUTES_SUBJECT, ROUTES_OFF, () => planAllRoutes(cluster, nodes, call))
  const address = await single(CONTROL_PLANE_ADDRESS_SUBJECT, ADDRESS_OFF, () => planControlPlaneAddress(cluster, call))
  const known = new Set([...all.map(({ subject }) => subject), ROUTES_SUBJECT, CONTROL_PLANE_ADDRESS_SUBJECT])
  const unknown = subjects.filter((subject) => !known.has(subject))
  const off = unknown.filter((subject) => subject.startsWith('Service/') && !servicesOn)
  const missing = unknown.filter((subject) => !off.includes(subject))
  if (missing.length > 0) {
    const similar = missing.flatMap((subject) => meantBy(subject, known) ?? [])
    const toDo =
      similar.length > 0
        ? `Did you mean ${similar.join(', ')}?`
        : `Write for example Node/worker-1, Service/default/web or ${ROUTES_SUBJECT}`
    throw permanent(
      `Cluster ${cluster.id} has no ${missing.join(', ')} that a cloud controller has to do with. ${toDo}`,
    )
  }
  const items: PlanItem[] = []
  for (let i = 0; i < work.length; i += AT_A_TIME)
    items.push(...(await Promise.all(work.slice(i, i + AT_A_TIME).map(({ plan }) => plan()))))
  items.push(...off.map((subject) => ({ ...blank(subject), skipped: SERVICES_OFF })))
  return { cluster: cluster.id, items: [...items, ...(routes ? [routes] : []), ...(address ? [address] : [])] }
}

/** What was meant by a subject that is there but for its case, its plural, or a slip. */
function meantBy(subject: string, known: ReadonlySet<string>): string | undefined {
  const plain = (text: string) =>
    text
      .toLowerCase()
      .replace(/^(?:nodes|no)\//, 'node/')
      .replace(/^(?:services|svc)\//, 'service/')
  return [...known].find((one) => plain(one) === plain(subject)) ?? nearest(subject, known, 2)
}

const SERVICES_OFF = 'the Service controller is off: --controllers leaves out service-lb-controller'
const ROUTES_OFF =
  'pod routes are off: they need HCLOUD_NETWORK and --cluster-cidr, and neither HCLOUD_NETWORK_ROUTES_ENABLED nor --configure-cloud-routes as false'
const ADDRESS_OFF = "no floating IP is the control plane's: that needs CHERRY_FIP_TAG"

type Named = { namespace?: string; name: string }

const byName = (a: Named, b: Named) =>
  `${a.namespace ?? ''}/${a.name}`.localeCompare(`${b.namespace ?? ''}/${b.name}`, 'en', { numeric: true })
