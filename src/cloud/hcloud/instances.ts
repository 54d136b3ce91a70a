import type { Call } from '../../call.ts'
import { nearest } from '../../config/nearest.ts'
import type { HcloudSettings } from '../../config/types.ts'
import { kindOf, messageOf, permanent, transient } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import type { Instance, InstanceLookup, Instances, Note } from '../provider.ts'
import { replacedNotes } from '../replaced.ts'
import type { RobotServer, RobotServerNumber } from '../robot/model.ts'
import type { RobotServers } from '../robot/servers.ts'
import { cloudInstance, robotInstance } from './instance.ts'
import type { CloudServerId, Server } from './model.ts'
import type { ConfiguredNetwork } from './network.ts'
import { cloudProviderId, legacyRobotProviderId, parseProviderId, robotProviderId } from './provider-id.ts'
import type { Servers } from './servers.ts'

export interface InstancesOptions {
  servers: Servers
  /** Present when Robot is enabled and has credentials. */
  robot?: RobotServers
  network: ConfiguredNetwork
  settings: Pick<
    HcloudSettings,
    'addressFamily' | 'zoneLabelEnabled' | 'robot' | 'serverCacheMode' | 'serverCacheMaxAgeMs'
  >
}

/** By then the node was there: the time of creation is in whole seconds. */
const joinedMs = ({ creationTimestamp }: NodeProjection) => Date.parse(creationTimestamp) + 1000

interface RobotSearch {
  servers: readonly RobotServer[]
  server?: RobotServer | undefined
  error?: unknown
}

