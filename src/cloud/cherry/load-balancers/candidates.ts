import type { Call } from '../../../call.ts'
import { matches, type Selector } from '../../../config/selector.ts'
import { kindOf, messageOf, transient } from '../../../errors.ts'
import type { NodeProjection } from '../../../events/projection.ts'
import type { Server } from '../model.ts'
import { parseProviderId } from '../provider-id.ts'
import { isWhole, type Servers } from '../servers.ts'
import type { BgpSwitches } from './bgp-switches.ts'
import type { Candidate } from './speakers.ts'

export interface Candidates {
  candidates: readonly Candidate[]
  /** Nodes whose server could not be read, with why. */
  unreadable: ReadonlyMap<NodeProjection, Error>
  /** Nodes whose server is not found. Whether it is gone is not decided here: what they have goes with the Node. */
  lost: readonly NodeProjection[]
}

/** The servers of nodes that may take part in BGP. One that can't be read leaves the others as they are. */
export function createCandidates(servers: Servers, switches: BgpSwitches, selector: Selector) {
  const takesPart = (node: NodeProjection) =>
    node.providerId !== undefined &&
    parseProviderId(node.providerId).kind === 'server' &&
    matches(selector, node.labels)

  async function ofServers(nodes: readonly NodeProjection[], list: readonly Server[], call: Call): Promise<Candidates> {
    const unreadable = new Map<NodeProjection, Error>()
    const lost: NodeProjection[] = []
    const listed = new Map(list.map((server) => [server.id, server]))
    const candidates = await Promise.all(
      nodes.filter(takesPart).map(async (node): Promise<Candidate[]> => {
        const id = parseProviderId(node.providerId ?? '')
        if (id.kind !== 'server') return []
        try {
          const known = listed.get(id.id)
          const server = known && isComplete(known) ? known : await servers.byId(id.id, call, { fresh: true })
          if (server && (!server.addresses || server.region === '')) throw halfAnswer(server)
          if (server) return [{ node, server }]
          lost.push(node)
        } catch (error) {
          if (kindOf(error) === 'aborted') throw error
          unreadable.set(node, error instanceof Error ? error : new Error(messageOf(error)))
        }
        return []
      }),
    )
    return { candidates: candidates.flat(), unreadable, lost }
  }

  return {
    takesPart,
    async candidatesOf(nodes: readonly NodeProjection[], call: Call): Promise<Candidates> {
      const askedMs = performance.now()
      const known = await ofServers(nodes, await servers.list(call), call)
      const settled = known.candidates.every(({ server }) => server.bgpEnabled === true || switches.hasBegun(server.id))
      if (settled) return known
      // An update of a server says its tags anew: they must not be older than need be.
      return await ofServers(nodes, await servers.since(askedMs, call), call)
    },
  }
}

/** A list may leave out what a single read has. */
const isComplete = (server: Server) =>
  isWhole(server) && server.bgpEnabled !== undefined && server.tags !== undefined && server.routers !== undefined

const halfAnswer = ({ id }: Server) =>
  transient(`Cherry Servers, reading server ${id}: the answer lacks its addresses or its region`, {
    code: 'malformed',
  })
