import type { CherryLoadBalancer } from '../../../config/cherry-load-balancer.ts'
import type { Selector } from '../../../config/selector.ts'
import type { CherrySettings } from '../../../config/types.ts'
import { transient } from '../../../errors.ts'
import type { KubeObject } from '../../../kubernetes/objects.ts'
import type { Announcement } from '../../provider.ts'
import { metallbQueries, type Observed, type ServiceName } from './metallb-kinds.ts'
import { planPeers, planPeersGone } from './metallb-peers.ts'
import { planPools, planPoolsGone } from './metallb-pools.ts'
import { NODE, planNodeAnnotations } from './node-annotations.ts'
import { hostNetwork } from './own-address.ts'
import type { Speaker } from './speakers.ts'

export interface AnnouncementFacts {
  balancer: CherryLoadBalancer
  templates: CherrySettings['annotations']
  selector: Selector
  service: ServiceName
  serviceAnnotations: Record<string, string | null>
  /** Plain. */
  addresses: readonly string[]
  speakers: readonly Speaker[]
  /** Nodes of which too little is known now: what is announced for them stays as it is. By name and by host name. */
  unknown: ReadonlySet<string>
}

const NODES = { kind: NODE } as const

/** What the cluster shall have for a Service with these addresses. */
export function announce(facts: AnnouncementFacts): Announcement {
  const { balancer, service, serviceAnnotations, addresses, speakers, unknown } = facts
  const nodes = (observed: readonly KubeObject[] | undefined) =>
    planNodeAnnotations(observed ?? [], speakers, unknown, facts.templates)
  if (balancer.kind !== 'metallb')
    return { serviceAnnotations, queries: [NODES], plan: ([observed]) => ({ changes: nodes(observed) }) }
  const { namespace, bgpPeerMode: mode } = balancer
  return {
    serviceAnnotations,
    queries: [NODES, ...metallbQueries(namespace)],
    plan([observedNodes, ...objects]) {
      const observed = complete(objects)
      if (!observed) return { changes: nodes(observedNodes), fault: notInstalled(service) }
      const pools = planPools(service, addresses.map(hostNetwork), namespace, observed)
      const peers = planPeers(service, speakers, unknown, { mode, selector: facts.selector, namespace }, observed)
      return { changes: [...nodes(observedNodes), ...pools.before, ...peers, ...pools.after] }
    },
  }
}

/** What the cluster shall have for a Service that is no more, or no more ours. Annotations and BGP of nodes stay, as before. */
export function withdraw(
  balancer: CherryLoadBalancer,
  service: ServiceName,
  serviceAnnotations: Record<string, string | null>,
): Announcement {
  if (balancer.kind !== 'metallb') return { serviceAnnotations, queries: [], plan: () => ({ changes: [] }) }
  const { namespace } = balancer
  return {
    serviceAnnotations,
    queries: metallbQueries(namespace),
    plan([peers = [], advertisements = [], pools = []]) {
      // Kinds that are not there have no objects that could be left behind.
      const observed = { peers, advertisements, pools }
      return {
        changes: [...planPeersGone(service, namespace, observed), ...planPoolsGone(service, namespace, observed)],
      }
    },
  }
}

function complete(objects: readonly (readonly KubeObject[] | undefined)[]): Observed | undefined {
  const [peers, advertisements, pools] = objects
  return peers && advertisements && pools ? { peers, advertisements, pools } : undefined
}

const notInstalled = ({ namespace, name }: ServiceName) =>
  transient(
    `Service ${namespace}/${name} can't be announced: the cluster has no MetalLB (custom resources IPAddressPool, BGPAdvertisement and BGPPeer of metallb.io). Install it, or set CHERRY_LOAD_BALANCER to what announces addresses here.`,
    { code: 'no_metallb' },
  )
