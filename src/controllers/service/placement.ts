import type { Call } from '../../call.ts'
import type { LoadBalancers } from '../../cloud/provider.ts'
import { NOWHERE } from '../../config/placing.ts'
import { permanent } from '../../errors.ts'
import type { NodeProjection, ServiceProjection } from '../../events/projection.ts'
import type { ServiceRecord } from '../../state/service-record.ts'
import { planAnnouncement } from '../announcement/apply.ts'
import type { Cluster } from '../cluster.ts'
import { CLEANUP_FINALIZER } from './wants.ts'

/** A cloud of the cluster that has load balancers. */
export interface Place {
  cloud: string
  loadBalancers: LoadBalancers
}

export const placesOf = ({ clouds }: Pick<Cluster, 'clouds'>): Place[] =>
  clouds.flatMap(({ name: cloud, loadBalancers }) => (loadBalancers ? [{ cloud, loadBalancers }] : []))

/**
 * Where the load balancer of a Service is made: its class says so. Without one it stays where it is, even if the choice for new ones is
 * another by now, since it would get another address.
 */
export async function placeOf(
  cluster: Cluster,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
  call: Call,
): Promise<Place> {
  const places = placesOf(cluster)
  const at = (cloud: string | undefined) => places.find((place) => place.cloud === cloud)
  const { classes, unclassed } = cluster.placing
  const { loadBalancerClass: name } = service
  if (name !== undefined) return at(classes[name]) ?? nowhere(service, classes[name])
  const chosen = at(unclassed) ?? places[0]
  if (!chosen) return nowhere(service, undefined)
  const present = at(record?.cloud)
  if (present || places.length === 1 || !service.finalizers.includes(CLEANUP_FINALIZER)) return present ?? chosen
  // It may have been made, and nothing is remembered of it.
  for (const place of [chosen, ...places.filter((one) => one !== chosen)])
    if (await hasSomethingAt(cluster, place, service, call)) return place
  return chosen
}

/**
 * A Service without a class, where those are left to others, e.g. to MetalLB. One that has a load balancer of ours, from before it was set
 * so, keeps it: to take its address away is nothing that a setting should do. Our finalizer alone says little, since others set it too.
 */
export async function isOfOthers(
  cluster: Cluster,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
  call: Call,
): Promise<boolean> {
  if (cluster.placing.unclassed !== NOWHERE || service.loadBalancerClass !== undefined || record) return false
  if (!service.finalizers.includes(CLEANUP_FINALIZER)) return true
  for (const place of placesOf(cluster)) if (await hasSomethingAt(cluster, place, service, call)) return false
  return true
}

/** Where there may be something of a Service; everywhere, if nothing is remembered of it. */
export function placesToClear(cluster: Cluster, record: ServiceRecord | undefined): Place[] {
  const places = placesOf(cluster)
  if (!record) return places
  const named = places.filter(({ cloud }) => cloud === record.cloud || record.elsewhere?.includes(cloud))
  return named.length > 0 ? named : places
}

/** Clouds, beside that which serves it, where there is or may be something of a Service that has to go. */
export function elsewhereOf(
  cluster: Cluster,
  { cloud: here }: Place,
  service: ServiceProjection,
  record: ServiceRecord | undefined,
): string[] {
  const others = placesOf(cluster).flatMap(({ cloud }) => (cloud === here ? [] : [cloud]))
  // Without the finalizer no run has come as far as a cloud.
  if (!record) return service.finalizers.includes(CLEANUP_FINALIZER) ? others : []
  return others.filter((cloud) => cloud === record.cloud || record.elsewhere?.includes(cloud))
}

/** Nodes at another cloud of the cluster are no targets here, and nothing to wonder about. */
export function nodesFor(
  { clouds }: Pick<Cluster, 'clouds'>,
  loadBalancers: LoadBalancers,
  nodes: readonly NodeProjection[],
): NodeProjection[] {
  const others = clouds.filter((cloud) => cloud.loadBalancers !== loadBalancers)
  return nodes.filter(({ providerId }) => providerId === undefined || !others.some((cloud) => cloud.owns(providerId)))
}

async function hasSomethingAt(
  cluster: Cluster,
  { loadBalancers }: Place,
  service: ServiceProjection,
  call: Call,
): Promise<boolean> {
  const { changes, announcement } = await loadBalancers.planDeletion(service, call)
  if (changes.length > 0) return true
  if (!announcement) return false
  const announced = Object.keys(announcement.serviceAnnotations).length > 0
  return announced || (await planAnnouncement(cluster, announcement, call)).changes.length > 0
}

function nowhere({ namespace, name, loadBalancerClass }: ServiceProjection, cloud: string | undefined): never {
  const remedy = cloud === 'cherryservers' ? 'set CHERRY_LOAD_BALANCER' : 'set HCLOUD_LOAD_BALANCERS_ENABLED=true'
  throw permanent(
    `Service ${namespace}/${name} can't be served: its load balancer class ${loadBalancerClass} stands for ${cloud}, and this cluster has no load balancers there. If that cloud is set up here, ${remedy}; else make the Service anew with another class.`,
    { code: 'no_load_balancers' },
  )
}
