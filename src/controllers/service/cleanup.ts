import type { Call } from '../../call.ts'
import type { LoadBalancerPlan, ServiceIdentity } from '../../cloud/provider.ts'
import { kindOf, messageOf } from '../../errors.ts'
import type { ServiceProjection } from '../../events/projection.ts'
import { isConflict } from '../../kubernetes/answer.ts'
import { removeFinalizer } from '../../kubernetes/patches.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import { annotateService, applyAnnouncement } from '../announcement/apply.ts'
import { type Cluster, COMPONENT, countChanges, recordNotes, serviceObject } from '../cluster.ts'
import type { ReconcileResult } from '../reconcile.ts'
import type { Place } from './placement.ts'
import { planDeletion } from './planning.ts'
import { combined, isReportable, recordName, summaryOf } from './report.ts'
import { CLEANUP_FINALIZER } from './wants.ts'
import { writeStatus } from './write.ts'

/** A Service that is to have no load balancer any more, or that goes. */
export async function cleanUp(
  cluster: Cluster,
  places: readonly Place[],
  service: ServiceProjection,
  call: Call,
  ownsStatus = true,
): Promise<ReconcileResult> {
  try {
    let present = service
    const turnAway = async ({ announcement, addresses = [] }: LoadBalancerPlan) => {
      const annotations = announcement?.serviceAnnotations ?? {}
      // It goes with our finalizer, unless somebody else keeps it.
      if (service.deleting && service.finalizers.every((one) => one === CLEANUP_FINALIZER)) return
      const shows = present.ingress.some(({ ip }) => ip !== undefined && addresses.includes(ip))
      const written =
        ownsStatus || shows
          ? await writeStatus(cluster, present, [], call, annotations)
          : await annotateService(cluster, present, annotations, call)
      present = written ?? present
    }
    await deleteLoadBalancer(cluster, places, service, call, turnAway)
    if (service.finalizers.includes(CLEANUP_FINALIZER))
      await cluster.kubernetes.patch(SERVICES, service, removeFinalizer(service, CLEANUP_FINALIZER), call)
    await cluster.state.services.remove(recordName(service))
    return {}
  } catch (error) {
    if (isReportable(error) && !isConflict(error))
      warn(cluster, service, `The load balancer could not be deleted: ${messageOf(error)}`)
    throw error
  }
}

/** @param turnAway makes the Service itself name the load balancer no more */
export async function deleteLoadBalancer(
  cluster: Cluster,
  places: readonly Place[],
  service: ServiceIdentity,
  call: Call,
  turnAway: (plan: LoadBalancerPlan) => Promise<void> = async () => {},
): Promise<void> {
  for (const place of places) await deleteAt(cluster, place, service, call, turnAway)
  say(cluster, service, 'DeletedLoadBalancer', 'The load balancer is gone')
}

/**
 * What a Service had at other clouds, once it is served by another. Returns those where it has to be tried again: that one of them is out of
 * order must not keep the Service from being served.
 */
export async function clearElsewhere(
  cluster: Cluster,
  places: readonly Place[],
  service: ServiceProjection,
  call: Call,
): Promise<string[]> {
  const left: string[] = []
  const turnAway = async ({ announcement }: LoadBalancerPlan) =>
    void (await annotateService(cluster, service, announcement?.serviceAnnotations ?? {}, call))
  for (const place of places) {
    const { cloud } = place
    try {
      const gone = await deleteAt(cluster, place, service, call, turnAway)
      if (gone) say(cluster, service, 'DeletedLoadBalancer', `The load balancer at ${cloud} is gone`)
    } catch (error) {
      if (kindOf(error) === 'aborted') throw error
      const why = `What the Service had at ${cloud} could not be deleted yet: ${messageOf(error)}`
      if (isReportable(error)) warn(cluster, service, why)
      call.log.warn({ cloud, error: messageOf(error) }, 'could not clean up at another cloud')
      left.push(cloud)
    }
  }
  return left
}

/** True when there was something. */
async function deleteAt(
  cluster: Cluster,
  { loadBalancers }: Place,
  service: ServiceIdentity,
  call: Call,
  turnAway: (plan: LoadBalancerPlan) => Promise<void>,
): Promise<boolean> {
  const plan = await planDeletion(cluster, loadBalancers, service, call)
  recordNotes(cluster, serviceObject(service), plan.notes)
  if (plan.changes.length > 0) say(cluster, service, 'DeletingLoadBalancer', summaryOf(plan))
  // The cluster lets go of an address before the cloud may give it to somebody else.
  if (plan.announcement) {
    const { essential, faults } = await applyAnnouncement(cluster, plan.announcement, call)
    if (essential.length + faults.length > 0) throw combined([...essential, ...faults])
    await turnAway(plan)
  }
  const { notes } = await loadBalancers.applyDeletion(plan, call)
  // Until then the address may prove which load balancer it is.
  if (!plan.announcement) await turnAway(plan)
  countChanges(cluster, 'service', plan.changes)
  recordNotes(cluster, serviceObject(service), notes)
  return plan.changes.length > 0
}

function say(cluster: Cluster, service: ServiceIdentity, reason: string, message: string): void {
  const object = serviceObject(service)
  cluster.recorder.record({ object, type: 'Normal', reason, message, component: COMPONENT.service })
}

function warn(cluster: Cluster, service: ServiceProjection, message: string): void {
  const object = serviceObject(service)
  const reason = 'SyncLoadBalancerFailed'
  cluster.recorder.record({ object, type: 'Warning', reason, message, component: COMPONENT.service })
}
