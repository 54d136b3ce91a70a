import { messageOf } from '../errors.ts'
import type { CommandContext } from './context.ts'
import { planCluster } from './plan/plan-cluster.ts'
import { planText } from './plan/text.ts'
import type { ClusterPlan, PlanDocument } from './plan/types.ts'
import { openReadOnly, type ReadOnlyCluster, readOnlyCall } from './read-only.ts'

const NOTHING_TO_DO = 0
const FAILED = 1
const CHANGES = 2

/** `windlass plan`: what the workers would do now, and does none of it. Needs no Redis. */
export async function run({ settings, flags, log: given }: CommandContext): Promise<number> {
  // A line for each request would drown what is planned.
  const log = given.level === 'info' ? given.child({}, { level: 'warn' }) : given
  const plans: ClusterPlan[] = []
  for (const one of settings.clusters) {
    let cluster: ReadOnlyCluster | undefined
    try {
      cluster = await openReadOnly(one, log.child({ cluster: one.id }))
      plans.push(await planCluster(cluster, flags.subjects, readOnlyCall(log)))
    } catch (error) {
      const fault = messageOf(error)
      process.stderr.write(`windlass plan, cluster ${one.id}: ${fault}\n`)
      plans.push({ cluster: one.id, items: [], fault })
    } finally {
      await cluster?.close()
    }
  }
  const document: PlanDocument = { v: 1, clusters: plans }
  const told = plans.filter(({ fault }) => fault === undefined)
  process.stdout.write(flags.json ? `${JSON.stringify(document, undefined, 2)}\n` : told.map(planText).join('\n'))
  const items = plans.flatMap((plan) => plan.items)
  if (told.length < plans.length || items.some(({ faults }) => faults.length > 0)) return FAILED
  return items.some(({ changes }) => changes.length > 0) ? CHANGES : NOTHING_TO_DO
}
