import type { Call } from '../call.ts'
import type { CloudProvider } from '../cloud/provider.ts'
import { transient, type WindlassError } from '../errors.ts'
import type { NodeProjection } from '../events/projection.ts'
import type { Cluster } from './cluster.ts'

/** Sightings that are looked at before the cloud is asked. */
const MACHINES_REMEMBERED = 10

/**
 * Whether the project in use shows the cluster's machines, now or before. With the token or the id of another project every answer is a good
 * one about other people's things: nothing of ours is there, and what has our names is not ours. `unknown`: no node says yet which
 * machine it is, and none did before.
 */
export async function showsOurMachines(
  cluster: Pick<Cluster, 'state'>,
  cloud: CloudProvider,
  nodes: readonly NodeProjection[],
  call: Call,
): Promise<'yes' | 'no' | 'unknown'> {
  const credential = cloud.projectCredential()
  const machines = nodes.flatMap(({ providerId }) =>
    providerId !== undefined && cloud.owns(providerId) && cloud.credentialId(providerId) === credential
      ? [providerId]
      : [],
  )
  if (machines.length === 0) {
    const known = !cloud.findsBeyondProject && (await cluster.state.sightings.knows(credential))
    return known ? 'yes' : 'unknown'
  }
  const remembered = cloud.findsBeyondProject ? [] : machines.slice(0, MACHINES_REMEMBERED)
  for (const machine of remembered)
    if ((await cluster.state.sightings.lastSeen(machine))?.credentialId === credential) return 'yes'
  const visible = await cloud.instances.listProviderIds(call)
  return machines.some((machine) => visible.has(machine)) ? 'yes' : 'no'
}

export function foreignProject(cloud: CloudProvider, what: string): WindlassError {
  return transient(
    `${what}: held, since the project of ${cloud.name} in use shows no machine of this cluster and may be another project. Check the token, and the project in the settings; if the machines are gone for good, delete their Nodes`,
    { code: 'foreign_project' },
  )
}
