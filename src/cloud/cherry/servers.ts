import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import { createSharedRead } from '../shared-read.ts'
import { type CherryClient, GATHER_MS } from './client.ts'
import type { Server, ServerId } from './model.ts'

/** The servers of the project, by as few requests as can be. */
export interface Servers {
  /** Undefined when the API says that there is no such server, in this project or another. */
  byId(id: ServerId, call: Call, options?: { fresh?: boolean }): Promise<Server | undefined>
  list(call: Call, options?: { fresh?: boolean }): Promise<readonly Server[]>
  /** By a read that began no earlier than this (monotonic milliseconds), be it over. */
  since(beganMs: number, call: Call): Promise<readonly Server[]>
  /** We have switched BGP on: what is known here says so too. */
  switchedOn(id: ServerId): void
}

/** Of what is read without asking for a fresh read. */
export const MAX_AGE_MS = 5000

export function createServers(options: { client: CherryClient; redis?: Redis; prefix: string }): Servers {
  const { client, redis, prefix } = options
  const shared = createSharedRead<Server[]>({
    ...(redis ? { redis } : {}),
    key: () => `${prefix}:cherry:v1:servers:${client.account()}`,
    maxAgeMs: MAX_AGE_MS,
    fetch: client.servers.list,
    saysBegun: true,
    gatherMs: GATHER_MS,
  })
  return {
    async byId(id, call, { fresh } = {}) {
      if (fresh) return client.servers.get(id, call)
      const listed = (await shared.get(call)).find((server) => server.id === id)
      // A list may lag behind or say less, and a server may be in another project: what it lacks is asked for by id.
      return listed && isWhole(listed) ? listed : client.servers.get(id, call)
    },
    list: (call, { fresh } = {}) => (fresh ? shared.fresh(call) : shared.get(call)),
    since: shared.since,
    switchedOn(id) {
      shared.amend((list) => list.map((server) => (server.id === id ? { ...server, bgpEnabled: true } : server)))
    },
  }
}

/** As far as a node's labels and addresses are concerned. */
export const isWhole = ({ addresses, plan, region }: Server) => addresses !== undefined && plan !== '' && region !== ''
