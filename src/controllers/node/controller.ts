import type { Call } from '../../call.ts'
import { transient, type WindlassError } from '../../errors.ts'
import { fingerprint, type NodeProjection } from '../../events/projection.ts'
import { subjectOf } from '../../events/subject.ts'
import { isConflict } from '../../kubernetes/answer.ts'
import { nodeAddresses, nodeInitialised, nodeLabels } from '../../kubernetes/patches.ts'
import { NODES } from '../../kubernetes/resources.ts'
import { type Cluster, COMPONENT, countChanges, nodeObject, recordNotes } from '../cluster.ts'
import { readFreshNode } from '../nodes.ts'
import { standoffsOf } from '../standoff.ts'
import { findMachine, type MachineLookup } from './lookup.ts'
import { changedNode, isUninitialised, type NodeChange, type NodePlan, planLabels, planNode } from './plan.ts'

const CONFLICT_TRIES = 5

/** The node as this run left it, and the machine that it found; undefined when the node is gone or none of ours. */
export type NodeOutcome = { node: NodeProjection; lookup: Exclude<MachineLookup, { kind: 'foreign' }> } | undefined

/**
 * Initialises a node, and keeps its labels and addresses true. `node` may be as old as its event: what depends on more than its uid is
 * bound to its resourceVersion, and a conflict reads it anew and decides again.
 */
export async function reconcileNode(cluster: Cluster, node: NodeProjection, call: Call): Promise<NodeOutcome> {
  const token = await cluster.state.handled.begin(subjectOf({ kind: 'Node', name: node.name }))
  let present: NodeProjection | undefined = node
  const findings: Findings = new Map()
  for (let tries = 1; present; tries++) {
    try {
      return await reconcileOnce(cluster, present, { token, findings }, call)
    } catch (error) {
      if (!isConflict(error) || tries === CONFLICT_TRIES) throw error
      present = await readFreshNode(cluster, node.name, call)
    }
  }
  return undefined
}

/** A node that is being deleted, and kept by somebody's finalizer, still runs pods: it is treated like any other. */
async function reconcileOnce(
  cluster: Cluster,
  given: NodeProjection,
  { token, findings }: { token: string; findings: Findings },
  call: Call,
): Promise<NodeOutcome> {
  const { providerId } = given
  if (providerId !== undefined && !cluster.clouds.some((cloud) => cloud.owns(providerId))) return undefined
  // Whatever becomes of the question to the cloud.
  const labelled = isUninitialised(given) ? given : await apply(cluster, given, planLabels(given), call)
  if (!labelled) return undefined
  const { node, lookup } = await lookUp(cluster, labelled, findings, call)
  if (lookup.kind === 'foreign') return undefined
  recordNotes(cluster, nodeObject(node), lookup.notes)
  if (lookup.kind !== 'found') {
    if (isUninitialised(node)) throw reportMissing(cluster, node, lookup)
    return { node, lookup }
  }
  const plan = planNode(node, lookup.instance)
  if ('fault' in plan) throw reportFault(cluster, node, plan)
  if (plan.warning) recordNotes(cluster, nodeObject(node), [{ type: 'Warning', ...plan.warning }])
  const after = await apply(cluster, node, undisputed(cluster, node, plan.changes), call)
  if (!after) return undefined
  standoffsOf(cluster).wrote(addressesOf(node), after.resourceVersion)
  await cluster.state.handled.record(subjectOf({ kind: 'Node', name: node.name }), token, fingerprint(after))
  return { node: after, lookup }
}

const addressesOf = ({ uid }: NodeProjection) => `addresses of ${uid}`

/** Without addresses that somebody else takes away each time: those are set at a look at all nodes, now and then. */
function undisputed(cluster: Cluster, node: NodeProjection, changes: readonly NodeChange[]): NodeChange[] {
  const standoffs = standoffsOf(cluster)
  return changes.filter((change) => {
    if (change.kind !== 'set-addresses' || isUninitialised(node)) return true
    const [what, text] = [addressesOf(node), JSON.stringify(change.addresses)]
    if (standoffs.heldMs(what, cluster.framework.nodeStatusUpdateFrequencyMs, text) > 0) return false
    if (standoffs.writes(what, text, node.resourceVersion))
      cluster.recorder.record({
        object: nodeObject(node),
        type: 'Warning',
        reason: 'AddressesDisputed',
        message: `Somebody else changes the addresses of node ${node.name} back each time that they are set (${change.summary}); they are left for a while now. Is another cloud controller at work, or a network plug-in that writes addresses?`,
        component: COMPONENT.node,
      })
    return true
  })
}

/** What this run found by name, by the Node's uid. */
type Findings = Map<string, MachineLookup>

/**
 * A machine found by name that was seen before this Node joined had another Node, and may have been replaced by a namesake since the
 * list was read. Provider ids can't be changed, so the cloud is asked once more.
 */
async function lookUp(
  cluster: Cluster,
  node: NodeProjection,
  findings: Findings,
  call: Call,
): Promise<{ node: NodeProjection; lookup: MachineLookup }> {
  const found = node.providerId === undefined ? findings.get(node.uid) : undefined
  const looked = found ? { node, lookup: found } : await lookUpAnew(cluster, node, call)
  if (looked.node.providerId === undefined) findings.set(node.uid, looked.lookup)
  return looked
}

