import ipaddr from 'ipaddr.js'
import type { Call } from '../../call.ts'
import { parseCidr } from '../../config/grammar.ts'
import type { Cluster } from '../../controllers/cluster.ts'
import { findMachine } from '../../controllers/node/lookup.ts'
import { isUninitialised, planNode } from '../../controllers/node/plan.ts'
import { messageOf, WindlassError } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { ok, problem, some, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'nodes'
const AT_A_TIME = 16

/**
 * What the nodes tell about the flags of their kubelets, and whether the cloud knows their machines.
 * @param askable those of them whose cloud can be asked
 */
export async function checkNodes(
  cluster: Cluster,
  nodes: readonly NodeProjection[],
  askable: readonly NodeProjection[],
  call: Call,
): Promise<Finding[]> {
  const findings = [...checkFlags(cluster, nodes), ...checkPodCidrs(cluster, nodes)]
  const { clouds } = cluster
  const ours = nodes.filter(
    ({ providerId }) => clouds.length === 0 || providerId === undefined || clouds.some((one) => one.owns(providerId)),
  )
  const asked = clouds.length === 0 ? [] : ours.filter((node) => askable.includes(node))
  const unasked = ours.filter((node) => !asked.includes(node)).map(({ name }) => name)
  if (unasked.length > 0)
    findings.push(
      warning(
        AREA,
        `Not compared with machines, for want of a cloud that answers: ${some(unasked)}`,
        'See what was found about the cloud',
      ),
    )
  for (let i = 0; i < asked.length; i += AT_A_TIME)
    findings.push(
      ...(await Promise.all(asked.slice(i, i + AT_A_TIME).map((node) => checkMachine(cluster, node, call)))).flat(),
    )
  return findings.length > 0 ? findings : [ok(AREA, `${nodes.length} nodes are as a cloud controller needs them`)]
}

function checkFlags({ clouds }: Cluster, nodes: readonly NodeProjection[]): Finding[] {
  const names = (of: (node: NodeProjection) => boolean) => nodes.filter(of).map(({ name }) => name)
  const internal = names((node) => node.providerId === undefined && !isUninitialised(node))
  // Without any cloud none is another's.
  const known = clouds.length > 0 ? nodes : []
  const foreign = known.filter(({ providerId }) => providerId && !clouds.some((cloud) => cloud.owns(providerId)))
  return [
    ...(internal.length === 0
      ? []
      : [
          problem(
            AREA,
            `No provider id, and no taint that asks for one: ${some(internal)}`,
            'Start their kubelets with --cloud-provider=external, delete these Nodes and let the kubelets register them anew',
          ),
        ]),
    ...(foreign.length === 0
      ? []
      : [
          warning(
            AREA,
            `Provider ids of no cloud that is configured: ${some(foreign.map(({ name, providerId }) => `${name} (${providerId})`))}`,
            'Nothing, if another cloud controller looks after them; else configure their cloud, or register the nodes anew (a provider id can not be changed)',
          ),
        ]),
  ]
}

async function checkMachine(cluster: Cluster, node: NodeProjection, call: Call): Promise<Finding[]> {
  const { name } = node
  try {
    const lookup = await findMachine(cluster.clouds, node, call)
    if (lookup.kind === 'ambiguous') return [problem(AREA, lookup.message, 'Make the names differ')]
    if (lookup.kind === 'not-found')
      return [
        problem(
          AREA,
          `Node ${name}: no machine found (${lookup.searched})${lookup.nearest ? `; the nearest name there is ${lookup.nearest}` : ''}`,
          "Use a token of the machine's project, and name the node as the server, or set --provider-id at its kubelet",
        ),
      ]
    if (lookup.kind === 'foreign') return []
    const plan = planNode({ ...node, taints: [...node.taints, UNINITIALISED] }, lookup.instance)
    return 'fault' in plan
      ? [
          problem(
            AREA,
            `Node ${name}: ${plan.fault}`,
            'Give kubelet one of these by --node-ip, or configure the network or address family that it belongs to',
          ),
        ]
      : []
  } catch (error) {
    if (error instanceof WindlassError && error.code === 'malformed_provider_id')
      return [
        problem(
          AREA,
          messageOf(error),
          'Take --provider-id off its kubelet or correct it, delete the Node and let the kubelet register it anew: a provider id can not be changed',
        ),
      ]
    return [problem(AREA, `Node ${name}: ${messageOf(error)}`, 'See what was found about the cloud')]
  }
}

/** With it the kubelet's address is looked at as at the first time. */
const UNINITIALISED = { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' }

/** A pod network that is not within the cluster's gets no route, and one that nobody named gets none either. */
function checkPodCidrs({ framework, clouds }: Cluster, nodes: readonly NodeProjection[]): Finding[] {
  const { clusterCidrs, configureCloudRoutes, controllers } = framework
  const routed = configureCloudRoutes && controllers.has('node-route-controller') && clouds.some(({ routes }) => routes)
  if (!routed) return []
  if (clusterCidrs.length === 0)
    return [
      warning(
        AREA,
        'Pod routes are on, and no cluster CIDR is set: no route is made',
        "Set --cluster-cidr to the cluster's pod network, or HCLOUD_NETWORK_ROUTES_ENABLED=false",
      ),
    ]
  const outside = nodes.flatMap(({ name, podCidrs }) =>
    podCidrs.filter((cidr) => !clusterCidrs.some((range) => isWithin(cidr, range))).map((cidr) => `${name} (${cidr})`),
  )
  return outside.length === 0
    ? []
    : [
        problem(
          AREA,
          `Pod CIDRs outside of the cluster CIDR ${clusterCidrs.join(', ')}: ${some(outside)}`,
          'Set --cluster-cidr to what kube-controller-manager assigns pod CIDRs from',
        ),
      ]
}

function isWithin(cidr: string, range: string): boolean {
  const [inner, outer] = [parseCidr(cidr), parseCidr(range)]
  if (!('value' in inner) || !('value' in outer) || inner.value.family !== outer.value.family) return false
  const [address, prefix] = ipaddr.parseCIDR(outer.value.network)
  return inner.value.prefix >= prefix && ipaddr.parse(inner.value.address).match(address, prefix)
}
