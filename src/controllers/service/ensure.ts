import type { Call } from '../../call.ts'
import type { Applied, LoadBalancers } from '../../cloud/provider.ts'
import { kindOf, messageOf, WindlassError } from '../../errors.ts'
import { fingerprint, projectService, type ServiceProjection } from '../../events/projection.ts'
import { subjectOf } from '../../events/subject.ts'
import { addFinalizer } from '../../kubernetes/patches.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import type { ServiceRecord } from '../../state/service-record.ts'
import { annotateService, applyAnnouncement } from '../announcement/apply.ts'
import { type Cluster, COMPONENT, countChanges, recordNotes, serviceObject } from '../cluster.ts'
import { readFreshNodes, readNodes } from '../nodes.ts'
import type { ReconcileRequest, ReconcileResult } from '../reconcile.ts'
import { addressChange } from './address-change.ts'
import { clearElsewhere } from './cleanup.ts'
import { disputed, standsOff, statusToWrite, statusWritten } from './disputed.ts'
import { eligibleNodes } from './eligible.ts'
import { elsewhereOf, nodesFor, type Place, placesOf } from './placement.ts'
import { planWithNodes } from './planning.ts'
import { combined, isReportable, recordName, summaryOf } from './report.ts'
import { CLEANUP_FINALIZER, wantsLoadBalancer } from './wants.ts'
import { withStatus, writeStatus } from './write.ts'

/** Of a record that only says where something may be, since no run has come to its end: no target set is named so. */
const UNSETTLED = ''
/** Between two tries to clean up at a cloud that a Service has left. */
const CLEAR_AGAIN_MS = 60_000
const NEVER = Number.POSITIVE_INFINITY

/** Brings the load balancer of a Service to what the Service and the nodes ask for. Order: finalizer, cloud, status, record. */
export async function ensure(
  cluster: Cluster,
  place: Place,
  seen: ServiceProjection,
  { record, token }: { record: ServiceRecord | undefined; token: string },
  { call, cause, attempt = 0 }: ReconcileRequest,
): Promise<ReconcileResult> {
  const event = (type: 'Normal' | 'Warning', reason: string, message: string) =>
    cluster.recorder.record({ object: serviceObject(seen), type, reason, message, component: COMPONENT.service })
  const { cloud, loadBalancers } = place
  const { uid, annotations } = seen
  const elsewhere = elsewhereOf(cluster, place, seen, record)
  const { services } = cluster.state
  const disputedMs = await standsOff(cluster, place, seen, record, call)
  if (disputedMs > 0) return { requeueAfterMs: disputedMs }
  const comparisons = await services.comparisons()
  try {
    const service = await withFinalizer(cluster, seen, token, call)
    if (!service) return {}
    // Noted before the cloud is asked for anything, so that it is known where something may be.
    if (record?.cloud !== cloud && placesOf(cluster).length > 1)
      await services.put(recordName(seen), { uid, cloud, annotations, targetsKey: UNSETTLED, elsewhere })
    const { plan, nodes } = await planWithNodes(cluster, loadBalancers, service, call)
    const byName = new Map(nodes.map((node) => [node.name, node]))
    recordNotes(cluster, serviceObject(service), plan.notes, byName)
    if (nodes.length === 0) event('Warning', 'UnAvailableLoadBalancer', 'There are no nodes that may be targets')
    if (plan.changes.length > 0) event('Normal', 'EnsuringLoadBalancer', summaryOf(plan))
    const applied = await loadBalancers.apply(plan, call)
    countChanges(cluster, 'service', plan.changes)
    recordNotes(cluster, serviceObject(service), applied.notes, byName)
    const announced = await announce(cluster, service, applied, call)
    const given = applied.announcement?.serviceAnnotations
    const { ingress, isDisputed } = statusToWrite(cluster, service, record, applied.ingress)
    if (isDisputed) event('Warning', 'StatusDisputed', disputed(applied.ingress))
    // Before the write, since its echo may be here before its answer; and without what others wrote meanwhile, which nobody has looked at.
    await expectEcho(cluster, token, withStatus(service, ingress, given))
    const after = await writeStatus(cluster, service, ingress, call, given)
    if (!after) return {}
    statusWritten(cluster, service, after)
    const moved = addressChange(service.ingress, applied.ingress)
    if (moved) {
      event(moved.type, 'LoadBalancerAddressChanged', moved.message)
      countChanges(cluster, 'service', [{ kind: 'change-address' }])
    }
    // Nothing in the cluster points at them any more.
    const superseded = await applied.superseded?.(call)
    if (superseded) {
      recordNotes(cluster, serviceObject(service), superseded.notes, byName)
      await loadBalancers.applyDeletion(superseded, call)
    }
    const faults = [...applied.faults, ...announced.faults]
    if (faults.length > 0) throw combined(faults)
    const left = await clearElsewhere(cluster, placesNamed(cluster, elsewhere), after, call)
    const targetsKey = loadBalancers.targetsKey(service, nodes)
    const made = { uid, cloud, annotations: service.annotations, targetsKey }
    await services.put(recordName(service), left.length > 0 ? { ...made, elsewhere: left } : made)
    if ((await services.comparisons()) !== comparisons)
      await followNodes(cluster, loadBalancers, service, targetsKey, call)
    const news = plan.changes.length > 0 || announced.changed > 0 || after.resourceVersion !== seen.resourceVersion
    const known = record?.cloud === cloud && record.targetsKey !== UNSETTLED
    if (known && news && cause === 'targets') event('Normal', 'UpdatedLoadBalancer', 'The targets follow the nodes')
    else if (news || !known) event('Normal', 'EnsuredLoadBalancer', 'The load balancer is as the Service asks for')
    const againMs = Math.min(applied.againMs ?? NEVER, left.length > 0 ? CLEAR_AGAIN_MS : NEVER)
    return againMs === NEVER ? {} : { requeueAfterMs: againMs }
  } catch (error) {
    if (!isReportable(error)) throw error
    if (await isOutdated(cluster, seen, error, call)) return {}
    // Whatever came of it, the targets may be others than those of the record, and any change of the nodes may be what is missing.
    await services.put(recordName(seen), { uid, cloud, annotations, targetsKey: UNSETTLED, elsewhere })
    if ((await services.comparisons()) !== comparisons) await runAgain(cluster, seen)
    const message = messageOf(error)
    const followed = cause === 'targets' && attempt === 0
    if (followed) event('Warning', 'UpdateLoadBalancerFailed', `The targets do not follow the nodes: ${message}`)
    // What may pass by itself is tried again at once, and only then it is known whether the load balancer is in order.
    if (!followed || kindOf(error) === 'permanent')
      event('Warning', 'SyncLoadBalancerFailed', `The load balancer is not in order: ${message}`)
    throw error
  }
}

