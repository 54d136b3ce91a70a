import type { Call } from '../../call.ts'
import type { Announcement, Change, LoadBalancers } from '../../cloud/provider.ts'
import { differing, planAnnouncement } from '../../controllers/announcement/apply.ts'
import type { Cluster } from '../../controllers/cluster.ts'
import { elsewhereOf, isOfOthers, type Place, placeOf, placesOf } from '../../controllers/service/placement.ts'
import { isKeptOff, isLeftAlone, planDeletion, planWithNodes } from '../../controllers/service/planning.ts'
import { sameIngress } from '../../controllers/service/status.ts'
import { CLEANUP_FINALIZER, isOfOurClass, needsCleanup, wantsLoadBalancer } from '../../controllers/service/wants.ts'
import { messageOf, WindlassError } from '../../errors.ts'
import type { LoadBalancerIngress, ServiceProjection } from '../../events/projection.ts'
import { subjectOf } from '../../events/subject.ts'
import { READ_ONLY } from '../read-only.ts'
import { blank, faultsOf } from './item.ts'
import type { PlanItem, PlannedChange } from './types.ts'

/** A Service that a cloud controller has to do with, or that says it is a load balancer. */
export const concerns = (service: ServiceProjection, { placing }: Pick<Cluster, 'placing'>) =>
  service.type === 'LoadBalancer' || wantsLoadBalancer(service, placing) || needsCleanup(service, placing)

/** What the Service controller would do now. */
export async function planOneService(cluster: Cluster, service: ServiceProjection, call: Call): Promise<PlanItem> {
  const item = blank(subjectOf({ kind: 'Service', ...service }))
  const { placing } = cluster
  const places = placesOf(cluster)
  if (places.length === 0 && service.loadBalancerClass === undefined)
    return { ...item, skipped: 'no cloud of this cluster has load balancers, or they are off' }
  if (!isOfOurClass(service, placing))
    return { ...item, skipped: `its load balancer class ${service.loadBalancerClass} is somebody else's` }
  try {
    if (await isOfOthers(cluster, service, undefined, call))
      return { ...item, skipped: 'it has no load balancer class, and those are left to others' }
    const wanted = wantsLoadBalancer(service, placing) && !isKeptOff(cluster, service)
    const place = wanted ? await placeOf(cluster, service, undefined, call) : undefined
    if (isLeftAlone(cluster, place?.loadBalancers, service)) {
      if (!service.finalizers.includes(CLEANUP_FINALIZER)) return { ...item, skipped: 'it shall be left alone' }
      await planCleanup(cluster, places, service, item, call, false)
    } else if (place) {
      await planEnsure(cluster, place.loadBalancers, service, item, call)
      const elsewhere = elsewhereOf(cluster, place, service, undefined)
      for (const one of places) if (elsewhere.includes(one.cloud)) await planLeaving(cluster, one, service, item, call)
    } else if (needsCleanup(service, placing)) await planCleanup(cluster, places, service, item, call)
    else item.skipped = 'it is being deleted, and nothing of ours is on it'
  } catch (error) {
    item.faults.push(...faultsOf(error))
  }
  return item
}

async function planEnsure(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceProjection,
  item: PlanItem,
  call: Call,
): Promise<void> {
  if (!service.finalizers.includes(CLEANUP_FINALIZER))
    item.changes.push(kubernetes('add-finalizer', `add finalizer ${CLEANUP_FINALIZER}`))
  const { plan, nodes } = await planWithNodes(cluster, loadBalancers, service, call)
  item.changes.push(...plan.changes.map(atCloud))
  item.notes.push(...plan.notes)
  if (nodes.length === 0)
    item.notes.push({
      type: 'Warning',
      reason: 'UnAvailableLoadBalancer',
      message: 'There are no nodes that may be targets',
    })
  if (plan.changes.length > 0) {
    item.faults.push(...(plan.faults ?? []).flatMap(faultsOf))
    if (plan.announcement) await planAnnounced(cluster, plan.announcement, item, call)
    planAnnotations(service, plan.announcement, item)
    if (plan.ingress) planStatus(service, plan.ingress, item)
    else item.changes.push(kubernetes('set-status', 'list the addresses of the load balancer in its status'))
    return
  }
  // With nothing to change it is a read, and says what the status has to list.
  try {
    const { ingress, notes, faults, announcement, superseded } = await loadBalancers.apply(plan, call)
    item.notes.push(...notes.filter((note) => !item.notes.some(({ message }) => message === note.message)))
    item.faults.push(...faults.flatMap(faultsOf))
    if (announcement) await planAnnounced(cluster, announcement, item, call)
    planAnnotations(service, announcement, item)
    planStatus(service, ingress, item)
    const left = await superseded?.(call)
    item.notes.push(...(left?.notes ?? []))
    item.changes.push(...(left?.changes ?? []).map(atCloud))
  } catch (error) {
    // The cloud changed between the two looks.
    if (!(error instanceof WindlassError && error.code === READ_ONLY)) throw error
    item.changes.push({ at: 'cloud', kind: 'follow', summary: error.message })
  }
}

