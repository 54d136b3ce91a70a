import type { Call } from '../../call.ts'
import { createBudget } from '../../cloud/budget.ts'
import { createHcloudClient, type HcloudClient } from '../../cloud/hcloud/client.ts'
import type { Server } from '../../cloud/hcloud/model.ts'
import { createConfiguredNetwork } from '../../cloud/hcloud/network.ts'
import { parseProviderId } from '../../cloud/hcloud/provider-id.ts'
import { createRobotClient } from '../../cloud/robot/client.ts'
import type { HcloudSettings } from '../../config/types.ts'
import { kindOf, messageOf, WindlassError } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { HttpClient } from '../../http/client.ts'
import { VERSION } from '../../version.ts'
import { looked, ok, problem, some, warning } from './finding.ts'
import type { Finding } from './types.ts'

const CLOUD = 'hetzner cloud'
const NETWORK = 'hetzner network'
const ROBOT = 'hetzner robot'
const HOUR_MS = 3_600_000

export interface HcloudFindings {
  findings: Finding[]
  /** False when Robot refused the login: nobody may try it again, since three times block the address. */
  robotIsGood: boolean
}

export interface AskedNodes {
  /** Undefined when the cluster could not be asked. */
  nodes: readonly NodeProjection[] | undefined
  /** No other cloud has nodes in this cluster. */
  alone: boolean
}

/** Token, project, network and Robot login, each with as few requests as can be. */
export async function checkHcloud(
  settings: HcloudSettings,
  { nodes, alone }: AskedNodes,
  call: Call,
): Promise<HcloudFindings> {
  const http = new HttpClient()
  const budget = (account: string) => (credential: string) =>
    createBudget({ prefix: 'windlass', account, credential, limit: 3600, windowMs: HOUR_MS })
  const client = createHcloudClient({
    http,
    endpoint: settings.endpoint,
    token: settings.token,
    budget: budget('Hetzner Cloud'),
    version: VERSION,
  })
  try {
    const askedRobot = checkRobot(settings, http, budget('Hetzner Robot'), call)
    const token = await checkToken(client, call)
    const good = token.every(({ level }) => level !== 'problem') || token.some(({ level }) => level === 'ok')
    const servers = good ? await client.servers.list(call).catch((error: unknown) => error) : undefined
    const network = createConfiguredNetwork({ client, http, settings })
    const robot = await askedRobot
    return {
      findings: [
        ...token,
        ...(good ? checkProject(servers, { nodes, alone }) : []),
        ...(good ? await checkNetwork(settings, network, Array.isArray(servers) ? servers : [], nodes, call) : []),
        ...robot,
      ],
      robotIsGood: robot.every(({ level }) => level === 'ok'),
    }
  } finally {
    http.close()
  }
}

/** Whether it may write is told by how a request is refused that could never do anything: a load balancer without name and type. */
async function checkToken(client: HcloudClient, call: Call): Promise<Finding[]> {
  try {
    await client.checkToken(call)
  } catch (error) {
    const refused = kindOf(error) === 'permanent'
    return [
      problem(
        CLOUD,
        messageOf(error),
        refused
          ? 'Set HCLOUD_TOKEN to a token with read and write permission of the project that has the servers'
          : 'Check HCLOUD_ENDPOINT and the network between',
      ),
    ]
  }
  const answers = ok(CLOUD, 'Hetzner Cloud takes the token')
  try {
    await client.loadBalancers.create({}, call)
  } catch (error) {
    const { code, status } = error instanceof WindlassError ? error : {}
    if (code === 'token_readonly')
      return [
        answers,
        problem(CLOUD, 'The token may only read', 'Set HCLOUD_TOKEN to one with read and write permission'),
      ]
    if (code === 'invalid_input' || code === 'json_error' || status === 400 || status === 422)
      return [answers, ok(CLOUD, 'The token may write')]
    return [
      answers,
      warning(
        CLOUD,
        `Whether the token may write is not known: ${messageOf(error)}`,
        'Look at the token in the console',
      ),
    ]
  }
  return [answers, ok(CLOUD, 'The token may write')]
}

