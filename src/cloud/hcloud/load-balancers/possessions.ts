import type { Call } from '../../../call.ts'
import type { Possession } from '../../provider.ts'
import type { HcloudClient } from '../client.ts'
import { parseProviderId } from '../provider-id.ts'
import { OWNER_LABEL, RELEASED_LABEL } from './names.ts'

/**
 * Load balancers and managed certificates with an owner's label. The label does not say which cluster the owner is in; targets do,
 * and what has none of this cluster may be another's.
 */
export async function listPossessions(
  client: HcloudClient,
  nodes: readonly { providerId?: string }[],
  call: Call,
): Promise<Possession[]> {
  const [balancers, certificates] = await Promise.all([
    client.loadBalancers.labelled(OWNER_LABEL, call),
    client.certificates.list(call),
  ])
  const servers = new Set<number>(
    nodes.flatMap(({ providerId }) => {
      const parsed = providerId === undefined ? undefined : parseProviderId(providerId)
      return parsed?.kind === 'cloud' ? [parsed.id] : []
    }),
  )
  const ours = new Set<number>()
  const possession = (uid: string | undefined, rest: Omit<Possession, 'belongsTo'>): Possession => ({
    ...rest,
    belongsTo: (service) => service.uid === uid,
  })
  const found = balancers
    // Its owner is gone, and who left it says so.
    .filter(({ labels }) => labels[RELEASED_LABEL] === undefined)
    .map(({ id, name, labels, targets }) => {
      const ofThisCluster = targets.some((target) => target.type === 'server' && servers.has(target.server))
      if (ofThisCluster) ours.add(id)
      return possession(labels[OWNER_LABEL], {
        what: `load balancer "${name}" (${id})`,
        howToRemove: `hcloud load-balancer delete ${id}`,
        ofThisCluster,
      })
    })
  const used = certificates
    .filter(({ labels }) => labels[OWNER_LABEL] !== undefined)
    .map(({ id, name, labels, usedBy }) =>
      possession(labels[OWNER_LABEL], {
        what: `managed certificate "${name}" (${id})`,
        howToRemove: `hcloud certificate delete ${id}`,
        ofThisCluster: usedBy.some((user) => user.type === 'load_balancer' && ours.has(user.id)),
      }),
    )
  return [...found, ...used]
}