/** What it had at another cloud goes once it is served here; that cloud's trouble is none of this one's. */
async function planLeaving(
  cluster: Cluster,
  { cloud, loadBalancers }: Place,
  service: ServiceProjection,
  item: PlanItem,
  call: Call,
): Promise<void> {
  try {
    await planDeletionAt(cluster, loadBalancers, service, item, call)
  } catch (error) {
    const message = `Whether it has something at ${cloud} that would be deleted could not be told: ${messageOf(error)}`
    item.notes.push({ type: 'Warning', reason: 'SyncLoadBalancerFailed', message })
  }
}

function planStatus(
  { ingress: present }: ServiceProjection,
  wanted: readonly LoadBalancerIngress[],
  item: PlanItem,
): void {
  if (sameIngress(present, wanted)) return
  const named = (all: readonly LoadBalancerIngress[]) => all.map(({ ip, hostname }) => ip ?? hostname ?? '')
  const listed = named(wanted)
  const gone = named(present).filter((one) => !listed.includes(one))
  const off = gone.length > 0 ? `, and ${gone.join(', ')} no more` : ''
  item.changes.push(kubernetes('set-status', `list ${listed.join(', ') || 'no address'} in its status${off}`))
}

async function planCleanup(
  cluster: Cluster,
  places: readonly Place[],
  service: ServiceProjection,
  item: PlanItem,
  call: Call,
  ownsStatus = true,
): Promise<void> {
  for (const { loadBalancers } of places) await planDeletionAt(cluster, loadBalancers, service, item, call)
  if (ownsStatus && !service.deleting && service.ingress.length > 0)
    item.changes.push(kubernetes('set-status', 'list no address in its status'))
  if (service.finalizers.includes(CLEANUP_FINALIZER))
    item.changes.push(kubernetes('remove-finalizer', `remove finalizer ${CLEANUP_FINALIZER}`))
}

async function planDeletionAt(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceProjection,
  item: PlanItem,
  call: Call,
): Promise<void> {
  const plan = await planDeletion(cluster, loadBalancers, service, call)
  if (plan.announcement) await planAnnounced(cluster, plan.announcement, item, call)
  item.changes.push(...plan.changes.map(atCloud))
  item.notes.push(...plan.notes)
  if (!service.deleting) planAnnotations(service, plan.announcement, item)
}

/** The half in the cluster: MetalLB's objects and nodes' annotations. */
async function planAnnounced(cluster: Cluster, announcement: Announcement, item: PlanItem, call: Call): Promise<void> {
  const { changes, fault } = await planAnnouncement(cluster, announcement, call)
  for (const { action, object, summary } of changes)
    item.changes.push(kubernetes(`${action}-${object.kind.toLowerCase()}`, summary))
  if (fault) item.faults.push(...faultsOf(fault))
}

/** The Service's own annotations, which are written with its status. */
function planAnnotations(service: ServiceProjection, announcement: Announcement | undefined, item: PlanItem): void {
  const wrong = Object.entries(differing(service, announcement?.serviceAnnotations ?? {}))
  const set = wrong.flatMap(([key, value]) => (value === null ? [] : [`${key}=${value}`]))
  const off = wrong.flatMap(([key, value]) => (value === null ? [key] : []))
  if (set.length > 0) item.changes.push(kubernetes('annotate-service', `annotate it with ${set.join(', ')}`))
  if (off.length > 0) item.changes.push(kubernetes('annotate-service', `take off its annotations ${off.join(', ')}`))
}

const kubernetes = (kind: string, summary: string): PlannedChange => ({ at: 'kubernetes', kind, summary })

export const atCloud = ({ kind, summary }: Change): PlannedChange => ({ at: 'cloud', kind, summary })