async function lookUpAnew(
  cluster: Cluster,
  node: NodeProjection,
  call: Call,
): Promise<{ node: NodeProjection; lookup: MachineLookup }> {
  const lookup = await findMachine(cluster.clouds, node, call)
  if (lookup.kind !== 'found') return { node, lookup }
  const seenMs = await see(cluster, lookup)
  // The time of creation is in whole seconds.
  const seenBefore = seenMs > 0 && seenMs < Date.parse(node.creationTimestamp) + 1000
  if (node.providerId !== undefined || !seenBefore) return { node, lookup }
  // It may also have been seen for this Node, by a run of which no event has told yet: then the id is there, and the cloud need not be asked.
  const present = await readFreshNode(cluster, node.name, call)
  if (present?.providerId !== undefined)
    return { node: present, lookup: await findMachine(cluster.clouds, present, call) }
  const now = await findMachine(cluster.clouds, node, call, { fresh: true })
  if (now.kind === 'found') await see(cluster, now, { fresh: true })
  return { node, lookup: now }
}

/**
 * Notes the sighting, as of the time from which it may be: a list may show a machine for a while that is gone. Returns when the machine
 * was seen last before, in Unix milliseconds; 0 for never.
 */
async function see(
  { state }: Cluster,
  { cloud, instance: { providerId } }: Extract<MachineLookup, { kind: 'found' }>,
  { fresh = false } = {},
): Promise<number> {
  const ageMs = fresh ? 0 : cloud.instances.maxAgeMs(providerId)
  const [beforeMs = 0] = await state.sightings.seen([providerId], cloud.credentialId(providerId), ageMs)
  return beforeMs
}

/** Carries the changes out. Undefined when the node is gone. */
async function apply(
  cluster: Cluster,
  node: NodeProjection,
  changes: readonly NodeChange[],
  call: Call,
): Promise<NodeProjection | undefined> {
  let present = node
  for (const change of changes) {
    const patch = patchOf(change, present)
    const written = await cluster.kubernetes.patchMetadata(NODES, { name: node.name }, patch, call)
    if (!written) return undefined
    present = changedNode(present, change, written)
    call.log.debug({ object: `Node/${node.name}`, change: change.kind, summary: change.summary }, 'changed a node')
    countChanges(cluster, 'node', [change])
    // At once: if the next change fails, the run that comes then finds the node initialised already.
    if (change.kind === 'initialise') reportInitialised(cluster, present)
  }
  return present
}

/** Taints are one list that others write too, so that change is bound to the version it was made from. Labels and addresses are ours alone. */
function patchOf(change: NodeChange, { uid, resourceVersion }: NodeProjection) {
  switch (change.kind) {
    case 'initialise':
      return nodeInitialised({ ...change, uid, resourceVersion })
    case 'set-labels':
      return nodeLabels({ labels: change.labels, uid })
    case 'set-addresses':
      return nodeAddresses({ addresses: change.addresses, uid })
  }
}

function reportInitialised(cluster: Cluster, node: NodeProjection): void {
  const delayS = Math.max(0, cluster.nowMs() - Date.parse(node.creationTimestamp)) / 1000
  cluster.metrics?.observe('node_controller_initial_node_sync_delay_seconds', delayS)
  cluster.metrics?.observe('node_controller_cloud_provider_taint_removal_delay_seconds', delayS)
  cluster.recorder.record({
    object: nodeObject(node),
    type: 'Normal',
    reason: 'Synced',
    message: `Initialised as ${node.providerId ?? 'unknown'}`,
    component: COMPONENT.node,
  })
}

/** A machine that is not there yet may appear without any event: the run fails in passing and comes again. */
function reportMissing(
  cluster: Cluster,
  node: NodeProjection,
  lookup: Exclude<MachineLookup, { kind: 'found' | 'foreign' }>,
): WindlassError {
  const message =
    lookup.kind === 'ambiguous'
      ? `Node ${node.name} can't be initialised: ${lookup.message}`
      : `Node ${node.name} can't be initialised: no machine found (${lookup.searched})${lookup.nearest ? `; the nearest name there is ${lookup.nearest}` : ''}. The node's name must be the server's name, unless kubelet sets --provider-id`
  const reason = lookup.kind === 'ambiguous' ? 'InstanceLookupFailed' : 'InstanceNotFound'
  cluster.recorder.record({ object: nodeObject(node), type: 'Warning', reason, message, component: COMPONENT.node })
  return transient(message, { code: reason })
}

function reportFault(
  cluster: Cluster,
  node: NodeProjection,
  { fault, reason }: Extract<NodePlan, { fault: string }>,
): WindlassError {
  const message = `Node ${node.name} can't be initialised: ${fault}${ADVICE[reason] ?? ''}`
  cluster.recorder.record({ object: nodeObject(node), type: 'Warning', reason, message, component: COMPONENT.node })
  return transient(message, { code: reason })
}

const ADVICE: Readonly<Record<string, string>> = {
  AddressMissing: '. It is looked for again',
  ProvidedNodeIPNotFound:
    '. Give kubelet one of these, or let the cloud list the address: at Hetzner it belongs to a network or an address family that can be set (HCLOUD_NETWORK, HCLOUD_INSTANCES_ADDRESS_FAMILY)',
}
