import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import type { CherrySettings } from '../../config/types.ts'
import { permanent, WindlassError } from '../../errors.ts'
import { HttpClient } from '../../http/client.ts'
import type { CloudProvider } from '../provider.ts'
import type { Http, RequestReport } from '../requests.ts'
import { createAddressWrites } from './address-writes.ts'
import { createAddresses } from './addresses.ts'
import { createCherryClient } from './client.ts'
import { createControlPlaneAddress, EXTERNAL_SERVICE } from './control-plane-address.ts'
import { createInstances } from './instances.ts'
import { createLoadBalancers } from './load-balancers/load-balancers.ts'
import { createPace, type Pace } from './pace.ts'
import { processPace } from './process-pace.ts'
import { createProjects } from './projects.ts'
import { owns } from './provider-id.ts'
import { createServers } from './servers.ts'

export interface CherryProviderOptions {
  settings: CherrySettings
  /** uid of the namespace kube-system; asked for only where there are load balancers. */
  clusterUid(call: Call): Promise<string>
  /** Shares reads and the pace with all other workers; without it they are this process' own. */
  redis?: Redis
  /** Before every key in Redis, without trailing colon. */
  prefix: string
  /** Closed with the provider when it is the provider's own. */
  http?: Http
  /** One per credential, for tests that must not wait. */
  pace?: (credential: string) => Pace
  onRequest?: (report: RequestReport) => void
  /** In the `User-Agent`. */
  version?: string
}

/** Cherry Servers. Nothing is written at the cloud before a Service, or the control plane's address, asks for it. */
export function createCherryProvider(options: CherryProviderOptions): CloudProvider {
  const { settings, redis, prefix, clusterUid, onRequest, version = 'unknown' } = options
  const http = options.http ?? new HttpClient()
  const shared = { ...(redis ? { redis } : {}), prefix }
  const client = createCherryClient({
    http,
    settings,
    version,
    pace: paces(
      options.pace ??
        ((credential) =>
          redis ? createPace({ redis, prefix, credential }) : processPace(settings.apiUrl, credential)),
    ),
    ...(onRequest ? { onRequest } : {}),
  })
  const servers = createServers({ client, ...shared })
  const addresses = createAddresses(client, createAddressWrites({ ...shared, account: client.account }))
  const projects = createProjects({ client, ...shared, projectId: settings.projectId })
  const { loadBalancer, fipTag, projectId } = settings
  return {
    name: 'cherryservers',
    owns,
    credentialId: () => client.account(),
    projectCredential: () => client.account(),
    findsBeyondProject: true,
    async check(call) {
      try {
        await projects.get(call, { fresh: true })
      } catch (error) {
        if (!(error instanceof WindlassError) || (error.status !== 401 && error.status !== 403)) throw error
        throw permanent(`${error.message}. CHERRY_API_KEY must be good for project ${projectId}.`, {
          status: error.status,
        })
      }
    },
    instances: createInstances(servers, projectId),
    ...(loadBalancer
      ? {
          loadBalancers: createLoadBalancers({
            client,
            servers,
            addresses,
            projects,
            settings: { ...settings, loadBalancer },
            clusterUid,
          }),
        }
      : {}),
    ...(fipTag === undefined || fipTag === ''
      ? {}
      : { controlPlaneAddress: createControlPlaneAddress({ addresses, settings, tag: fipTag }) }),
    keepsOff: ({ namespace, name }) => namespace === EXTERNAL_SERVICE.namespace && name === EXTERNAL_SERVICE.name,
    async close() {
      if (!options.http) http.close()
    },
  }
}

/** One pace per credential; a key that changes has one of its own. */
function paces(create: (credential: string) => Pace): (credential: string) => Pace {
  let last: { credential: string; pace: Pace } | undefined
  return (credential) => {
    if (last?.credential !== credential) last = { credential, pace: create(credential) }
    return last.pace
  }
}
