import { subjectOf } from '../../events/subject.ts'
import type { Trigger } from '../../queue/types.ts'
import { ROUTES_KEY, TARGETS_KEY } from '../../state/node-projection.ts'
import type { Cluster } from '../cluster.ts'
import type { ReconcileRequest, ReconcileResult } from '../reconcile.ts'
import { needsCleanup, wantsLoadBalancer } from '../service/wants.ts'
import { correctNodes } from './correct-nodes.ts'
import { listInThisLife } from './life.ts'
import { reportOrphans } from './orphans.ts'

/**
 * Everything of a cluster once more, behind whatever a user waits for: repairs drift at the cloud, and what a lost trigger left behind.
 * What Windlass has a record of and the API does not list was deleted while nobody watched.
 */
export async function reconcileAll(cluster: Cluster, { call }: ReconcileRequest): Promise<ReconcileResult> {
  const { services, nodes, listVersion, isNewLife } = await listInThisLife(cluster, call)
  const missed = await correctNodes(cluster, nodes, listVersion, call)
  const { placing } = cluster
  const wanted = services.filter((service) => wantsLoadBalancer(service, placing) || needsCleanup(service, placing))
  const known = await cluster.state.services.all()
  const uids = new Set(wanted.map(({ uid }) => uid))
  // What happened in a new life before it was noticed was taken for old, and users wait for it.
  const again = { cause: 'resync', urgency: isNewLife ? 'user' : 'background' } as const
  const triggers: Trigger[] = [
    ...wanted.map(
      (service): Trigger => ({ kind: 'service', key: subjectOf({ kind: 'Service', ...service }), ...again }),
    ),
    ...[...known]
      .filter(([, { uid }]) => !uids.has(uid))
      .map(([name, { uid }]): Trigger => ({ kind: 'service', key: `Service/${name}`, uid, ...again })),
    ...nodes.map(({ name }): Trigger => ({ kind: 'node', key: `Node/${name}`, ...again })),
    { kind: 'route', key: ROUTES_KEY, ...again },
    ...(missed > 0 ? [{ kind: 'targets', key: TARGETS_KEY, ...again } as const] : []),
  ]
  await cluster.enqueuer.enqueue(cluster.id, triggers)
  // Where nothing is served yet, all requests are for that.
  const settled = wanted.length === 0 || known.size > 0
  if (settled && cluster.framework.controllers.has('service-lb-controller')) await reportOrphans(cluster, nodes, call)
  call.log.info({ services: wanted.length, nodes: nodes.length }, 'enqueued everything once more')
  return { requeueAfterMs: jittered(cluster.resyncPeriodMs) }
}

/** Between one and one and a quarter periods: the resyncs of many clusters drift apart. */
const jittered = (periodMs: number) => periodMs * (1 + Math.random() / 4)
