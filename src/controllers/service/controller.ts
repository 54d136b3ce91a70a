import type { Call } from '../../call.ts'
import type { Announcement, Applied, LoadBalancerPlan, LoadBalancers, ServiceIdentity } from '../../cloud/provider.ts'
import { type ErrorKind, kindOf, messageOf, WindlassError } from '../../errors.ts'
import { fingerprint, type NodeProjection, projectService, type ServiceProjection } from '../../events/projection.ts'
import { parseSubject, subjectOf } from '../../events/subject.ts'
import { addFinalizer, loadBalancerStatus, removeFinalizer } from '../../kubernetes/patches.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import type { ServiceRecord } from '../../state/service-record.ts'
import { annotateService, applyAnnouncement, differing } from '../announcement/apply.ts'
import { type Cluster, COMPONENT, countChanges, loadBalancersOf, recordNotes, serviceObject } from '../cluster.ts'
import { readFreshNodes, readNodes } from '../nodes.ts'
import { foreignProject, showsOurMachines } from '../own-project.ts'
import type { ReconcileRequest, ReconcileResult } from '../reconcile.ts'
import { eligibleNodes } from './eligible.ts'
import { sameIngress } from './status.ts'
import { CLEANUP_FINALIZER, needsCleanup, wantsLoadBalancer } from './wants.ts'

/**
 * Brings the load balancer of one Service to what the Service and the nodes ask for, or cleans it up.
 * Order: finalizer, cloud, status; on the way back: cloud, status, finalizer, record.
 */
export async function reconcileService(cluster: Cluster, request: ReconcileRequest): Promise<ReconcileResult> {
  const ref = parseSubject(request.key)
  if (ref?.kind !== 'Service') return {}
  const { call } = request
  const token = await cluster.state.handled.begin(subjectOf(ref))
  const record = await cluster.state.services.get(recordName(ref))
  const clouds = loadBalancersOf(cluster, record)
  if (!clouds) return {}
  const { loadBalancers } = clouds
  const object = await cluster.kubernetes.get(SERVICES, ref, call)
  const service = object && projectService(object)
  const declined = isLeftAlone(cluster, loadBalancers, service ?? { ...ref, annotations: {} })

  // Another uid under the same name is another Service: what the former left behind goes first.
  const formerUid = [record?.uid, request.uid].find((uid) => uid !== undefined && uid !== service?.uid)
  if (formerUid !== undefined) {
    const former = { ...ref, uid: formerUid, annotations: record?.uid === formerUid ? record.annotations : {} }
    await deleteLoadBalancer(cluster, loadBalancers, former, call)
    await cluster.state.services.remove(recordName(ref))
  }
  if (!service) return {}
  const current = record?.uid === service.uid ? record : undefined
  if (declined) return await letGo(cluster, loadBalancers, service, current, call)
  if (wantsLoadBalancer(service)) {
    const ensured = () => ensure(cluster, clouds, service, { record: current, token }, request)
    return request.cause === 'targets' ? await timed(cluster, ensured) : await ensured()
  }
  if (needsCleanup(service) || (current && !service.deleting))
    return await cleanUp(cluster, loadBalancers, service, call)
  return {}
}

/** Measures a run that only the nodes asked for. */
async function timed({ metrics, nowMs }: Cluster, follow: () => Promise<ReconcileResult>): Promise<ReconcileResult> {
  const begunMs = nowMs()
  metrics?.increment('service_controller_loadbalancer_sync_total', 1)
  try {
    return await follow()
  } catch (error) {
    if (isReportable(error)) metrics?.increment('service_controller_nodesync_error_total', 1)
    throw error
  } finally {
    metrics?.observe('service_controller_update_loadbalancer_host_latency_seconds', (nowMs() - begunMs) / 1000)
  }
}

/** Asked for by the Service itself, or made by one of the clouds for its own work. */
export function isLeftAlone(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: Pick<ServiceProjection, 'namespace' | 'name' | 'annotations'>,
): boolean {
  return loadBalancers.declines?.(service) === true || cluster.clouds.some((cloud) => cloud.keepsOff?.(service))
}

/** What was made for it before goes; a status that somebody else may have written stays. */
async function letGo(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
  call: Call,
): Promise<ReconcileResult> {
  const concerned = record !== undefined || service.finalizers.includes(CLEANUP_FINALIZER)
  return concerned ? await cleanUp(cluster, loadBalancers, service, call, record !== undefined) : {}
}

