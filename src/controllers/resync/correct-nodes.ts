import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../call.ts'
import { aborted } from '../../errors.ts'
import { fingerprint, type NodeProjection } from '../../events/projection.ts'
import { isOlder } from '../../kubernetes/resource-version.ts'
import type { Cluster } from '../cluster.ts'

/** An event may be on its way for so long. */
const UNDER_WAY_MS = 5000

/**
 * Compares what events have told of the nodes with what the API lists, and puts right what they did not tell: a watch, a queue and a Redis
 * are each said to lose nothing, and a node that was lost would never be a target. Answers how many nodes it was.
 */
export async function correctNodes(
  cluster: Pick<Cluster, 'id' | 'state' | 'metrics'>,
  listed: readonly NodeProjection[],
  listVersion: string,
  call: Call,
): Promise<number> {
  const { nodes } = cluster.state
  const names = new Set(listed.map(({ name }) => name))
  const look = async () => {
    const known = await nodes.all()
    if (!known.complete) return []
    const byName = new Map(known.nodes.map((node) => [node.name, node]))
    return [
      ...listed.filter((node) => isNewer(node, byName.get(node.name))),
      ...known.nodes.filter(({ name, resourceVersion }) => !names.has(name) && !isOlder(listVersion, resourceVersion)),
    ]
  }
  if ((await look()).length === 0) return 0
  await delay(UNDER_WAY_MS, undefined, { signal: call.signal }).catch((cause) => {
    throw aborted('the run was stopped while it waited for events that may be on their way', { cause })
  })
  const missed = await look()
  // Newer events stand, whatever they told meanwhile.
  await nodes.put(missed.filter(({ name }) => names.has(name)))
  for (const { name, uid } of missed) if (!names.has(name)) await nodes.remove(name, uid, listVersion)
  if (missed.length === 0) return 0
  cluster.metrics?.increment('windlass_nodes_missed_total', missed.length, { cluster: cluster.id })
  const some = missed.slice(0, 10).map(({ name }) => name)
  call.log.warn({ nodes: missed.length, some }, 'events have not told of all nodes as the API lists them: put right')
  return missed.length
}

function isNewer(node: NodeProjection, known: NodeProjection | undefined): boolean {
  if (!known) return true
  return isOlder(known.resourceVersion, node.resourceVersion) && fingerprint(known) !== fingerprint(node)
}
