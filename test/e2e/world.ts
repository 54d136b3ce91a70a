import type { Admin, Json } from '../apiserver/admin.ts'
import type { World } from './case.ts'
import type { SimulatedCloud } from './clouds/cloud.ts'
import { isApiServer } from './cluster.ts'
import { normalNode, normalService } from './form/objects.ts'
import { type Substitution, substitute } from './form/substitute.ts'
import { sortByName, tidy } from './form/tidy.ts'

/** Which Service had a UID, as NAMESPACE/NAME; deleted ones too, since their UIDs live on in names at the cloud. */
export type ServiceUids = Map<string, string>

export async function rememberServices(admin: Admin, uids: ServiceUids): Promise<void> {
  for (const { metadata } of await admin.listMetadata('Service')) {
    uids.set(metadata.uid, `${metadata.namespace}/${metadata.name}`)
  }
}

/** Cluster and account as they are now, in the normal form. */
export async function worldNow(admin: Admin, cloud: SimulatedCloud, uids: ServiceUids): Promise<World> {
  await rememberServices(admin, uids)
  const [nodes, services, { account, objects: others, substitutions }] = await Promise.all([
    admin.list('Node'),
    admin.list('Service'),
    cloud.world(),
  ])
  const objects: Record<string, Json> = {}
  for (const node of nodes) objects[`Node/${node.metadata.name}`] = normalNode(node)
  for (const service of services.filter((x) => !isApiServer(x))) {
    objects[`Service/${service.metadata.namespace}/${service.metadata.name}`] = normalService(service)
  }
  Object.assign(objects, others)
  // First the cloud's values become names, then the UIDs in those names.
  return tidy(sortByName(substitute(substitute({ objects, account }, substitutions), uidNames(uids))))
}

function uidNames(uids: ServiceUids): Substitution[] {
  return [...uids].flatMap(([uid, service]): Substitution[] => [
    [uid, `{uid ${service}}`],
    // The framework's default name of a load balancer.
    [`a${uid.replaceAll('-', '')}`.slice(0, 32), `{lb ${service}}`],
  ])
}