async function ensure(
  cluster: Cluster,
  { cloud, loadBalancers }: { cloud: string; loadBalancers: LoadBalancers },
  seen: ServiceProjection,
  { record, token }: { record: ServiceRecord | undefined; token: string },
  { call, cause }: ReconcileRequest,
): Promise<ReconcileResult> {
  const event = (type: 'Normal' | 'Warning', reason: string, message: string) =>
    cluster.recorder.record({ object: serviceObject(seen), type, reason, message, component: COMPONENT.service })
  try {
    const comparisons = await cluster.state.services.comparisons()
    const service = await withFinalizer(cluster, seen, token, call)
    if (!service) return {}
    const { plan, nodes } = await planWithNodes(cluster, loadBalancers, service, call)
    const byName = new Map(nodes.map((node) => [node.name, node]))
    recordNotes(cluster, serviceObject(service), plan.notes, byName)
    if (nodes.length === 0) event('Warning', 'UnAvailableLoadBalancer', 'There are no nodes that may be targets')
    if (plan.changes.length > 0) event('Normal', 'EnsuringLoadBalancer', summaryOf(plan))
    const applied = await loadBalancers.apply(plan, call)
    countChanges(cluster, 'service', plan.changes)
    recordNotes(cluster, serviceObject(service), applied.notes, byName)
    const announced = await announce(cluster, service, applied, call)
    const annotations = applied.announcement?.serviceAnnotations
    // Before the write, since its echo may be here before its answer; and without what others wrote meanwhile, which nobody has looked at.
    await expectEcho(cluster, token, withStatus(service, applied.ingress, annotations))
    const after = await writeStatus(cluster, service, applied.ingress, call, annotations)
    if (!after) return {}
    // Nothing in the cluster points at them any more.
    const superseded = await applied.superseded?.(call)
    if (superseded) {
      recordNotes(cluster, serviceObject(service), superseded.notes, byName)
      await loadBalancers.applyDeletion(superseded, call)
    }
    const faults = [...applied.faults, ...announced.faults]
    if (faults.length > 0) throw combined(faults)
    const targetsKey = loadBalancers.targetsKey(service, nodes)
    const { uid } = service
    await cluster.state.services.put(recordName(service), { uid, cloud, annotations: service.annotations, targetsKey })
    if ((await cluster.state.services.comparisons()) !== comparisons)
      await followNodes(cluster, loadBalancers, service, targetsKey, call)
    const news = plan.changes.length > 0 || announced.changed > 0 || after.resourceVersion !== seen.resourceVersion
    if (record && news && cause === 'targets') event('Normal', 'UpdatedLoadBalancer', 'The targets follow the nodes')
    else if (news || !record) event('Normal', 'EnsuredLoadBalancer', 'The load balancer is as the Service asks for')
    return applied.againMs === undefined ? {} : { requeueAfterMs: applied.againMs }
  } catch (error) {
    if (isReportable(error))
      event('Warning', 'SyncLoadBalancerFailed', `The load balancer is not in order: ${messageOf(error)}`)
    throw error
  }
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
  if (loadBalancers.targetsKey(service, eligibleNodes(nodes)) === targetsKey) return
  const key = subjectOf({ kind: 'Service', ...service })
  await cluster.enqueuer.enqueue(cluster.id, [{ kind: 'service', key, cause: 'targets', urgency: 'user' }])
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

/**
 * A plan from the nodes as events told them. If it takes something away, it is made again from a fresh list: a projection may miss a
 * node, and must not cost one its traffic.
 */
export async function planWithNodes(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceProjection,
  call: Call,
): Promise<{ plan: LoadBalancerPlan; nodes: NodeProjection[] }> {
  const { fresh, nodes } = loadBalancers.inCluster
    ? { fresh: true, nodes: await readFreshNodes(cluster, call) }
    : await readNodes(cluster, call)
  const known = eligibleNodes(nodes)
  const plan = await loadBalancers.plan(service, known, call)
  if (plan.unmarked && plan.changes.length > 0)
    await requireOwnProject(cluster, loadBalancers, 'A load balancer would be made or adopted', nodes, call)
  if (fresh || !plan.changes.some(({ withdraws }) => withdraws)) return { plan, nodes: known }
  const present = eligibleNodes(await readFreshNodes(cluster, call))
  return { plan: await loadBalancers.plan(service, present, call), nodes: present }
}

/** What deletion takes. That there is nothing to delete counts only where the credential would show it. */
export async function planDeletion(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceIdentity,
  call: Call,
): Promise<LoadBalancerPlan> {
  const plan = await loadBalancers.planDeletion(service, call)
  if (plan.unmarked) {
    const { nodes } = await readNodes(cluster, call)
    await requireOwnProject(cluster, loadBalancers, 'No load balancer of this Service is found', nodes, call)
  }
  return plan
}

async function requireOwnProject(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  what: string,
  nodes: readonly NodeProjection[],
  call: Call,
): Promise<void> {
  const cloud = cluster.clouds.find((one) => one.loadBalancers === loadBalancers)
  if (cloud && (await showsOurMachines(cluster, cloud, nodes, call)) === 'no') throw foreignProject(cloud, what)
}

function withStatus(
  service: ServiceProjection,
  ingress: ServiceProjection['ingress'],
  annotations: Announcement['serviceAnnotations'] = {},
): ServiceProjection {
  const all: [string, string | null][] = Object.entries({ ...service.annotations, ...annotations })
  const present = all.filter((one): one is [string, string] => one[1] !== null)
  return { ...service, annotations: Object.fromEntries(present), ingress }
}

/** Status and annotations in one write: every write of ours comes back as an event. Undefined when the Service is gone. */
async function writeStatus(
  cluster: Cluster,
  service: ServiceProjection,
  ingress: ServiceProjection['ingress'],
  call: Call,
  annotations: Announcement['serviceAnnotations'] = {},
): Promise<ServiceProjection | undefined> {
  if (sameIngress(service.ingress, ingress)) return await annotateService(cluster, service, annotations, call)
  // Bound to the uid: the status of a deleted Service must not land on its successor.
  const patch = loadBalancerStatus(ingress, service.uid, differing(service, annotations))
  const patched = await cluster.kubernetes.patch(SERVICES, service, patch, call)
  return patched && projectService(patched)
}

async function cleanUp(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceProjection,
  call: Call,
  ownsStatus = true,
): Promise<ReconcileResult> {
  try {
    const turnAway = async ({ announcement }: LoadBalancerPlan) => {
      const annotations = announcement?.serviceAnnotations ?? {}
      if (service.deleting) return
      if (ownsStatus) await writeStatus(cluster, service, [], call, annotations)
      else await annotateService(cluster, service, annotations, call)
    }
    await deleteLoadBalancer(cluster, loadBalancers, service, call, turnAway)
    if (service.finalizers.includes(CLEANUP_FINALIZER))
      await cluster.kubernetes.patch(SERVICES, service, removeFinalizer(service, CLEANUP_FINALIZER), call)
    await cluster.state.services.remove(recordName(service))
    return {}
  } catch (error) {
    if (isReportable(error))
      cluster.recorder.record({
        object: serviceObject(service),
        type: 'Warning',
        reason: 'SyncLoadBalancerFailed',
        message: `The load balancer could not be deleted: ${messageOf(error)}`,
        component: COMPONENT.service,
      })
    throw error
  }
}

/** @param turnAway makes the Service itself name the load balancer no more */
async function deleteLoadBalancer(
  cluster: Cluster,
  loadBalancers: LoadBalancers,
  service: ServiceIdentity,
  call: Call,
  turnAway: (plan: LoadBalancerPlan) => Promise<void> = async () => {},
): Promise<void> {
  const event = (reason: string, message: string) =>
    cluster.recorder.record({
      object: serviceObject(service),
      type: 'Normal',
      reason,
      message,
      component: COMPONENT.service,
    })
  const plan = await planDeletion(cluster, loadBalancers, service, call)
  recordNotes(cluster, serviceObject(service), plan.notes)
  if (plan.changes.length > 0) event('DeletingLoadBalancer', summaryOf(plan))
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
  event('DeletedLoadBalancer', 'The load balancer is gone')
}

const recordName = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`

const summaryOf = (plan: LoadBalancerPlan) => plan.changes.map(({ summary }) => summary).join('; ')

/** Waiting for the cloud, or handing over, is no failure that a user should read of. */
const isReportable = (error: unknown) => ['transient', 'permanent'].includes(kindOf(error))

/** One error for several faults: it comes again as soon as any of them may pass by itself. */
function combined(faults: readonly Error[]): Error {
  const kinds = new Set(faults.map(kindOf))
  const first = faults[0]
  if (faults.length === 1 && first) return first
  const order: ErrorKind[] = ['aborted', 'transient', 'throttled', 'permanent']
  const kind = order.find((one) => kinds.has(one)) ?? 'transient'
  const retryAtMs = Math.min(
    ...faults.flatMap((fault) => (fault instanceof WindlassError && fault.retryAtMs ? [fault.retryAtMs] : [])),
  )
  return new WindlassError(kind, faults.map(messageOf).join('; '), Number.isFinite(retryAtMs) ? { retryAtMs } : {})
}