export function createInstances(options: InstancesOptions): Instances {
  const { servers, robot, network, settings } = options
  const { addressFamily, zoneLabelEnabled } = settings

  async function foundCloud(server: Server, node: NodeProjection, call: Call): Promise<InstanceLookup> {
    const id = await network.id(call)
    const { instance, notes } = cloudInstance(server, node, {
      addressFamily,
      zoneLabelEnabled,
      ...(id === undefined ? {} : { network: id }),
    })
    return { kind: 'found', instance, notes }
  }

  function foundRobot(server: RobotServer, node: NodeProjection): InstanceLookup {
    const forwardInternalIps = settings.robot?.forwardInternalIps ?? false
    const { instance, notes } = robotInstance(server, node, { addressFamily, zoneLabelEnabled, forwardInternalIps })
    return { kind: 'found', instance, notes }
  }

  async function byCloudId(
    id: CloudServerId,
    node: NodeProjection,
    call: Call,
    fresh: boolean,
  ): Promise<InstanceLookup> {
    const server = await servers.byId(id, call, { fresh, absentAfterMs: joinedMs(node) })
    if (server) return foundCloud(server, node, call)
    const successor = async () => {
      const named = await servers.byName(node.name, call)
      return named && named.id !== id ? cloudProviderId(named.id) : undefined
    }
    return {
      kind: 'not-found',
      searched: `server ${id} in the Hetzner Cloud project of the token`,
      notes: await replacedNotes(node, successor, call),
    }
  }

  async function byRobotNumber(
    number: RobotServerNumber,
    node: NodeProjection,
    call: Call,
    fresh: boolean,
  ): Promise<InstanceLookup> {
    const dedicated = requireRobot(node)
    const recent = fresh ? (await dedicated.recent(call)).servers.find((one) => one.number === number) : undefined
    // That a recent list shows it is enough, since requests to Robot are few; that it is gone, or renamed, takes a read of now.
    const server = recent?.name === node.name ? recent : await dedicated.byNumber(number, call, { fresh })
    if (server?.name === node.name) return foundRobot(server, node)
    if (!server) {
      const successor = async () => {
        const named = (await dedicated.list(call)).servers.findLast((one) => one.name === node.name)
        return named && named.number !== number ? robotProviderId(named.number) : undefined
      }
      return {
        kind: 'not-found',
        searched: `server ${number} in the Robot account`,
        notes: await replacedNotes(node, successor, call),
      }
    }
    // Machines are reused for other clusters by renaming them, so another name is another machine.
    const note: Note = {
      type: 'Warning',
      reason: 'PossibleNodeDeletion',
      message: `Robot server ${number} is named "${server.name}", not "${node.name}": the node counts as gone and is deleted when it is not ready. Rename the server in Robot if it is this node.`,
      node: node.name,
    }
    return {
      kind: 'not-found',
      searched: `server ${number} with the name "${node.name}" in the Robot account`,
      nearest: server.name,
      notes: [note],
    }
  }

  function requireRobot(node: NodeProjection): RobotServers {
    if (robot) return robot
    throw permanent(
      `Node ${node.name} is Robot server ${node.providerId}, and no Robot client is configured: set ROBOT_ENABLED, ROBOT_USER and ROBOT_PASSWORD.`,
      { code: 'robot_disabled' },
    )
  }

  /** What Robot has by that name. Its own trouble is returned, not thrown: the cloud may have the answer. */
  async function robotNamed(name: string, call: Call, fresh: boolean): Promise<RobotSearch> {
    if (!robot) return { servers: [] }
    try {
      // Requests to Robot are few, and its servers keep their numbers: a list of the last minute is as good as one of now.
      const { servers: all } = await (fresh ? robot.recent(call) : robot.list(call))
      return { servers: all, server: all.findLast((one) => one.name === name) }
    } catch (error) {
      if (kindOf(error) === 'aborted') throw error
      return { servers: [], error }
    }
  }

  async function byName(node: NodeProjection, call: Call, fresh: boolean): Promise<InstanceLookup> {
    const { name } = node
    const cloud = await servers.byName(name, call, { fresh, absentAfterMs: joinedMs(node) })
    let dedicated = await robotNamed(name, call, fresh)
    if (cloud && dedicated.server) {
      const message = `Node ${name}: a server of that name exists in Hetzner Cloud (id ${cloud.id}) and in Robot (number ${dedicated.server.number}), and neither is taken. Rename one, or set the provider id of the node.`
      return {
        kind: 'ambiguous',
        message,
        notes: [{ type: 'Warning', reason: 'InstanceLookupFailed', message, node: name }],
      }
    }
    if (cloud) {
      if (dedicated.error)
        call.log.warn(
          { node: name, reason: messageOf(dedicated.error) },
          'robot not searched for the name of a cloud node',
        )
      return foundCloud(cloud, node, call)
    }
    if (robot && !dedicated.server && !dedicated.error && !fresh) {
      const { servers: all } = await robot.recent(call)
      const server = all.findLast((one) => one.name === name)
      dedicated = { servers: all, ...(server ? { server } : {}) }
    }
    if (dedicated.server) return foundRobot(dedicated.server, node)
    if (dedicated.error) throw dedicated.error
    return missing(name, dedicated.servers, call)
  }

  async function missing(name: string, dedicated: readonly RobotServer[], call: Call): Promise<InstanceLookup> {
    // Without a list at hand, the names of others are not worth reading one.
    const known = settings.serverCacheMode === 'all' ? await servers.list(call) : (servers.peek() ?? [])
    const counted = settings.serverCacheMode === 'all' ? ` (${known.length} servers)` : ''
    const nearestName = nearest(
      name,
      [...known, ...dedicated].map((server) => server.name),
    )
    const inRobot = robot ? ` and in the Robot account (${dedicated.length} servers)` : ''
    return {
      kind: 'not-found',
      searched: `server named "${name}" in the Hetzner Cloud project of the token${counted}${inRobot}`,
      ...(nearestName === undefined ? {} : { nearest: nearestName }),
      notes: [],
    }
  }

  return {
    async find(node, call, { fresh = false } = {}) {
      if (node.providerId === undefined) return byName(node, call, fresh)
      const parsed = parseProviderId(node.providerId)
      switch (parsed.kind) {
        case 'cloud':
          return byCloudId(parsed.id, node, call, fresh)
        case 'robot':
          return byRobotNumber(parsed.number, node, call, fresh)
        case 'malformed':
          throw permanent(`Node ${node.name}: ${parsed.message}.`, { code: 'malformed_provider_id' })
        case 'foreign':
          throw permanent(`Node ${node.name}: provider id "${node.providerId}" is not one of Hetzner's.`, {
            code: 'foreign_provider_id',
          })
      }
    },

    maxAgeMs(providerId) {
      if (parseProviderId(providerId).kind === 'robot') return settings.robot?.cacheTimeoutMs ?? 0
      return settings.serverCacheMode === 'off' ? 0 : settings.serverCacheMaxAgeMs
    },

    async isOff(instance: Instance, call) {
      const parsed = parseProviderId(instance.providerId)
      if (parsed.kind === 'cloud') {
        const server = await servers.byId(parsed.id, call, { fresh: true })
        if (!server)
          throw transient(`Server ${parsed.id} is gone from Hetzner Cloud, so it is neither on nor off.`, {
            code: 'not_found',
          })
        return server.status === 'off'
      }
      if (parsed.kind === 'robot' && robot) return robot.isOff(parsed.number, call)
      throw permanent(`The power state of ${instance.providerId} can't be read: no Robot client is configured.`, {
        code: 'robot_disabled',
      })
    },

    async listProviderIds(call, { fresh = false } = {}) {
      const ids = new Set((await servers.list(call, { fresh })).map(({ id }) => cloudProviderId(id)))
      try {
        const dedicated = robot ? (await (fresh ? robot.fresh(call) : robot.list(call))).servers : []
        for (const { number } of dedicated) ids.add(robotProviderId(number)).add(legacyRobotProviderId(number))
      } catch (error) {
        if (kindOf(error) === 'aborted') throw error
        call.log.warn({ reason: messageOf(error) }, 'robot servers left out of the list of provider ids')
      }
      return ids
    },
  }
}
