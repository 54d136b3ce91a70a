import type { Trigger } from '../../queue/types.ts'
import { type Cluster, nodeObject, recordNotes } from '../cluster.ts'
import { readNodes } from '../nodes.ts'
import type { ReconcileRequest, ReconcileResult } from '../reconcile.ts'
import { findMachine } from './lookup.ts'
import { isUninitialised, planNode } from './plan.ts'

const AT_A_TIME = 50

/**
 * One look at all initialised nodes: the addresses of a machine change without any event. Reads are shared, so it costs pages of servers and
 * not nodes; only nodes that lack something get a run of their own. That their machines were seen is kept, for the day on which one is not.
 */
export async function sweepAddresses(cluster: Cluster, { call }: ReconcileRequest): Promise<ReconcileResult> {
  const { nodes } = await readNodes(cluster, call)
  const upkeep = cluster.framework.controllers.has('cloud-node-controller')
  const initialised = nodes.filter((node) => !isUninitialised(node))
  const seen = new Map<string, { providerIds: string[]; ageMs: number }>()
  const triggers: Trigger[] = []
  for (let i = 0; i < initialised.length; i += AT_A_TIME) {
    const part = initialised.slice(i, i + AT_A_TIME)
    const lookups = await Promise.allSettled(part.map((node) => findMachine(cluster.clouds, node, call)))
    for (const [j, answer] of lookups.entries()) {
      const node = part[j]
      // What failed is the business of the node's own runs.
      if (!node || answer.status === 'rejected' || answer.value.kind === 'foreign') continue
      if (answer.value.kind !== 'found') {
        // A node that is ready, and whose machine was replaced, has no run of its own.
        recordNotes(cluster, nodeObject(node), answer.value.notes)
        continue
      }
      const { cloud, instance } = answer.value
      const { providerId } = instance
      const credentialId = cloud.credentialId(providerId)
      const { providerIds = [] } = seen.get(credentialId) ?? {}
      providerIds.push(providerId)
      seen.set(credentialId, { providerIds, ageMs: cloud.instances.maxAgeMs(providerId) })
      if (!upkeep) continue
      const plan = planNode(node, instance)
      if ('changes' in plan && plan.changes.length > 0)
        triggers.push({ kind: 'node', key: `Node/${node.name}`, cause: 'addresses', urgency: 'background' })
    }
  }
  for (const [credentialId, { providerIds, ageMs }] of seen)
    await cluster.state.sightings.seen(providerIds, credentialId, ageMs)
  if (triggers.length > 0) await cluster.enqueuer.enqueue(cluster.id, triggers)
  call.log.debug({ nodes: initialised.length, changed: triggers.length }, 'compared the addresses of all nodes')
  return { requeueAfterMs: cluster.framework.nodeStatusUpdateFrequencyMs }
}
