import type { Call } from '../../call.ts'
import type { Announcement } from '../../cloud/provider.ts'
import { projectService, type ServiceProjection } from '../../events/projection.ts'
import { loadBalancerStatus } from '../../kubernetes/patches.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import { annotateService, differing } from '../announcement/apply.ts'
import type { Cluster } from '../cluster.ts'
import { sameIngress } from './status.ts'

/** Status and annotations in one write: every write of ours comes back as an event. Undefined when the Service is gone. */
export async function writeStatus(
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

/** What a Service is once its status is written. */
export function withStatus(
  service: ServiceProjection,
  ingress: ServiceProjection['ingress'],
  annotations: Announcement['serviceAnnotations'] = {},
): ServiceProjection {
  const all: [string, string | null][] = Object.entries({ ...service.annotations, ...annotations })
  const present = all.filter((one): one is [string, string] => one[1] !== null)
  return { ...service, annotations: Object.fromEntries(present), ingress }
}
