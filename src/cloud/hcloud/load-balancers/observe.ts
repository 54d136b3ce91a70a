import type { Call } from '../../../call.ts'
import { permanent, transient } from '../../../errors.ts'
import type { ServiceIdentity } from '../../provider.ts'
import type { LoadBalancer } from '../model.ts'
import { PREFIX } from './annotations.ts'
import { defaultName, OWNER_LABEL, RELEASED_LABEL } from './names.ts'
import type { LoadBalancerReads } from './reads.ts'

/**
 * The Service's load balancer: by its label, else by its name if nobody else owns it. Throws `permanent` where a human must choose, and
 * `transient` for one that belongs to another Service: that may go, or take another name, without a change of this one.
 */
export async function findForService(
  service: ServiceIdentity,
  name: string | undefined,
  reads: LoadBalancerReads,
  call: Call,
): Promise<LoadBalancer | undefined> {
  const wantedName = name ?? defaultName(service.uid)
  const { owned, named } = await reads.find(service.uid, wantedName, call)
  const [first, second] = owned
  if (first && second) throw notUnique(service, owned)
  if (first) return first
  if (!named) return undefined
  const owner = named.labels[OWNER_LABEL]
  if (owner !== undefined && owner !== service.uid && named.labels[RELEASED_LABEL] === undefined)
    throw transient(
      `load balancer "${named.name}" (${named.id}) belongs to the Service with uid ${owner}. Choose another name in annotation ${PREFIX}name, or, if that Service is gone, remove label ${OWNER_LABEL} from the load balancer.`,
      { code: 'owned_by_another' },
    )
  return named
}

/**
 * The load balancer to delete with a Service: that with its label. One that lost its label is ours by its default name, which nobody
 * else would give, or by the name that the Service chose together with an address that its status publishes. One with that name alone
 * may be anybody's, and is left.
 */
export async function findForDeletion(
  service: ServiceIdentity,
  reads: LoadBalancerReads,
  call: Call,
): Promise<{ lb?: LoadBalancer; leftBehind?: LoadBalancer }> {
  const chosen = service.annotations[`${PREFIX}name`]?.trim() || undefined
  const ownName = defaultName(service.uid)
  const { owned, named } = await reads.find(service.uid, ownName, call)
  const [first, second] = owned
  if (first && second) throw notUnique(service, owned)
  if (first) return { lb: first }
  if (named && (named.labels[OWNER_LABEL] ?? service.uid) === service.uid) return { lb: named }
  if (chosen === undefined) return {}
  const { named: candidate } = await reads.find(service.uid, chosen, call)
  if (!candidate || candidate.labels[OWNER_LABEL] !== undefined) return {}
  return isPublished(candidate, service) ? { lb: candidate } : { leftBehind: candidate }
}

function isPublished({ publicNet, privateNets }: LoadBalancer, { ingress = [] }: ServiceIdentity): boolean {
  const own = [publicNet.ipv4, publicNet.ipv6, ...privateNets.map(({ ip }) => ip)]
  return ingress.some(({ ip }) => ip !== undefined && own.includes(ip))
}

function notUnique({ uid }: ServiceIdentity, owned: readonly LoadBalancer[]) {
  const which = owned.map(({ id, name }) => `"${name}" (${id})`).join(' and ')
  return permanent(
    `${owned.length} load balancers carry label ${OWNER_LABEL}=${uid}: ${which}. Remove the label from all but the one to keep.`,
    { code: 'not_unique' },
  )
}
