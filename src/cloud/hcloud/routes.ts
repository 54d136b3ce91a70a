import type { Call } from '../../call.ts'
import { kindOf, permanent, throttled, transient, WindlassError } from '../../errors.ts'
import type { NodeProjection } from '../../events/projection.ts'
import type { Change, Note, RoutePlan, Routes } from '../provider.ts'
import type { ActionPoller } from './actions.ts'
import { isBusy, isCode, isNotFound } from './api-error.ts'
import type { HcloudClient } from './client.ts'
import type { ConfiguredNetwork } from './network.ts'
import { type PlannedRoutes, planRoutes, type RouteChange } from './route-plan.ts'
import type { Servers } from './servers.ts'

export interface RoutesOptions {
  client: HcloudClient
  actions: ActionPoller
  servers: Servers
  network: ConfiguredNetwork
}

interface HcloudRoutePlan extends RoutePlan {
  readonly changes: readonly (Change & RouteChange)[]
  readonly planned?: PlannedRoutes
}

/** As many as Hetzner lets a network have; the API does not tell. */
const MAX_ROUTES = 100

export function createRoutes({ client, actions, servers, network }: RoutesOptions): Routes {
  /** Nodes whose IPv6 pod CIDRs have been spoken of. */
  const told = new Set<string>()

  async function plan(nodes: readonly NodeProjection[], clusterCidrs: readonly string[], call: Call) {
    if (clusterCidrs.length === 0) return { changes: [], notes: [], outside: [] }
    const present = await network.read(call)
    const once = planRoutes(nodes, clusterCidrs, present, await servers.list(call))
    // A server may have joined the network since the list was read.
    const planned = once.withdraws
      ? planRoutes(nodes, clusterCidrs, present, await servers.list(call, { fresh: true }))
      : once
    const notes = [...planned.notes, ...unsupported(nodes)]
    return {
      changes: planned.changes,
      notes,
      outside: [...planned.outside],
      use: { routes: present.routes.length, limit: MAX_ROUTES },
      planned,
    } satisfies HcloudRoutePlan
  }

  function unsupported(nodes: readonly NodeProjection[]): Note[] {
    const present = new Set(nodes.map(({ name }) => name))
    for (const name of told) if (!present.has(name)) told.delete(name)
    return nodes.flatMap((node) => {
      const cidrs = node.podCidrs.filter((cidr) => cidr.includes(':'))
      if (cidrs.length === 0 || told.has(node.name)) return []
      told.add(node.name)
      return [
        {
          type: 'Normal',
          reason: 'IPv6RoutesUnsupported',
          message: `pod CIDR ${cidrs.join(', ')} gets no route: Hetzner's private networks have no IPv6`,
          node: node.name,
        },
      ]
    })
  }

  /** The network takes one action at a time: the next change waits for the end of this one. */
  async function carryOut(change: RouteChange, networkId: number, call: Call): Promise<void> {
    const { destination, gateway } = change
    if (change.kind === 'delete-route') {
      try {
        const { actions: begun } = await client.networks.deleteRoute(networkId, { destination, gateway }, call)
        await actions.wait(begun, call)
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
      return
    }
    try {
      const { actions: begun } = await client.networks.addRoute(networkId, { destination, gateway }, call)
      await actions.wait(begun, call)
    } catch (error) {
      if (!isCode(error, 'route_already_exists', 'uniqueness_error')) throw error
    }
  }

  return {
    plan,
    async apply(given, call) {
      const { planned } = given as HcloudRoutePlan
      const routed = new Set(planned?.routed ?? [])
      const failed = new Map<string, Error>(planned?.failed ?? [])
      const leftOver: Error[] = []
      /** Nodes of which a change did not work in this run: what it makes room for is not made. */
      const stopped = new Set<string>()
      const unassigned = new Set(planned?.unassigned ?? [])
      if (!planned) return { routed, failed, unassigned, leftOver, notes: [] }
      const id = await network.id(call)
      if (id === undefined) throw permanent('No network is configured: set HCLOUD_NETWORK to its name or id.')
      for (const change of planned.changes) {
        if (change.kind === 'add-route' && stopped.has(change.node)) continue
        try {
          await carryOut(change, id, call)
        } catch (error) {
          if (stopsAll(error)) throw error
          const fault = faultOf(`${change.summary} did not work`, error)
          if (change.node === undefined) leftOver.push(fault)
          else {
            stopped.add(change.node)
            failed.set(change.node, fault)
          }
        }
      }
      for (const node of planned.changing) if (!failed.has(node)) routed.add(node)
      for (const node of failed.keys()) routed.delete(node)
      return { routed, failed, unassigned, leftOver, notes: [] }
    },
  }
}

/** No other route would fare better: above all, none is to wait for an API from which no answer comes. */
function stopsAll(error: unknown): boolean {
  const kind = kindOf(error)
  if (kind === 'aborted' || (kind === 'throttled' && !isBusy(error))) return true
  if (isCode(error, 'unauthorized', 'token_readonly')) return true
  return (
    kind === 'transient' && error instanceof WindlassError && error.status === undefined && error.code === undefined
  )
}

function faultOf(what: string, cause: unknown): WindlassError {
  const kind = kindOf(cause)
  const retryAtMs = cause instanceof WindlassError ? cause.retryAtMs : undefined
  // Another change of the network is under way: this one waits, and has not failed.
  if (kind === 'throttled' && retryAtMs !== undefined) return throttled(what, retryAtMs, { cause })
  return kind === 'permanent' ? permanent(what, { cause }) : transient(what, { cause })
}
