import { parse as parseYaml } from 'yaml'
import type { Call } from '../../call.ts'
import type { HcloudSettings } from '../../config/types.ts'
import { permanent, transient, WindlassError } from '../../errors.ts'
import type { Http, RequestReport } from '../requests.ts'
import type { HcloudClient } from './client.ts'
import type { Network } from './model.ts'

/** The network that `HCLOUD_NETWORK` names. */
export interface ConfiguredNetwork {
  /** Its id, looked up once; undefined when none is configured. Throws `permanent` when there is no such network. */
  id(call: Call): Promise<number | undefined>
  /** Read now. */
  read(call: Call): Promise<Network>
  /** As `read`, up to a minute old. */
  known(call: Call): Promise<Network>
  /** Throws `permanent` unless this machine is attached to it. */
  checkAttached(call: Call): Promise<void>
}

const METADATA_TIMEOUT_MS = 5000
const KNOWN_MS = 60_000

export function createConfiguredNetwork(options: {
  client: HcloudClient
  http: Http
  settings: Pick<HcloudSettings, 'network' | 'networkDisableAttachedCheck' | 'metadataEndpoint'>
  onRequest?: (report: RequestReport) => void
}): ConfiguredNetwork {
  const { client, http, settings } = options
  const { network: wanted } = settings
  let found: { account: string; network: Network; untilMs: number } | undefined

  const missing = () =>
    permanent(
      `Hetzner Cloud has no network "${wanted}" (HCLOUD_NETWORK). Correct its name or id, or use a token of its project.`,
      {
        code: 'network_not_found',
      },
    )

  const remember = (network: Network) => {
    found = { account: client.account(), network, untilMs: performance.now() + KNOWN_MS }
    return network
  }

  /** A number is tried as an id first, then as a name. */
  async function lookUp(name: string, call: Call): Promise<Network> {
    const byId = /^\d+$/.test(name) ? await client.networks.get(Number(name), call) : undefined
    const network = byId ?? (await client.networks.named(name, call))
    if (!network) throw missing()
    return remember(network)
  }

  async function known(call: Call): Promise<Network> {
    if (wanted === undefined) throw permanent('No network is configured: set HCLOUD_NETWORK to its name or id.')
    if (found?.account !== client.account()) return lookUp(wanted, call)
    return found.untilMs > performance.now() ? found.network : read(call)
  }

  async function read(call: Call): Promise<Network> {
    if (found?.account !== client.account()) return known(call)
    const network = await client.networks.get(found.network.id, call)
    if (!network) {
      found = undefined
      throw missing()
    }
    return remember(network)
  }

  return {
    id: async (call) => {
      if (wanted === undefined) return undefined
      return found?.account === client.account() ? found.network.id : (await lookUp(wanted, call)).id
    },
    read,
    known,
    async checkAttached(call) {
      if (wanted === undefined || settings.networkDisableAttachedCheck) return
      const { id } = await known(call)
      const url = `${settings.metadataEndpoint}/private-networks`
      const started = performance.now()
      const report = (status?: number) =>
        options.onRequest?.({
          api: 'hcloud-metadata',
          method: 'GET',
          endpoint: '/private-networks',
          durationMs: performance.now() - started,
          ...(status === undefined ? {} : { status }),
        })
      const advice =
        'Attach the server that Windlass runs on to the network, or set HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK=true.'
      let body: string
      try {
        const answer = await http.request({ method: 'GET', url, timeoutMs: METADATA_TIMEOUT_MS, signal: call.signal })
        report(answer.status)
        if (answer.status !== 200)
          throw transient(`The metadata service answered ${answer.status} when asked for private networks. ${advice}`)
        body = answer.body.toString('utf8')
      } catch (error) {
        if (error instanceof WindlassError && error.status === undefined && error.kind === 'transient') report()
        throw error
      }
      if (!attachedNetworks(body).includes(id))
        throw permanent(`This machine is not attached to network "${wanted}" (id ${id}, HCLOUD_NETWORK). ${advice}`, {
          code: 'not_attached',
        })
    },
  }
}

function attachedNetworks(body: string): number[] {
  let entries: unknown
  try {
    entries = parseYaml(body)
  } catch (error) {
    throw transient('The answer of the metadata service about private networks is no YAML', { cause: error })
  }
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: unknown) => {
    const id = (entry as { network_id?: unknown } | null)?.network_id
    return typeof id === 'number' ? [id] : []
  })
}
