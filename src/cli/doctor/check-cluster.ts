import type { Call } from '../../call.ts'
import { CREDENTIALS } from '../../config/clouds.ts'
import type { CherrySettings, ClusterSettings, Settings } from '../../config/types.ts'
import { readFreshNodes } from '../../controllers/nodes.ts'
import { messageOf } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { createKubernetesApi } from '../../kubernetes/api.ts'
import { connect } from '../../kubernetes/connection.ts'
import type { Logger } from '../../telemetry/log.ts'
import { openReadOnly, readOnlyCall } from '../read-only.ts'
import { checkCherry } from './cherry.ts'
import { balancerOf, checkCherryLoadBalancers } from './cherry-load-balancers.ts'
import { checkControlPlaneAddress } from './control-plane-address.ts'
import { looked, ok, problem, warning } from './finding.ts'
import { checkHcloud } from './hcloud.ts'
import { checkFormerMetallb, checkMetallb } from './metallb.ts'
import { checkNodes } from './nodes.ts'
import { checkOrphans } from './orphans.ts'
import { checkOtherController } from './other-controller.ts'
import { checkRights } from './rights.ts'
import { checkServer } from './server.ts'
import type { Finding } from './types.ts'

/** Everything about one cluster. Never throws. */
export async function checkCluster(settings: ClusterSettings, shared: Settings, log: Logger): Promise<Finding[]> {
  const findings: Finding[] = []
  const nodes = await checkKubernetes(settings, findings, log)
  const { hcloud, cherry } = settings.clouds
  let usable = settings
  if (!hcloud && !cherry) findings.push(noCloud(shared))
  // A cloud that says nothing is waited for long enough alone.
  const [ofHetzner, ofCherry] = await Promise.all([
    hcloud && checkHcloud(hcloud, { nodes, alone: !cherry }, probingCall(log)),
    cherry && checkAllOfCherry(settings, cherry, nodes, log),
  ])
  findings.push(...(ofHetzner?.findings ?? []), ...(ofCherry ?? []))
  if (hcloud && ofHetzner?.robotIsGood === false) {
    // Robot blocks an address after three refused logins: one is enough.
    const { robot: _, ...withoutRobot } = hcloud
    usable = { ...settings, clouds: { ...settings.clouds, hcloud: withoutRobot } }
  }
  const cloudsAnswer = findings.every(({ area, level }) => level !== 'problem' || !OF_CLOUDS.has(area))
  if (nodes)
    findings.push(
      ...(await looked('nodes', 'See the other findings first', async () => {
        const cluster = await openReadOnly(usable, log)
        try {
          const known = usable === settings ? nodes : withoutRobots(nodes)
          return [
            ...(await checkNodes(cluster, nodes, cloudsAnswer ? known : [], readOnlyCall(log))),
            ...(cloudsAnswer ? await checkOrphans(cluster, nodes, readOnlyCall(log)) : []),
          ]
        } finally {
          await cluster.close()
        }
      })),
    )
  findings.push(...(await checkServer(settings, shared.forwarder)))
  return findings
}

/** A forwarder needs no cloud, and whoever has a server to send to may be one. */
function noCloud({ redis, forwarder }: Settings): Finding {
  const what = 'No cloud is configured'
  const toDo = `${CREDENTIALS}; in a file of clusters, give the cluster a block hcloud or cherry`
  return forwarder.serverUrl !== '' && redis.url === ''
    ? warning('cloud', what, `Nothing, for a forwarder. For workers: ${toDo}`)
    : problem('cloud', `${what}, so workers would not start`, toDo)
}

/** Without these it can't be told whether machines are there; Robot's nodes are left out alone. */
const OF_CLOUDS = new Set(['hetzner cloud', 'hetzner network', 'cherry servers'])

/** Undefined when the cluster could not be asked for its nodes. */
async function checkKubernetes(
  settings: ClusterSettings,
  findings: Finding[],
  log: Logger,
): Promise<NodeProjection[] | undefined> {
  const advice = 'Check KUBECONFIG, its context, and the network between'
  let cluster: Awaited<ReturnType<typeof openReadOnly>> | undefined
  try {
    // Without clouds: this part is about Kubernetes.
    cluster = await openReadOnly({ ...settings, clouds: {} }, log)
    const nodes = await readFreshNodes(cluster, readOnlyCall(log))
    findings.push(ok('kubernetes', `The API server answers and lists ${nodes.length} nodes`))
    const api = cluster.kubernetes
    const connection = await connect(settings.kubernetes, log)
    try {
      const probing = createKubernetesApi(connection)
      const { cherry } = settings.clouds
      const balancer = cherry && balancerOf(cherry, settings.framework)
      const metallb = balancer?.kind === 'metallb' ? balancer.namespace : undefined
      const needs = { ...(metallb === undefined ? {} : { metallb }), address: Boolean(cherry?.fipTag) }
      findings.push(...(await checkRights(probing, needs, probingCall(log))))
      if (metallb !== undefined) findings.push(...(await checkMetallb(probing, metallb, probingCall(log))))
      if (balancer) findings.push(...(await checkFormerMetallb(probing, metallb, probingCall(log))))
      findings.push(
        ...(await looked('other controller', 'Grant the rights of k8s/base', () =>
          checkOtherController(api, readOnlyCall(log)),
        )),
      )
    } finally {
      connection.close()
    }
    return nodes
  } catch (error) {
    findings.push(problem('kubernetes', messageOf(error), advice))
    return undefined
  } finally {
    await cluster?.close()
  }
}

async function checkAllOfCherry(
  settings: ClusterSettings,
  cherry: CherrySettings,
  nodes: NodeProjection[] | undefined,
  log: Logger,
): Promise<Finding[]> {
  const call = readOnlyCall(log)
  const { findings, account } = await checkCherry({ settings: cherry, nodes, alone: !settings.clouds.hcloud }, call)
  if (!account) return findings
  const { framework } = settings
  findings.push(...checkCherryLoadBalancers({ settings: cherry, framework, account, nodes }))
  const cluster = nodes && (await openReadOnly({ ...settings, clouds: {} }, log))
  try {
    findings.push(...(await checkControlPlaneAddress(cherry, account, cluster, call)))
  } finally {
    await cluster?.close()
  }
  return findings
}

const withoutRobots = (nodes: readonly NodeProjection[]) =>
  nodes.filter(({ providerId }) => providerId !== undefined && !/^(hrobot:\/\/|hcloud:\/\/bm-)/.test(providerId))

/** For requests that are reads in effect, though not by their method: reviews of access, and what is refused or not stored. */
function probingCall(log: Logger): Call {
  return { ...readOnlyCall(log), beforeWrite: async () => {} }
}
