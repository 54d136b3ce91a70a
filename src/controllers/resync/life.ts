import type { Call } from '../../call.ts'
import { type NodeProjection, projectNode, projectService, type ServiceProjection } from '../../events/projection.ts'
import { isOlder } from '../../kubernetes/resource-version.ts'
import { NODES, SERVICES } from '../../kubernetes/resources.ts'
import type { KnownVersions } from '../../state/versioned-index.ts'
import type { Cluster } from '../cluster.ts'

interface Listed {
  services: ServiceProjection[]
  nodes: NodeProjection[]
  /** Of the list of nodes. */
  listVersion: string
}

/**
 * All that the cluster has. When it was made anew or brought back from a backup under the same id, what is known by higher versions is of a
 * former life and would hide all that happens in this one: it is forgotten first.
 */
export async function listInThisLife(
  cluster: Pick<Cluster, 'kubernetes' | 'state'>,
  call: Call,
): Promise<Listed & { isNewLife: boolean }> {
  const known = await cluster.state.life.versions()
  const services = await cluster.kubernetes.list(SERVICES, {}, call)
  const nodes = await cluster.kubernetes.list(NODES, {}, call)
  const isNewLife = isFormer(known.services, services, serviceName) || isFormer(known.nodes, nodes, nodeName)
  if (!isNewLife)
    return {
      services: services.items.map(projectService),
      nodes: nodes.items.map(projectNode),
      listVersion: nodes.resourceVersion,
      isNewLife,
    }
  call.log.warn(
    { known: known.nodes.highest, listed: nodes.resourceVersion },
    'the cluster was made anew or brought back from a backup: what Redis knew of its former life is forgotten',
  )
  await cluster.state.life.begin()
  // What happened until now was answered as old: another list has it.
  const again = await cluster.kubernetes.list(NODES, {}, call)
  return {
    services: (await cluster.kubernetes.list(SERVICES, {}, call)).items.map(projectService),
    nodes: again.items.map(projectNode),
    listVersion: again.resourceVersion,
    isNewLife,
  }
}

interface Versioned {
  metadata: { name: string; namespace?: string; resourceVersion: string }
}

/** The list was read after what is known, and is never from a cache: within one life nothing in it is older. */
function isFormer<T extends Versioned>(
  { highest, byName }: KnownVersions,
  listed: { items: readonly T[]; resourceVersion: string },
  nameOf: (object: T) => string,
): boolean {
  if (highest !== undefined && isOlder(listed.resourceVersion, highest)) return true
  return listed.items.some((object) => {
    const before = byName.get(nameOf(object))
    return before !== undefined && isOlder(object.metadata.resourceVersion, before)
  })
}

const nodeName = ({ metadata }: Versioned) => metadata.name
const serviceName = ({ metadata }: Versioned) => `${metadata.namespace}/${metadata.name}`
