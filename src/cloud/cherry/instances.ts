import type { Call } from '../../call.ts'
import { nearest } from '../../config/nearest.ts'
import { permanent, transient } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import type { InstanceLookup, Instances } from '../provider.ts'
import { replacedNotes } from '../replaced.ts'
import { instanceOf, isOff } from './instance.ts'
import type { Server, ServerId } from './model.ts'
import { parseProviderId, providerIdOf } from './provider-id.ts'
import { isWhole, MAX_AGE_MS, type Servers } from './servers.ts'

const found = (server: Server): InstanceLookup => ({ kind: 'found', ...instanceOf(server) })

export function createInstances(servers: Servers, projectId: number): Instances {
  async function byName(node: NodeProjection, call: Call, fresh: boolean): Promise<InstanceLookup> {
    const { name } = node
    const named = (list: readonly Server[]) => list.filter(({ hostname }) => hostname === name)
    let all = await servers.list(call, { fresh })
    // A machine that just joined is younger than what is known.
    if (!fresh && named(all).length === 0) all = await servers.list(call, { fresh: true })
    const [server, ...others] = named(all)
    if (server && others.length === 0) {
      const whole = isWhole(server) ? server : await servers.byId(server.id, call, { fresh: true })
      return found(whole ?? server)
    }
    if (server) {
      const ids = named(all).map(({ id }) => id)
      return {
        kind: 'ambiguous',
        message: `servers ${ids.join(' and ')} of Cherry project ${projectId} have the hostname "${name}"; change one, or start kubelet with --provider-id`,
        notes: [],
      }
    }
    const nearestName = nearest(
      name,
      all.map(({ hostname }) => hostname),
    )
    return {
      kind: 'not-found',
      searched: `server with hostname "${name}" in Cherry project ${projectId} (${all.length} servers)`,
      ...(nearestName === undefined ? {} : { nearest: nearestName }),
      notes: [],
    }
  }

  function idOf(node: { name: string }, providerId: string): ServerId {
    const parsed = parseProviderId(providerId)
    if (parsed.kind === 'server') return parsed.id
    const why = parsed.kind === 'malformed' ? parsed.message : `provider id "${providerId}" is not one of Cherry's`
    throw permanent(`Node ${node.name}: ${why}.`, { code: `${parsed.kind}_provider_id` })
  }

  return {
    async find(node, call, { fresh = false } = {}) {
      if (node.providerId === undefined) return byName(node, call, fresh)
      const id = idOf(node, node.providerId)
      const server = await servers.byId(id, call, { fresh })
      if (server) return found(server)
      const successor = async () => {
        const [named, ...others] = (await servers.list(call)).filter(({ hostname }) => hostname === node.name)
        return named && named.id !== id && others.length === 0 ? providerIdOf(named.id) : undefined
      }
      return {
        kind: 'not-found',
        searched: `server ${id} at Cherry Servers`,
        notes: await replacedNotes(node, successor, call),
      }
    },

    maxAgeMs: () => MAX_AGE_MS,

    async isOff(instance, call) {
      const id = idOf(instance, instance.providerId)
      const server = await servers.byId(id, call, { fresh: true })
      if (!server)
        throw transient(`Server ${id} is gone from Cherry Servers, so it is neither on nor off.`, { code: 'not_found' })
      return isOff(server)
    },

    async listProviderIds(call, { fresh = false } = {}) {
      const all = await servers.list(call, { fresh })
      // Nodes may have either form.
      return new Set(all.flatMap(({ id }) => [providerIdOf(id), String(id)]))
    },
  }
}
