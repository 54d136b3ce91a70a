import type { Call } from '../../call.ts'
import type { ControlPlaneAddress } from '../../cloud/provider.ts'
import { NOTHING_KNOWN, readControlPlane } from '../../controllers/control-plane-ip/control-plane.ts'
import { planExternalService } from '../../controllers/control-plane-ip/external-service.ts'
import { createHealth } from '../../controllers/control-plane-ip/health.ts'
import { type Asking, judge, PROBING, thoseThatAnswer } from '../../controllers/control-plane-ip/judge.ts'
import { blank, faultsOf } from './item.ts'
import type { PlannedCluster } from './plan-cluster.ts'
import type { PlanItem } from './types.ts'

export const CONTROL_PLANE_ADDRESS_SUBJECT = 'Cluster/control-plane-address'

/** What the loop that keeps the control plane's address would do now, as far as can be told from here; undefined where there is none. */
export async function planControlPlaneAddress(cluster: PlannedCluster, call: Call): Promise<PlanItem | undefined> {
  const address = cluster.clouds.find((cloud) => cloud.controlPlaneAddress)?.controlPlaneAddress
  if (!address) return undefined
  const item = blank(CONTROL_PLANE_ADDRESS_SUBJECT)
  try {
    await planAddress(cluster, address, item, call)
  } catch (error) {
    item.faults.push(...faultsOf(error))
  }
  return item
}

async function planAddress(
  cluster: PlannedCluster,
  address: ControlPlaneAddress,
  item: PlanItem,
  call: Call,
): Promise<void> {
  const { address: found, searched } = await address.find(call)
  if (!found) {
    item.faults.push(`there is no ${searched}`)
    return
  }
  const { controlPlane, slices } = await readControlPlane(cluster.kubernetes, NOTHING_KNOWN, call)
  const { nodes, known, port } = controlPlane
  const { ip, holder } = found
  if (port === undefined) {
    item.faults.push('neither Service default/kubernetes nor its EndpointSlices say at which port the API servers are')
    return
  }
  const asking = { health: createHealth(cluster.trust), ip, port, address, ...PROBING, signal: call.signal }
  await planMove({ nodes, holder, known: new Set(known) }, asking, item)
  const facts = { ip, port: address.port || port, targetPort: port, slices }
  for (const { kind, summary } of await planExternalService(cluster.kubernetes, facts, call))
    item.changes.push({ at: 'kubernetes', kind, summary })
}

async function planMove(situation: Parameters<typeof judge>[0], asking: Asking, item: PlanItem): Promise<void> {
  const judgement = await judge(situation, asking)
  if (judgement.kind === 'sound') return
  const { why, candidates } = judgement
  const note = (reason: string, message: string) => item.notes.push({ type: 'Warning', reason, message })
  if (judgement.kind === 'failing' && judgement.machine) {
    const { name } = judgement.machine
    note(
      'ControlPlaneAddressInDoubt',
      `Of ${asking.ip}: ${why}, but machine ${name} does at its own addresses. Perhaps the way from here is broken, so it stays unless that lasts`,
    )
    return
  }
  const [next] = await thoseThatAnswer(candidates, asking)
  if (next)
    item.changes.push({
      at: 'cloud',
      kind: 'assign-address',
      summary: `assign ${asking.ip} to the machine of node ${next.name}: ${why}`,
    })
  else
    note(
      'ControlPlaneAddressStuck',
      `Of ${asking.ip}: ${why}, and no other API server of the control plane answers, so it stays where it is`,
    )
}
