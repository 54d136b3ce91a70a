import type { Call } from '../../call.ts'
import type { ServiceIdentity } from '../../cloud/provider.ts'
import { messageOf } from '../../errors.ts'
import { projectService, type ServiceProjection } from '../../events/projection.ts'
import { parseSubject, subjectOf } from '../../events/subject.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import type { ServiceRecord } from '../../state/service-record.ts'
import { type Cluster, COMPONENT, serviceObject } from '../cluster.ts'
import type { ReconcileRequest, ReconcileResult } from '../reconcile.ts'
import { cleanUp, deleteLoadBalancer } from './cleanup.ts'
import { ensure } from './ensure.ts'
import { isOfOthers, type Place, placeOf, placesOf, placesToClear } from './placement.ts'
import { isKeptOff, isLeftAlone } from './planning.ts'
import { isReportable, recordName } from './report.ts'
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
  const object = await cluster.kubernetes.get(SERVICES, ref, call)
  const service = object && projectService(object)
  // Without any load balancers only a class asks for some.
  if (placesOf(cluster).length === 0 && service?.loadBalancerClass === undefined) return {}

  // Another uid under the same name is another Service: what the former left behind goes first.
  const formerUid = [record?.uid, request.uid].find((uid) => uid !== undefined && uid !== service?.uid)
  if (formerUid !== undefined) {
    const own = record?.uid === formerUid ? record : undefined
    const former = { ...ref, uid: formerUid, annotations: own?.annotations ?? {} }
    try {
      await deleteLoadBalancer(cluster, placesToClear(cluster, own), former, call)
    } catch (error) {
      // Without a record it went in order, and this was a second look.
      if (own) tellFailure(cluster, former, 'DeleteLoadBalancerFailed', error)
      throw error
    }
    await cluster.state.services.remove(recordName(ref))
  }
  if (!service) return {}
  const current = record?.uid === service.uid ? record : undefined
  if (await isOfOthers(cluster, service, current, call)) return {}
  const wanted = wantsLoadBalancer(service, cluster.placing) && !isKeptOff(cluster, service)
  const place = wanted ? await found(cluster, service, current, call) : undefined
  if (isLeftAlone(cluster, place?.loadBalancers, service)) return await letGo(cluster, service, current, call)
  if (place) {
    const ensured = () => ensure(cluster, place, service, { record: current, token }, request)
    return request.cause === 'targets' ? await timed(cluster, ensured) : await ensured()
  }
  const waitsForUs = current && service.finalizers.includes(CLEANUP_FINALIZER)
  if (needsCleanup(service, cluster.placing) || waitsForUs || (current && !service.deleting))
    return await cleanUp(cluster, placesToClear(cluster, current), service, call)
  return {}
}

async function found(
  cluster: Cluster,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
  call: Call,
): Promise<Place> {
  try {
    return await placeOf(cluster, service, record, call)
  } catch (error) {
    tellFailure(cluster, service, 'SyncLoadBalancerFailed', error)
    throw error
  }
}

function tellFailure(cluster: Cluster, service: ServiceIdentity, reason: string, error: unknown): void {
  if (!isReportable(error)) return
  const object = serviceObject(service)
  cluster.recorder.record({ object, type: 'Warning', reason, message: messageOf(error), component: COMPONENT.service })
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

/** What was made for it before goes; a status that somebody else may have written stays. */
async function letGo(
  cluster: Cluster,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
  call: Call,
): Promise<ReconcileResult> {
  const concerned = record !== undefined || service.finalizers.includes(CLEANUP_FINALIZER)
  return concerned ? await cleanUp(cluster, placesToClear(cluster, record), service, call, record !== undefined) : {}
}
