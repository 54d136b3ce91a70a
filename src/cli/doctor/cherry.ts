import type { Call } from '../../call.ts'
import { createCherryClient } from '../../cloud/cherry/client.ts'
import type { Address, Project, Server } from '../../cloud/cherry/model.ts'
import { processPace } from '../../cloud/cherry/process-pace.ts'
import { parseProviderId } from '../../cloud/cherry/provider-id.ts'
import type { CherrySettings } from '../../config/types.ts'
import { kindOf, messageOf, WindlassError } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { HttpClient } from '../../http/client.ts'
import { VERSION } from '../../version.ts'
import { ok, problem, some, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'cherry servers'
/** Workers may use up what the account may ask for: then a question waits, and is asked again. */
const TRIES = 3

/** What the key shows. Lists are absent when they could not be read. */
export interface CherryAccount {
  project: Project
  servers?: readonly Server[]
  addresses?: readonly Address[]
}

export interface CherryQuestion {
  settings: CherrySettings
  /** Undefined when the cluster could not be asked. */
  nodes: readonly NodeProjection[] | undefined
  /** No other cloud has nodes in this cluster. */
  alone: boolean
}

/** The key, the project, and whether it is the project of the cluster's nodes. Without `account` the rest can't be looked at. */
export async function checkCherry(
  { settings, nodes, alone }: CherryQuestion,
  call: Call,
): Promise<{ findings: Finding[]; account?: CherryAccount }> {
  const http = new HttpClient()
  const client = createCherryClient({
    http,
    settings,
    version: VERSION,
    pace: (key) => processPace(settings.apiUrl, key),
  })
  try {
    const project = await inTurn(() => client.project.get(call))
    if (!project) return { findings: [noProject(settings)] }
    const findings = [
      ok(AREA, `Cherry Servers takes the key, and shows project ${settings.projectId} ("${project.name}")`),
    ]
    const read = async <T>(what: string, list: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await inTurn(list)
      } catch (error) {
        findings.push(problem(AREA, `The ${what} could not be listed: ${messageOf(error)}`, 'Try again later'))
        return undefined
      }
    }
    const servers = await read('servers', () => client.servers.list(call))
    const addresses = await read('addresses', () => client.addresses.list(call))
    if (servers) findings.push(checkServers(servers, nodes, alone))
    return { findings, account: { project, ...(servers ? { servers } : {}), ...(addresses ? { addresses } : {}) } }
  } catch (error) {
    return { findings: [refused(error, settings)] }
  } finally {
    http.close()
  }
}

async function inTurn<T>(ask: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await ask()
    } catch (error) {
      if (kindOf(error) !== 'throttled' || tried === TRIES) throw error
    }
  }
}

const noProject = ({ projectId }: CherrySettings) =>
  problem(
    AREA,
    `Cherry Servers has no project ${projectId} for this API key`,
    "Set CHERRY_PROJECT_ID to the project of the cluster's servers, and CHERRY_API_KEY to a key of the team that it belongs to",
  )

function refused(error: unknown, { apiUrl, projectId }: CherrySettings): Finding {
  const { status } = error instanceof WindlassError ? error : {}
  if (status === 401)
    return problem(
      AREA,
      'Cherry Servers refuses the API key',
      `Set CHERRY_API_KEY to a key that is valid, of the team that project ${projectId} belongs to`,
    )
  if (status === 403)
    return problem(
      AREA,
      `The API key is not good for project ${projectId}: ${messageOf(error)}`,
      'Set CHERRY_API_KEY to a key of the team that the project belongs to, or correct CHERRY_PROJECT_ID',
    )
  if (status === undefined && kindOf(error) === 'transient')
    return problem(
      AREA,
      `Cherry Servers does not answer at ${apiUrl}: ${messageOf(error)}`,
      'Check CHERRY_API_URL and the network between',
    )
  return problem(AREA, messageOf(error), 'Try again later, and ask Cherry Servers if it lasts')
}

function checkServers(
  servers: readonly Server[],
  nodes: readonly NodeProjection[] | undefined,
  alone: boolean,
): Finding {
  if (nodes === undefined) return ok(AREA, `The project has ${servers.length} servers`)
  const concerned = nodes.filter(
    (node) => isCherrys(node) || (node.providerId === undefined && (alone || serverOf(node, servers) !== undefined)),
  )
  const missing = concerned.filter((node) => serverOf(node, servers) === undefined)
  const found = concerned.length - missing.length
  if (missing.length === 0) return ok(AREA, `The project has the servers of all ${concerned.length} nodes`)
  if (found === 0)
    return problem(
      AREA,
      `The project has ${servers.length} servers, and none of the cluster's ${concerned.length} nodes is among them`,
      'Set CHERRY_PROJECT_ID to the project that has them',
    )
  return warning(
    AREA,
    `The project has the servers of ${found} of ${concerned.length} nodes, and not those of ${some(missing.map(({ name }) => name))}`,
    'Name the nodes as their servers, or look whether these servers are in another project or deleted',
  )
}

const isCherrys = ({ providerId }: NodeProjection) =>
  providerId !== undefined && parseProviderId(providerId).kind === 'server'

/** By its provider id, or, while it has none, by its name. */
export function serverOf(
  { name, providerId }: Pick<NodeProjection, 'name' | 'providerId'>,
  servers: readonly Server[],
): Server | undefined {
  const parsed = providerId === undefined ? undefined : parseProviderId(providerId)
  return servers.find(({ id, hostname }) => (parsed ? parsed.kind === 'server' && parsed.id === id : hostname === name))
}
