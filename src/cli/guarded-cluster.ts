import type { Call } from '../call.ts'
import type { Cluster } from '../controllers/cluster.ts'
import { TakeoverGuard } from '../controllers/takeover/guard.ts'
import { watchedApi } from '../controllers/takeover/watched-api.ts'
import { messageOf, throttled } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import { type PlannedCluster, planCluster } from './plan/plan-cluster.ts'
import { readOnlyCall, readOnlyView } from './read-only.ts'

export interface Guarded<C extends Cluster> {
  /** For the controllers. */
  cluster: C
  guard: TakeoverGuard
  /** A call that does not write while another controller runs, even if that one appears in the middle of a run. */
  guarded(call: Call): Call
}

/** After this time work that has to wait for another controller's end looks again. */
export const GUARDED_RETRY_MS = 2000

/** A cluster whose objects are watched for another controller's writes, and the guard that stops ours. */
export function guardCluster<C extends PlannedCluster>(given: C, log: Logger): Guarded<C> {
  const guard: TakeoverGuard = new TakeoverGuard({
    kubernetes: given.kubernetes,
    recorder: given.recorder,
    log,
    onFound: () => logPlan(given, log),
  })
  return {
    guard,
    cluster: { ...given, kubernetes: watchedApi(given.kubernetes, (metadata) => guard.see(metadata)) },
    guarded: (call) => ({
      ...call,
      async beforeWrite(what) {
        if (guard.problem !== undefined)
          throw throttled(`${what}: not done. ${guard.problem}`, Date.now() + GUARDED_RETRY_MS)
        await call.beforeWrite(what)
      },
    }),
  }
}

/** What would be done, once, for those who try out Windlass beside what it shall replace. */
async function logPlan(cluster: PlannedCluster, log: Logger): Promise<void> {
  try {
    const { items } = await planCluster(readOnlyView(cluster), [], readOnlyCall(log))
    for (const { subject, changes, faults } of items)
      if (changes.length + faults.length > 0)
        log.info({ object: subject, changes: changes.map(({ summary }) => summary), faults }, 'planned, not done')
    log.info({ objects: items.length }, 'planned everything beside another controller')
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'could not plan beside another controller')
  }
}
