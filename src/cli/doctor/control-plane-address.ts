import type { Call } from '../../call.ts'
import { spelledOut, taggedWith } from '../../cloud/cherry/control-plane-address.ts'
import type { Address, Server } from '../../cloud/cherry/model.ts'
import { providerIdOf } from '../../cloud/cherry/provider-id.ts'
import type { CherrySettings } from '../../config/types.ts'
import { NOTHING_KNOWN, readControlPlane } from '../../controllers/control-plane-ip/control-plane.ts'
import type { ControlPlaneNode } from '../../controllers/control-plane-ip/decide.ts'
import { type ApiServerTrust, createHealth } from '../../controllers/control-plane-ip/health.ts'
import { type Asking, judge, PROBING, thoseThatAnswer } from '../../controllers/control-plane-ip/judge.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import { type CherryAccount, serverOf } from './cherry.ts'
import { looked, ok, problem, some, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'control plane address'
const ROLE = 'node-role.kubernetes.io/control-plane'
const MOVABLE = 'floating-ip'

/** How to ask the cluster about its control plane. */
export interface AskedCluster {
  kubernetes: KubernetesApi
  trust(): ApiServerTrust
}

/**
 * The floating address of the control plane: which it is, where it is, who could have it, and whether an API server answers at it.
 * @param cluster undefined when it could not be asked
 */
export async function checkControlPlaneAddress(
  settings: CherrySettings,
  { servers = [], addresses }: CherryAccount,
  cluster: AskedCluster | undefined,
  call: Call,
): Promise<Finding[]> {
  const { fipTag, projectId } = settings
  if (!fipTag || !addresses) return []
  const tag = spelledOut(fipTag)
  const [address, ...others] = taggedWith(fipTag, addresses)
  if (!address)
    return [
      problem(
        AREA,
        `No address of project ${projectId} has the tag ${tag}`,
        "Give the control plane's floating IP this tag at Cherry Servers, or correct CHERRY_FIP_TAG",
      ),
    ]
  const findings: Finding[] = []
  if (others.length > 0)
    findings.push(
      warning(
        AREA,
        `Several addresses have the tag ${tag}: ${[address, ...others].map((one) => one.address).join(', ')}. The first one is looked after, and the order is Cherry's`,
        'Leave the tag on one of them',
      ),
    )
  if (address.type !== MOVABLE)
    findings.push(
      problem(
        AREA,
        `${address.address} has the tag ${tag} and is of type ${address.type}: it can not be moved`,
        'Put the tag on a floating IP',
      ),
    )
  if (!cluster) return findings
  const rest = looked(AREA, 'See what was found about the cluster', () =>
    checkPlace(settings, address, servers, cluster, call),
  )
  return [...findings, ...(await rest)]
}

async function checkPlace(
  settings: CherrySettings,
  address: Address,
  servers: readonly Server[],
  { kubernetes, trust }: AskedCluster,
  call: Call,
): Promise<Finding[]> {
  const { nodes, known, port } = (await readControlPlane(kubernetes, NOTHING_KNOWN, call)).controlPlane
  const ip = address.address
  const findings = [...checkHolder(address, servers, nodes), ...checkMachines(address, servers, nodes)]
  if (port === undefined)
    return [
      ...findings,
      problem(
        AREA,
        'The port of the API servers is not known: Service default/kubernetes has no numeric target port, and no EndpointSlice of it has a port',
        'Look at Service default/kubernetes, which the API servers keep',
      ),
    ]
  const { target } = address
  const asking: Asking = {
    health: createHealth(trust),
    ip,
    port,
    address: { port: settings.apiServerPort, checkMachine: settings.fipHealthCheckUseHostIp },
    ...PROBING,
    signal: call.signal,
  }
  const holder = target === undefined ? undefined : [providerIdOf(target), String(target)]
  const judgement = await judge({ nodes, holder, known: new Set(known) }, asking)
  if (judgement.kind === 'sound') findings.push(ok(AREA, `An API server of this cluster answers at ${judgement.at}`))
  if (judgement.kind === 'failing') findings.push(silent(judgement.at, judgement.machine))
  const all = await thoseThatAnswer(nodes, asking)
  const deaf = nodes.filter((node) => !all.includes(node)).map(({ name }) => name)
  if (deaf.length > 0)
    findings.push(
      warning(
        AREA,
        `From here no API server answers at port ${port} of ${some(deaf)}: the address would not be moved to them`,
        'Nothing, if the doctor does not run where workers do; else let workers reach this port of control-plane nodes',
      ),
    )
  return findings
}

function silent(at: string, machine: ControlPlaneNode | undefined): Finding {
  return machine
    ? warning(
        AREA,
        `No API server of this cluster answers at ${at}, but machine ${machine.name}, which has the address, does at its own ones`,
        'Check CHERRY_API_SERVER_PORT, and whether the machine takes traffic for the address: kube-proxy makes it do so once workers have made Service kube-system/cloud-provider-cherry-kubernetes-external',
      )
    : warning(
        AREA,
        `No API server of this cluster answers at ${at} from here`,
        'Check CHERRY_API_SERVER_PORT, the machine that has the address, and the network between: workers move the address to a control-plane node that answers',
      )
}

function checkHolder(
  { address, target }: Address,
  servers: readonly Server[],
  nodes: readonly ControlPlaneNode[],
): Finding[] {
  if (target === undefined)
    return [ok(AREA, `${address} is assigned to no server yet: workers give it to a control-plane node that answers`)]
  const server = servers.find(({ id }) => id === target)
  const called = server ? `server ${server.hostname} (${target})` : `server ${target}`
  const node = nodes.find(({ providerId }) => providerId === providerIdOf(target) || providerId === String(target))
  return node
    ? [ok(AREA, `${address} is assigned to ${called}, control-plane node ${node.name}`)]
    : [
        warning(
          AREA,
          `${address} is assigned to ${called}, which is no control-plane node of this cluster: it stays there as long as an API server of the cluster answers at it`,
          `Assign it to a control-plane node, or give that server's Node the label ${ROLE}`,
        ),
      ]
}

/** Who could have the address: Cherry moves one only to servers of its own region. */
function checkMachines({ region }: Address, servers: readonly Server[], nodes: readonly ControlPlaneNode[]): Finding[] {
  if (nodes.length === 0)
    return [
      problem(
        AREA,
        `No node has the label ${ROLE}: nobody could take the address over`,
        'Label the nodes of the control plane',
      ),
    ]
  const placed = nodes.map((node) => ({ node, server: serverOf(node, servers) }))
  const strange = placed.filter(({ server }) => !server).map(({ node }) => node.name)
  const away = placed.filter(({ server }) => server && region !== '' && server.region !== region)
  return [
    ...(strange.length === 0
      ? []
      : [
          warning(
            AREA,
            `Control-plane nodes that can not have it, since they are no servers of the project: ${some(strange)}`,
            'Nothing, if others can',
          ),
        ]),
    ...(away.length === 0
      ? []
      : [
          warning(
            AREA,
            `Control-plane nodes that can not have it, since they are not in its region ${region}: ${some(away.map(({ node, server }) => `${node.name} (${server?.region})`))}`,
            'Nothing, if others can',
          ),
        ]),
  ]
}
