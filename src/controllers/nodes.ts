import type { Call } from '../call.ts'
import { type NodeProjection, projectNode } from '../events/projection.ts'
import { NODES } from '../kubernetes/resources.ts'
import type { Cluster } from './cluster.ts'

/** A node as events told it last, else as the API has it now. Writes based on it need its resourceVersion as precondition. */
export async function readNode(cluster: Cluster, name: string, call: Call): Promise<NodeProjection | undefined> {
  return (await cluster.state.nodes.get(name)) ?? (await readFreshNode(cluster, name, call))
}

export async function readFreshNode(cluster: Cluster, name: string, call: Call): Promise<NodeProjection | undefined> {
  const node = await cluster.kubernetes.get(NODES, { name }, call)
  return node && projectNode(node)
}

/** All nodes, `fresh` from the API or from the projection. Good for adding; before something is taken away, ask afresh. */
export async function readNodes(cluster: Cluster, call: Call): Promise<{ fresh: boolean; nodes: NodeProjection[] }> {
  const { complete, nodes } = await cluster.state.nodes.all()
  return complete ? { fresh: false, nodes } : { fresh: true, nodes: await readFreshNodes(cluster, call) }
}

/** Lists that were asked for at one time are one list: many Services learn of a vanished node at once. */
const listing = new WeakMap<Cluster, { started: boolean; nodes: Promise<NodeProjection[]> }>()

export async function readFreshNodes(cluster: Cluster, call: Call): Promise<NodeProjection[]> {
  const waiting = listing.get(cluster)
  if (waiting && !waiting.started) return waiting.nodes
  const next = { started: false, nodes: Promise.resolve<NodeProjection[]>([]) }
  next.nodes = (async () => {
    // Whoever asks while the list before is on its way waits for the next one: what it answers must have been read after the question.
    await waiting?.nodes.catch(() => {})
    next.started = true
    // A list that several wait for does not end with the run of the first of them.
    const detached: Call = { ...call, signal: new AbortController().signal }
    const { items } = await cluster.kubernetes.list(NODES, {}, detached)
    return items.map(projectNode)
  })()
  listing.set(cluster, next)
  next.nodes.catch(() => {}).finally(() => listing.get(cluster) === next && listing.delete(cluster))
  return next.nodes
}
