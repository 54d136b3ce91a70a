import type { NodeProjection } from '../../../events/projection.ts'
import type { Note } from '../../provider.ts'
import { publicIpOf } from '../instance.ts'
import type { Server, ServerId } from '../model.ts'

export const REGION_LABEL = 'topology.kubernetes.io/region'
export const HOSTNAME_LABEL = 'kubernetes.io/hostname'

/** A node that takes part in BGP, with all that its sessions need. */
export interface Speaker {
  node: string
  hostname: string
  region: string
  localAsn: number
  peerAsn: number
  /** In the API's order. */
  peers: string[]
  sourceIp: string
}

export interface Candidate {
  node: NodeProjection
  server: Server
}

/**
 * What a node lacks to take part is for its user to see; the others go on without it. What has been announced for it stays (`unsure`) where
 * an answer leaves out or empties what it should have: that takes nothing from a sound node.
 */
export function speakerOf({ node, server }: Candidate, localAsn: number): Speaker | { note: Note; unsure: boolean } {
  const sourceIp = publicIpOf(server)
  const { routers, addresses = [] } = server
  const lacks = (what: string, unsure = false) => ({
    note: {
      type: 'Warning' as const,
      reason: 'NoBgpSpeaker',
      message: `Node ${node.name} announces no addresses: ${what}`,
      node: node.name,
    },
    unsure,
  })
  if (addresses.length === 0) return lacks(`server ${server.id} has no addresses`, true)
  if (sourceIp === undefined) return lacks(`server ${server.id} has no public IPv4 address for its BGP sessions`)
  if (!routers || routers.hosts.length === 0)
    return lacks(`region "${server.region}" has no BGP routers`, routers === undefined)
  return {
    node: node.name,
    hostname: node.labels[HOSTNAME_LABEL] ?? node.name,
    region: node.labels[REGION_LABEL] ?? '',
    localAsn,
    peerAsn: routers.asn,
    peers: routers.hosts,
    sourceIp,
  }
}

export interface BgpSwitch {
  server: ServerId
  node: string
  tags: Record<string, string>
}

/** Servers that have BGP off. Their tags go along, since an update drops what it does not name. */
export function bgpSwitches(candidates: readonly Candidate[]): BgpSwitch[] {
  return candidates
    .filter(({ server }) => server.bgpEnabled !== true)
    .map(({ node, server }) => ({ server: server.id, node: node.name, tags: server.tags ?? {} }))
}
