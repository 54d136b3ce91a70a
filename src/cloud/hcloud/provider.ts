import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Call } from '../../call.ts'
import type { HcloudSettings, RobotSettings } from '../../config/types.ts'
import { HttpClient } from '../../http/client.ts'
import { type Budget, createBudget } from '../budget.ts'
import type { CloudProvider } from '../provider.ts'
import type { Http, RequestReport } from '../requests.ts'
import { createRobotClient, type RobotClient } from '../robot/client.ts'
import { createRobotServers } from '../robot/servers.ts'
import { createActionPoller } from './actions.ts'
import { createHcloudClient } from './client.ts'
import { createInstances } from './instances.ts'
import { createLoadBalancers } from './load-balancers/load-balancers.ts'
import { createConfiguredNetwork } from './network.ts'
import { owns, parseProviderId } from './provider-id.ts'
import { createRoutes } from './routes.ts'
import { createServers } from './servers.ts'

export interface HcloudProviderOptions {
  settings: HcloudSettings
  /** Shares reads and budgets with all other workers; without it they are this process' own. */
  redis?: Redis
  /** Before every key in Redis, without trailing colon. */
  prefix: string
  log: Logger
  /** Closed with the provider when it is the provider's own. */
  http?: Http
  onRequest?: (report: RequestReport) => void
  /** Nothing is made, so what the API would refuse has to be foreseen as far as it can be. */
  onlyPlans?: boolean
  /** In the `User-Agent`. */
  version?: string
}

const HOUR_MS = 3_600_000
/** Requests an hour, until the API says otherwise. */
const HCLOUD_LIMIT = 3600
const ROBOT_LIMIT = 200

/** Hetzner Cloud, with the dedicated servers of Hetzner Robot beside it. */
export function createHcloudProvider(options: HcloudProviderOptions): CloudProvider {
  const { settings, redis, prefix, onRequest, onlyPlans = false, version = 'unknown' } = options
  const http = options.http ?? new HttpClient()
  const shared = { ...(redis ? { redis } : {}), prefix }
  const reported = onRequest ? { onRequest } : {}
  const client = createHcloudClient({
    http,
    endpoint: settings.endpoint,
    token: settings.token,
    debug: settings.debug,
    version,
    budget: budgets((credential) =>
      createBudget({ ...shared, account: 'Hetzner Cloud', credential, limit: HCLOUD_LIMIT, windowMs: HOUR_MS }),
    ),
    ...reported,
  })
  const actions = createActionPoller({ get: client.actions.get })
  const servers = createServers({
    client,
    ...shared,
    mode: settings.serverCacheMode,
    maxAgeMs: settings.serverCacheMaxAgeMs,
  })
  const network = createConfiguredNetwork({ client, http, settings, ...reported })
  const robotClient = createRobot(settings.robot, () => ({
    http,
    ...shared,
    version,
    budget: budgets((credential) =>
      createBudget({
        ...shared,
        account: 'Hetzner Robot',
        credential,
        limit: ROBOT_LIMIT,
        windowMs: HOUR_MS,
        rolling: true,
      }),
    ),
    ...reported,
  }))
  const robot =
    robotClient &&
    createRobotServers({ client: robotClient, ...shared, cacheTimeoutMs: settings.robot?.cacheTimeoutMs ?? 0 })
  const withRobot = robot ? { robot } : {}
  return {
    name: 'hcloud',
    owns,
    credentialId: (providerId) =>
      parseProviderId(providerId).kind === 'robot' ? (robotClient?.account() ?? 'no-robot') : client.account(),
    projectCredential: client.account,
    async check(call: Call) {
      await client.checkToken(call)
      await network.id(call)
      await network.checkAttached(call)
    },
    instances: createInstances({ servers, network, settings, ...withRobot }),
    ...(settings.loadBalancers.enabled
      ? {
          loadBalancers: createLoadBalancers({
            client,
            actions,
            servers,
            network,
            settings,
            onlyPlans,
            ...shared,
            ...withRobot,
          }),
        }
      : {}),
    ...(settings.network !== undefined && settings.networkRoutesEnabled
      ? { routes: createRoutes({ client, actions, servers, network }) }
      : {}),
    async close() {
      actions.close()
      if (!options.http) await http.close()
    },
  }
}

/** Without credentials Robot nodes are only targets, by the addresses that their kubelets report. */
function createRobot(
  settings: RobotSettings | undefined,
  options: () => Omit<Parameters<typeof createRobotClient>[0], 'settings'>,
): RobotClient | undefined {
  if (!settings?.user || !settings.password) return undefined
  const { user, password } = settings
  return createRobotClient({ ...options(), settings: { ...settings, user, password } })
}

/** One budget per credential; a secret that changes has one of its own. */
function budgets(create: (credential: string) => Budget): (credential: string) => Budget {
  let last: { credential: string; budget: Budget } | undefined
  return (credential) => {
    if (last?.credential !== credential) last = { credential, budget: create(credential) }
    return last.budget
  }
}
