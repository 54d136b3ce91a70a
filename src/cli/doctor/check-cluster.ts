import type { Call } from '../../call.ts'
import type { ClusterSettings, Settings } from '../../config/types.ts'
import { readFreshNodes } from '../../controllers/nodes.ts'
import { messageOf } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { createKubernetesApi } from '../../kubernetes/api.ts'
import { connect } from '../../kubernetes/connection.ts'
import type { Logger } from '../../telemetry/log.ts'
import { openReadOnly, readOnlyCall } from '../read-only.ts'
import { looked, ok, problem } from './finding.ts'
import { checkHcloud } from './hcloud.ts'
import { checkNodes } from './nodes.ts'
import { checkOtherController } from './other-controller.ts'
import { checkRights } from './rights.ts'
import { checkServer } from './server.ts'
import type { Finding } from './types.ts'

/** Everything about one cluster. Never throws. */
export async function checkCluster(
  settings: ClusterSettings,
  { forwarder }: Settings,
  log: Logger,
): Promise<Finding[]> {
  const findings: Finding[] = []
  const nodes = await checkKubernetes(settings, findings, log)
  const { hcloud } = settings.clouds
  let usable = settings
  if (hcloud) {
    const { findings: found, robotIsGood } = await checkHcloud(hcloud, nodes, probingCall(log))
    findings.push(...found)
    // Robot blocks an address after three refused logins: one is enough.
    const { robot: _, ...withoutRobot } = hcloud
    if (!robotIsGood) usable = { ...settings, clouds: { ...settings.clouds, hcloud: withoutRobot } }
  }
  if (settings.clouds.cherry) findings.push(...(await checkCherry(usable, log)))
  const cloudsAnswer = findings.every(({ area, level }) => level !== 'problem' || !OF_CLOUDS.has(area))
  if (nodes)
    findings.push(
      ...(await looked('nodes', 'See the other findings first', async () => {
        const cluster = await openReadOnly(usable, log)
        try {
          const known = usable === settings ? nodes : withoutRobots(nodes)
          return await checkNodes(cluster, nodes, cloudsAnswer ? known : [], readOnlyCall(log))
        } finally {
          await cluster.close()
        }
      })),
    )
  findings.push(...(await checkServer(settings, forwarder)))
  return findings
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
      const { cherry } = settings.clouds
      findings.push(...(await checkRights(createKubernetesApi(connection), cherry !== undefined, probingCall(log))))
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

async function checkCherry(settings: ClusterSettings, log: Logger): Promise<Finding[]> {
  return await looked(
    'cherry servers',
    'Set CHERRY_API_KEY and CHERRY_PROJECT_ID as your account has them',
    async () => {
      const cluster = await openReadOnly(settings, log)
      try {
        await cluster.clouds.find(({ name }) => name === 'cherryservers')?.check(readOnlyCall(log))
        return [ok('cherry servers', 'Cherry Servers takes the key, and it is good for the project')]
      } finally {
        await cluster.close()
      }
    },
  )
}

const withoutRobots = (nodes: readonly NodeProjection[]) =>
  nodes.filter(({ providerId }) => providerId !== undefined && !/^(hrobot:\/\/|hcloud:\/\/bm-)/.test(providerId))

/** For requests that are reads in effect, though not by their method: reviews of access, and one that the cloud always refuses. */
function probingCall(log: Logger): Call {
  return { ...readOnlyCall(log), beforeWrite: async () => {} }
}
