import type { Call } from '../../call.ts'
import type { Cluster } from '../../controllers/cluster.ts'
import { findMachine } from '../../controllers/node/lookup.ts'
import { isUninitialised, type NodeChange, planLabels, planNode } from '../../controllers/node/plan.ts'
import { type Life, observeLife } from '../../controllers/node-lifecycle/life.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { subjectOf } from '../../events/subject.ts'
import { blank, faultsOf } from './item.ts'
import type { PlanItem, PlannedChange } from './types.ts'

/** What both controllers of a Node would do now. Its machine's absence is taken to last: then the verdict of the deletion is that which comes of it. */
export async function planOneNode(cluster: Cluster, node: NodeProjection, call: Call): Promise<PlanItem> {
  const { controllers } = cluster.framework
  const item = blank(subjectOf({ kind: 'Node', name: node.name }))
  const { providerId } = node
  if (providerId !== undefined && !cluster.clouds.some((cloud) => cloud.owns(providerId)))
    return { ...item, skipped: `its provider id ${providerId} belongs to no cloud of this cluster` }
  if (controllers.has('cloud-node-controller'))
    try {
      await planUpkeep(cluster, node, item, call)
    } catch (error) {
      item.faults.push(...faultsOf(error))
    }
  if (controllers.has('cloud-node-lifecycle-controller') && !isUninitialised(node))
    try {
      addLife(item, await observeLife(cluster, node, call))
    } catch (error) {
      for (const fault of faultsOf(error)) if (!item.faults.includes(fault)) item.faults.push(fault)
    }
  return item
}

async function planUpkeep(cluster: Cluster, node: NodeProjection, item: PlanItem, call: Call): Promise<void> {
  const lookup = await findMachine(cluster.clouds, node, call)
  if (lookup.kind === 'foreign') return
  item.notes.push(...lookup.notes)
  if (lookup.kind === 'found') {
    const plan = planNode(node, lookup.instance)
    if ('fault' in plan) item.faults.push(plan.fault)
    else {
      item.changes.push(...plan.changes.map(describe))
      if (plan.warning) item.notes.push({ type: 'Warning', ...plan.warning })
    }
    return
  }
  item.changes.push(...(isUninitialised(node) ? [] : planLabels(node).map(describe)))
  if (!isUninitialised(node)) return
  item.faults.push(
    lookup.kind === 'ambiguous'
      ? lookup.message
      : `no machine found (${lookup.searched})${lookup.nearest ? `; the nearest name there is ${lookup.nearest}` : ''}`,
  )
}

function describe(change: NodeChange): PlannedChange {
  const { kind, summary } = change
  const more = kind === 'initialise' ? Object.entries(change.labels).map(([key, value]) => `${key}=${value}`) : []
  return {
    at: 'kubernetes',
    kind,
    summary: more.length > 0 ? `${summary}, take off its taint, set labels ${more.join(', ')}` : summary,
  }
}

function addLife(item: PlanItem, { step, notes }: Life): void {
  for (const note of notes)
    if (!item.notes.some(({ reason, message }) => reason === note.reason && message === note.message))
      item.notes.push(note)
  switch (step.kind) {
    case 'rest':
    case 'wait':
      return
    case 'hold':
      item.notes.push({
        type: 'Warning',
        reason: 'NodeDeletionHeld',
        message: `It is not ready and its machine is not found, yet it is kept: ${step.why}`,
      })
      return
    case 'set-shutdown':
      item.changes.push({
        at: 'kubernetes',
        kind: 'set-shutdown-taint',
        summary: step.off ? 'set the shutdown taint: its machine is off' : 'take off the shutdown taint: it is Ready',
      })
      return
    case 'delete':
      item.changes.push({
        at: 'kubernetes',
        kind: 'delete-node',
        summary: 'delete the Node, if its machine stays not found and the Node not Ready',
      })
  }
}
