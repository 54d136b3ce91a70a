import type { NodeAddress } from '../../kubernetes/objects.ts'

/** A machine of the control plane as its Node says. */
export interface ControlPlaneNode {
  name: string
  uid: string
  providerId?: string
  addresses: NodeAddress[]
  unschedulable: boolean
  deleting: boolean
}

export interface Situation {
  nodes: readonly ControlPlaneNode[]
  /** Provider ids, in every form, of the machine that has the address; undefined when none has. */
  holder: readonly string[] | undefined
  /** Provider ids of machines that were nodes of the control plane at some time. */
  known: ReadonlySet<string>
}

export type Verdict =
  /** The address stays where it is as long as the API server answers there. `node` is absent for a machine that is none of ours. */
  | { kind: 'check'; node?: ControlPlaneNode; candidates: ControlPlaneNode[] }
  /** It goes to the first candidate that answers, if any does. */
  | { kind: 'move'; why: string; candidates: ControlPlaneNode[] }

/** What has to be asked, and where the address may go, best first. Pure: health is asked by whom this tells. */
export function decide({ nodes, holder, known }: Situation): Verdict {
  const node = holder && nodes.find(({ providerId }) => providerId !== undefined && holder.includes(providerId))
  const others = candidatesOf(nodes.filter((one) => one !== node))
  if (!holder) return { kind: 'move', why: 'no machine has it', candidates: others }
  if (!node) {
    const gone = holder.some((id) => known.has(id))
    return gone
      ? { kind: 'move', why: 'the node that has it was deleted', candidates: others }
      : { kind: 'check', candidates: others }
  }
  // It leaves for somewhere better only: with all nodes cordoned it would go round in circles.
  const better = others.filter(({ unschedulable }) => !unschedulable)
  if (node.deleting) return { kind: 'move', why: `node ${node.name} is being deleted`, candidates: others }
  if (node.unschedulable && better.length > 0)
    return { kind: 'move', why: `node ${node.name} is cordoned`, candidates: better }
  return { kind: 'check', node, candidates: others }
}

/** Nodes that stay, schedulable ones first, by name. */
function candidatesOf(nodes: readonly ControlPlaneNode[]): ControlPlaneNode[] {
  return nodes
    .filter(({ deleting, providerId }) => !deleting && providerId !== undefined)
    .sort(
      (a, b) => Number(a.unschedulable) - Number(b.unschedulable) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
    )
}

/** Where a node's own API server is asked: at every address of the machine itself. */
export function machineAddresses({ addresses }: ControlPlaneNode, except: string): string[] {
  return addresses
    .filter(({ type, address }) => (type === 'InternalIP' || type === 'ExternalIP') && address !== except)
    .map(({ address }) => address)
}

/** The address of a machine at which it is asked in place of the floating one. */
export function hostAddress({ addresses }: ControlPlaneNode, except: string): string | undefined {
  return addresses.findLast(({ type, address }) => type === 'ExternalIP' && address !== except)?.address
}