/**
 * A write was refused since the Service is not what this run saw: it is another, it goes, or it asks for no load balancer any more. Its
 * change has a run of its own, which takes down what this one made.
 */
async function isOutdated(cluster: Cluster, seen: ServiceProjection, error: unknown, call: Call): Promise<boolean> {
  if (!(error instanceof WindlassError) || error.status !== 422) return false
  const object = await cluster.kubernetes.get(SERVICES, seen, call)
  const now = object && projectService(object)
  return now?.uid !== seen.uid || !wantsLoadBalancer(now, cluster.placing)
}

/** Nodes that changed while a run was at work were compared with the record of the run before: asks for another run if they make a difference. */
async function followNodes(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceProjection,
  targetsKey: string,
  call: Call,
): Promise<void> {
  const nodes = loadBalancers.inCluster ? await readFreshNodes(cluster, call) : (await readNodes(cluster, call)).nodes
  if (loadBalancers.targetsKey(service, eligibleNodes(nodesFor(cluster, loadBalancers, nodes))) === targetsKey) return
  await runAgain(cluster, service)
}

async function runAgain({ id, enqueuer }: Cluster, service: ServiceProjection): Promise<void> {
  const key = subjectOf({ kind: 'Service', ...service })
  await enqueuer.enqueue(id, [{ kind: 'service', key, cause: 'targets', urgency: 'user' }])
}

/** The half of a load balancer that is in the cluster. Without what is essential of it no address is published. */
async function announce(
  cluster: Cluster,
  service: ServiceProjection,
  { announcement }: Applied,
  call: Call,
): Promise<{ changed: number; faults: Error[] }> {
  if (!announcement) return { changed: 0, faults: [] }
  const { changed, essential, faults } = await applyAnnouncement(cluster, announcement, call)
  if (essential.length === 0) return { changed, faults }
  // Whoever announces addresses here reads from the Service which one.
  await annotateService(cluster, service, announcement.serviceAnnotations, call)
  throw combined([...essential, ...faults])
}

/** The finalizer stands before the first cloud call, so that a Service can't vanish from under its load balancer. */
async function withFinalizer(
  cluster: Cluster,
  service: ServiceProjection,
  token: string,
  call: Call,
): Promise<ServiceProjection | undefined> {
  if (service.finalizers.includes(CLEANUP_FINALIZER)) return service
  const patched = await cluster.kubernetes.patch(SERVICES, service, addFinalizer(service, CLEANUP_FINALIZER), call)
  const after = patched && projectService(patched)
  if (after) await expectEcho(cluster, token, after)
  return after
}

/** The run that leaves this state, or its retry, goes on from there: the event that shows it asks for no other. */
const expectEcho = (cluster: Cluster, token: string, left: ServiceProjection) =>
  cluster.state.handled.record(subjectOf({ kind: 'Service', ...left }), token, fingerprint(left))

const placesNamed = (cluster: Cluster, clouds: readonly string[]) =>
  placesOf(cluster).filter(({ cloud }) => clouds.includes(cloud))
