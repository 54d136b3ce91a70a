import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../call.ts'
import { createLeaseWatch, LEASE, type LeaseState } from '../../controllers/takeover/lease.ts'
import { type ForeignWrite, newestForeignWrite } from '../../controllers/takeover/writes.ts'
import { messageOf, WindlassError } from '../../errors.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import { LEASES, NODES, SERVICES } from '../../kubernetes/resources.ts'
import { ok, problem, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'other controller'
const LOOK_MS = 1000
/** Longer than the time between two renewals. */
const LOOKS = 5
const RECENT_MS = 10 * 60_000

/** Whether another cloud controller manager works on this cluster. */
export async function checkOtherController(api: KubernetesApi, call: Call): Promise<Finding[]> {
  const [lease, writes] = await Promise.all([watchLease(api, call), recentWrites(api, call)])
  const findings: Finding[] = []
  if (lease.kind === 'unread')
    findings.push(
      warning(
        AREA,
        `Whether another cloud controller manager holds Lease ${LEASE.namespace}/${LEASE.name} is not known: ${lease.why}`,
        'Nothing, for a forwarder; an account of workers needs the rights of k8s/base',
      ),
    )
  if (lease.kind === 'held')
    findings.push(
      problem(
        AREA,
        `${lease.holder} renews Lease ${LEASE.namespace}/${LEASE.name}: another cloud controller manager runs`,
        'Scale it down before workers start; until then they only plan',
      ),
    )
  if (lease.kind === 'undecided' || lease.kind === 'stale')
    findings.push(
      warning(
        AREA,
        `Lease ${LEASE.namespace}/${LEASE.name} names ${lease.holder}, who did not renew it within ${LOOKS * (LOOK_MS / 1000)} s`,
        'Nothing, if that one was just ended; deleting the Lease lets workers start at once',
      ),
    )
  for (const [manager, atMs] of writes)
    findings.push(
      warning(
        AREA,
        `${manager} wrote to Nodes or Services ${Math.max(0, Math.round((Date.now() - atMs) / 1000))} s ago`,
        'Make sure that it does not run any more: some cloud controllers take no lease',
      ),
    )
  return findings.length > 0 ? findings : [ok(AREA, 'No other cloud controller manager was seen')]
}

/** An account that may not read it is a forwarder's, or one whose missing rights are told besides. */
async function watchLease(api: KubernetesApi, call: Call): Promise<LeaseState | { kind: 'unread'; why: string }> {
  try {
    return await watchReadable(api, call)
  } catch (error) {
    if (error instanceof WindlassError && error.status === 403) return { kind: 'unread', why: messageOf(error) }
    throw error
  }
}

async function watchReadable(api: KubernetesApi, call: Call): Promise<LeaseState> {
  const watch = createLeaseWatch()
  for (let looks = 0; ; looks++) {
    const state = watch.see(await api.get(LEASES, LEASE, call), performance.now(), Date.now())
    if (state.kind !== 'undecided' || looks === LOOKS) return state
    await delay(LOOK_MS)
  }
}

/** By manager. */
async function recentWrites(api: KubernetesApi, call: Call): Promise<Map<string, number>> {
  const lists = await Promise.all([
    api.list(SERVICES, { project: ({ metadata }) => newestForeignWrite(metadata) }, call),
    api.list(NODES, { project: ({ metadata }) => newestForeignWrite(metadata) }, call),
  ])
  const newest = new Map<string, number>()
  const recent = (write: ForeignWrite | undefined): write is ForeignWrite =>
    write !== undefined && Date.now() - write.atMs < RECENT_MS
  for (const { manager, atMs } of lists.flatMap(({ items }) => items).filter(recent))
    newest.set(manager, Math.max(atMs, newest.get(manager) ?? 0))
  return newest
}
