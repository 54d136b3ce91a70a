import type { Redis } from 'ioredis'
import type { Call } from '../../call.ts'
import { createSharedRead } from '../shared-read.ts'
import type { HcloudClient } from './client.ts'
import type { CloudServerId, Server } from './model.ts'

export interface Asked {
  /** A read that began after this call. */
  fresh?: boolean
  /** That there is none is no answer if it was read before this (Unix milliseconds): a server and its node may be younger. */
  absentAfterMs?: number
}

/** The servers of a project, read by as few requests as the cache mode allows. */
export interface Servers {
  byId(id: CloudServerId, call: Call, asked?: Asked): Promise<Server | undefined>
  /** Exact name. */
  byName(name: string, call: Call, asked?: Asked): Promise<Server | undefined>
  /** Complete lists only: what is kept of single servers never answers for all. */
  list(call: Call, options?: { fresh?: boolean }): Promise<readonly Server[]>
  /** The list if it is known here and young; asks nobody. */
  peek(): readonly Server[] | undefined
}

export interface ServersOptions {
  client: HcloudClient
  redis?: Redis
  prefix: string
  mode: 'all' | 'one' | 'off'
  maxAgeMs: number
}

export function createServers(options: ServersOptions): Servers {
  const { client, redis, prefix, mode, maxAgeMs } = options
  const shared = createSharedRead<Server[]>({
    ...(redis ? { redis } : {}),
    key: () => `${prefix}:hcloud:v1:servers:${client.account()}`,
    maxAgeMs: mode === 'off' ? 0 : maxAgeMs,
    fetch: client.servers.list,
  })
  const list: Servers['list'] = (call, { fresh } = {}) =>
    fresh || mode === 'off' ? shared.fresh(call) : shared.get(call)
  const index = createIndex()

  if (mode === 'all') {
    const find = async (
      inList: (index: Index) => Server | undefined,
      alone: () => Promise<Server | undefined>,
      call: Call,
      { fresh, absentAfterMs = Number.NEGATIVE_INFINITY }: Asked = {},
    ): Promise<Server | undefined> => {
      if (fresh) {
        // By itself the API answers sooner than by a list of all, and what it says is newer than the list. No two have one name.
        const server = await alone()
        if (server)
          shared.amend((all) => [...all.filter(({ id, name }) => id !== server.id && name !== server.name), server])
        return server
      }
      const known = inList(index.of(await list(call)))
      const agoMs = Date.now() - absentAfterMs
      if (known || !(agoMs < maxAgeMs)) return known
      return inList(index.of(await shared.since(performance.now() - Math.max(0, agoMs), call)))
    }
    return {
      byId: (id, call, asked) =>
        find(
          ({ byId }) => byId.get(id),
          () => client.servers.get(id, call),
          call,
          asked,
        ),
      byName: (name, call, asked) =>
        find(
          ({ byName }) => byName.get(name),
          () => client.servers.named(name, call),
          call,
          asked,
        ),
      list,
      peek: shared.peek,
    }
  }

  const kept = mode === 'one' ? createKeptServers(maxAgeMs) : undefined
  const single = async (
    matches: (server: Server) => boolean,
    read: () => Promise<Server | undefined>,
    fresh = false,
  ): Promise<Server | undefined> => {
    const account = client.account()
    const known = fresh ? undefined : kept?.find(matches, account)
    if (known) return known
    const server = await read()
    if (server) kept?.keep(server, account)
    return server
  }
  return {
    byId: (id, call, { fresh } = {}) =>
      single(
        (server) => server.id === id,
        () => client.servers.get(id, call),
        fresh,
      ),
    byName: (name, call, { fresh } = {}) =>
      single(
        (server) => server.name === name,
        () => client.servers.named(name, call),
        fresh,
      ),
    list,
    peek: shared.peek,
  }
}

interface Index {
  servers: readonly Server[]
  byId: Map<CloudServerId, Server>
  byName: Map<string, Server>
}

/** One index per list: 500 lookups in a list of 500 would otherwise compare 250,000 times. */
function createIndex() {
  let last: Index | undefined
  return {
    of(servers: readonly Server[]): Index {
      if (last?.servers !== servers)
        last = {
          servers,
          byId: new Map(servers.map((server) => [server.id, server])),
          // The API lists by id; of equal names, which it does not allow, the first counts.
          byName: new Map(servers.toReversed().map((server) => [server.name, server])),
        }
      return last
    },
  }
}

/** Single servers of the mode `one`, each as old as its own read. Absence is not kept. */
function createKeptServers(maxAgeMs: number) {
  let entries: { server: Server; account: string; untilMs: number }[] = []
  return {
    find(matches: (server: Server) => boolean, account: string): Server | undefined {
      const now = performance.now()
      entries = entries.filter((entry) => entry.untilMs > now && entry.account === account)
      return entries.find(({ server }) => matches(server))?.server
    },
    keep(server: Server, account: string): void {
      entries = entries.filter((entry) => entry.server.id !== server.id)
      entries.push({ server, account, untilMs: performance.now() + maxAgeMs })
    },
  }
}