function checkProject(servers: unknown, { nodes, alone }: AskedNodes): Finding[] {
  if (!Array.isArray(servers))
    return [problem(CLOUD, `The servers could not be listed: ${messageOf(servers)}`, 'Try again, or ask Hetzner')]
  if (nodes === undefined) return [ok(CLOUD, `The project has ${servers.length} servers`)]
  const known = servers as Server[]
  const ids = new Set<number>(known.map(({ id }) => id))
  const names = new Set(known.map(({ name }) => name))
  const concerned = nodes.filter(({ name, providerId }) =>
    providerId ? parseProviderId(providerId).kind === 'cloud' : alone || names.has(name),
  )
  const missing = concerned.filter(({ name, providerId }) => {
    const parsed = providerId === undefined ? undefined : parseProviderId(providerId)
    return parsed?.kind === 'cloud' ? !ids.has(parsed.id) : !names.has(name)
  })
  const found = concerned.length - missing.length
  if (concerned.length > 0 && found === 0)
    return [
      problem(
        CLOUD,
        `The token's project has ${known.length} servers, and none of the cluster's ${concerned.length} nodes is among them`,
        "Use a token of the cluster's project",
      ),
    ]
  return missing.length === 0
    ? [ok(CLOUD, `The project has the servers of all ${concerned.length} nodes`)]
    : [
        warning(
          CLOUD,
          `The project has the servers of ${found} of ${concerned.length} nodes, and not those of ${some(missing.map(({ name }) => name))}`,
          'Name the nodes as their servers, or look whether these servers are in another project or deleted',
        ),
      ]
}

async function checkNetwork(
  { network: wanted, networkDisableAttachedCheck, loadBalancers }: HcloudSettings,
  network: ReturnType<typeof createConfiguredNetwork>,
  servers: readonly Server[],
  nodes: readonly NodeProjection[] | undefined,
  call: Call,
): Promise<Finding[]> {
  if (wanted === undefined && loadBalancers.enabled && loadBalancers.usePrivateIp)
    return [
      problem(
        NETWORK,
        'Load balancers are to reach nodes by their private addresses, and no network is configured: no Service gets one',
        'Set HCLOUD_NETWORK, or HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP=false',
      ),
    ]
  if (wanted === undefined) return [ok(NETWORK, 'No network is configured')]
  return await looked(NETWORK, 'Set HCLOUD_NETWORK to the name or id of a network of this project', async () => {
    const { id, ipRange } = await network.read(call)
    const findings = [ok(NETWORK, `Network ${wanted} (${id}) is there, ${ipRange}`)]
    const names = new Set(nodes?.map(({ name }) => name))
    const outside = servers.filter(
      ({ name, privateNets }) => names.has(name) && !privateNets.some((net) => net.network === id),
    )
    if (outside.length > 0)
      findings.push(
        warning(
          NETWORK,
          `Servers that are not attached to it: ${some(outside.map(({ name }) => name))}`,
          'Attach them: without it they get no private address, no pod route, and are no private targets',
        ),
      )
    if (networkDisableAttachedCheck) return findings
    try {
      await network.checkAttached(call)
      findings.push(ok(NETWORK, 'This machine is attached to it'))
    } catch (error) {
      // Whoever asks from his own desk is not where Windlass runs.
      findings.push(
        warning(
          NETWORK,
          messageOf(error),
          'Nothing, if the doctor does not run where workers do: there the server must be attached, or HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK=true',
        ),
      )
    }
    return findings
  })
}

async function checkRobot(
  { robot }: HcloudSettings,
  http: HttpClient,
  budget: Parameters<typeof createRobotClient>[0]['budget'],
  call: Call,
): Promise<Finding[]> {
  if (!robot) return []
  const { user, password } = robot
  if (!user || !password)
    return [warning(ROBOT, 'Robot is on and has no login', 'Set ROBOT_USER and ROBOT_PASSWORD, or ROBOT_ENABLED=false')]
  const client = createRobotClient({
    http,
    settings: { ...robot, user, password },
    prefix: 'windlass',
    budget,
    version: VERSION,
  })
  return await looked(ROBOT, 'Correct ROBOT_USER and ROBOT_PASSWORD before anything asks again', async () => [
    ok(ROBOT, `Robot takes the login and lists ${(await client.servers(call)).length} servers`),
  ])
}
