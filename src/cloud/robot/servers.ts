import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import { kindOf } from '../../errors.ts'
import { createSharedRead, type SharedRead } from '../shared-read.ts'
import type { RobotClient } from './client.ts'
import type { RobotServer, RobotServerNumber } from './model.ts'

export interface RobotServers {
  /** The whole account, at most `cacheTimeoutMs` old; while Robot refuses for its rate, what was known before. */
  list(call: Call): Promise<RobotServerList>
  /** Read after this call. */
  fresh(call: Call): Promise<RobotServerList>
  /** As `list`, but read again when what is known is older than a minute: for a server that may be new. */
  recent(call: Call): Promise<RobotServerList>
  byNumber(number: RobotServerNumber, call: Call, options?: { fresh?: boolean }): Promise<RobotServer | undefined>
  /** As of the last minute. */
  isOff(number: RobotServerNumber, call: Call): Promise<boolean>
}

export interface RobotServerList {
  servers: readonly RobotServer[]
  /** Unix milliseconds at which the read began. */
  readAtMs: number
  /** True for one that is older than allowed, served because Robot answers nothing now. */
  stale: boolean
}

const RECENT_MS = 60_000

export function createRobotServers(options: {
  client: RobotClient
  redis?: Redis
  prefix: string
  cacheTimeoutMs: number
}): RobotServers {
  const { client, redis, prefix, cacheTimeoutMs } = options
  let last: { account: string; list: RobotServerList } | undefined
  const shared = createSharedRead<RobotServerList>({
    ...(redis ? { redis } : {}),
    key: () => `${prefix}:robot:v1:servers:${client.account()}`,
    maxAgeMs: Math.max(0, cacheTimeoutMs),
    async fetch(call) {
      const readAtMs = Date.now()
      return { servers: await client.servers(call), readAtMs, stale: false }
    },
  })

  /** Looked at every few seconds while a node is not ready, which the account's limit would not bear. */
  const powers = new Map<RobotServerNumber, SharedRead<string>>()
  const powerOf = (number: RobotServerNumber) => {
    const known = powers.get(number)
    if (known) return known
    const power = createSharedRead<string>({
      ...(redis ? { redis } : {}),
      key: () => `${prefix}:robot:v1:power:${client.account()}:${number}`,
      maxAgeMs: RECENT_MS,
      fetch: async (call) => (await client.operatingStatus(number, call)) ?? 'unknown',
    })
    powers.set(number, power)
    return power
  }

  const keep = (list: RobotServerList) => {
    last = { account: client.account(), list }
    return list
  }

  async function list(call: Call): Promise<RobotServerList> {
    try {
      return keep(await shared.get(call))
    } catch (error) {
      if (kindOf(error) === 'throttled' && last?.account === client.account()) return { ...last.list, stale: true }
      throw error
    }
  }

  const fresh = async (call: Call) => keep(await shared.fresh(call))

  return {
    list,
    fresh,
    async recent(call) {
      const known = await list(call)
      return known.stale || Date.now() - known.readAtMs > RECENT_MS ? fresh(call) : known
    },
    async byNumber(number, call, { fresh: now = false } = {}) {
      const known = await (now ? fresh(call) : list(call))
      const server = known.servers.find((one) => one.number === number)
      // What an old list lacks may be there by now.
      if (server || !known.stale) return server
      return (await fresh(call)).servers.find((one) => one.number === number)
    },
    async isOff(number, call) {
      return (await powerOf(number).get(call)) === 'shut off'
    },
  }
}
