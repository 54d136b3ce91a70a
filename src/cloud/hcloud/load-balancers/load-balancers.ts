import type { Redis } from 'ioredis'
import type { Call } from '../../../call.ts'
import { matches } from '../../../config/selector.ts'
import type { HcloudSettings } from '../../../config/types.ts'
import { kindOf, messageOf, permanent, transient, type WindlassError } from '../../../errors.ts'
import type { NodeProjection, ServiceProjection } from '../../../events/projection.ts'
import type { Applied, LoadBalancers, Note, SoughtPlan } from '../../provider.ts'
import type { RobotServers } from '../../robot/servers.ts'
import type { ActionPoller } from '../actions.ts'
import { isCode, isNotFound } from '../api-error.ts'
import type { HcloudClient } from '../client.ts'
import type { CloudServerId, Listener, LoadBalancer, LoadBalancerType, Server } from '../model.ts'
import type { ConfiguredNetwork } from '../network.ts'
import type { Servers } from '../servers.ts'
import { ANNOTATIONS, PREFIX } from './annotations.ts'
import { applyChanges, comeBack, createLoadBalancer, createTurns } from './apply.ts'
import { checkAttachment } from './attachment.ts'
import { type CertificatePlan, deleteCertificate, ownCertificates, planCertificates } from './certificates.ts'
import type { LoadBalancerChange } from './changes.ts'
import { planCreation } from './create.ts'
import { type Desired, desire } from './desire.ts'
import { defaultName, OWNER_LABEL, RELEASED_LABEL } from './names.ts'
import { findForDeletion, findForService } from './observe.ts'
import { type Planned, planLoadBalancer, type Wanted } from './plan.ts'
import { listPossessions } from './possessions.ts'
import { createLoadBalancerReads } from './reads.ts'
import { ingressOf } from './status.ts'
import { needsRobot, type RobotKnowledge, resolveTargets, targetsKey, wantedTargets } from './targets.ts'
import { createLoadBalancerTypes, resolveType } from './types.ts'

export interface LoadBalancersOptions {
  client: HcloudClient
  actions: ActionPoller
  servers: Servers
  network: ConfiguredNetwork
  settings: HcloudSettings
  robot?: RobotServers
  redis?: Redis
  prefix: string
}

/** A plan with what it was made from, so that it can be carried out and made again on the way. */
interface HcloudPlan extends SoughtPlan {
  readonly changes: readonly LoadBalancerChange[]
  readonly context?: PlanContext
}

interface PlanContext {
  desired: Desired
  /** Without the ids of certificates that are still to be made. */
  wanted: Wanted
  /** For a load balancer that has to be made. */
  type?: LoadBalancerType
  observed?: LoadBalancer
  certificates: CertificatePlan
  faults: Error[]
}

const CERTIFICATE_PENDING_MS = 5000

export function createLoadBalancers(options: LoadBalancersOptions): LoadBalancers {
  const { client, actions, servers, network, settings, robot } = options
  const reads = createLoadBalancerReads(options)
  const types = createLoadBalancerTypes(options)
  const pace = { oneByOne: false }
  const inTurn = createTurns()
  const desireOptions = {
    defaults: settings.loadBalancers,
    hasNetwork: settings.network !== undefined,
    robotEnabled: settings.robot !== undefined,
  }

  async function plan(service: ServiceProjection, nodes: readonly NodeProjection[], call: Call): Promise<HcloudPlan> {
    const { desired, faults, notes } = desire(service, nodes, desireOptions)
    if (faults.length > 0) throw invalid(service, faults)
    const observed = await findForService(service, desired.name, reads, call)
    const certificates = await lookUpCertificates(service, desired, call)
    const placed = observed !== undefined || desired.placement.location || desired.placement.networkZone
    const networkId = await network.id(call)
    const attachmentFaults = await checkAttachment(desired.attachment, observed, network, networkId, call)
    const all = [...certificates.faults, ...attachmentFaults]
    if (!placed)
      all.push(
        `neither ${PREFIX}location nor ${PREFIX}network-zone set: add one of the annotations, or set HCLOUD_LOAD_BALANCERS_LOCATION or HCLOUD_LOAD_BALANCERS_NETWORK_ZONE`,
      )
    if (all.length > 0) throw invalid(service, all)
    const { type, notes: typeNotes } = await resolveType(desired.type, observed, types, call)
    const knowledge = await askRobot(desired, call)
    const resolved = resolveTargets(desired.targets, { usePrivateIp: desired.usePrivateIp, robot: knowledge })
    const base: Wanted = {
      ...desired,
      uid: service.uid,
      defaultName: defaultName(service.uid),
      type: undefined,
      ...(networkId === undefined ? {} : { network: networkId }),
      listeners: withCertificates(desired.listeners, certificates.ids),
      targets: resolved.targets,
      targetsOpen: resolved.open || knowledge.kind === 'unavailable',
      unusable: new Map(),
    }
    const wanted: Wanted = { ...base, ...(type ? { type } : {}) }
    wanted.unusable = await unusableOf(wanted, observed, call)
    const planned: Planned = observed ? planLoadBalancer(wanted, observed) : planCreation(wanted, required(type))
    const robotFault =
      knowledge.kind === 'unavailable' && needsRobot(desired.targets, desired.usePrivateIp) ? [knowledge.error] : []
    return {
      changes: [...certificates.before, ...planned.changes, ...certificates.after],
      notes: [...notes, ...typeNotes, ...certificates.notes, ...resolved.notes, ...planned.notes],
      unmarked: observed?.labels[OWNER_LABEL] !== service.uid,
      context: {
        desired,
        wanted,
        ...(type ? { type } : {}),
        ...(observed ? { observed } : {}),
        certificates,
        faults: [...planned.faults, ...robotFault],
      },
    }
  }

  async function lookUpCertificates(
    service: ServiceProjection,
    desired: Desired,
    call: Call,
  ): Promise<CertificatePlan> {
    const known = desired.certificates.kind === 'none' ? [] : await reads.certificates(call)
    return planCertificates(desired.certificates, service.uid, known)
  }

  async function askRobot(desired: Desired, call: Call): Promise<RobotKnowledge> {
    if (!robot || !needsRobot(desired.targets, desired.usePrivateIp)) return { kind: 'no-client' }
    try {
      return { kind: 'known', servers: (await robot.list(call)).servers }
    } catch (error) {
      if (kindOf(error) === 'aborted') throw error
      return { kind: 'unavailable', error: error instanceof Error ? error : new Error(String(error)) }
    }
  }

  /** Asked only for targets that are to be added; for a new load balancer only what is known anyway. */
  async function unusableOf(
    wanted: Wanted,
    observed: LoadBalancer | undefined,
    call: Call,
  ): Promise<Wanted['unusable']> {
    const missing = wanted.targets.some(
      ({ target }) =>
        target.type === 'server' &&
        !observed?.targets.some(
          (one) => one.type === 'server' && one.server === target.server && one.usePrivateIp === target.usePrivateIp,
        ),
    )
    if (!missing) return new Map()
    return judge(wanted, observed ? await servers.list(call) : servers.peek())
  }

  return {
    plan,

    async apply(given, call): Promise<Applied> {
      const { context } = given as HcloudPlan
      if (!context) throw new TypeError('this plan was not made by hcloud load balancers')
      const { desired, certificates } = context
      const ids = await ensureCertificates(certificates, context.observed, call)
      const wanted: Wanted = { ...context.wanted, listeners: withCertificates(context.wanted.listeners, ids) }
      const applyOptions = {
        client,
        actions,
        reads,
        pace,
        inTurn,
        unusable: async (one: Wanted) => judge(one, await servers.list(call, { fresh: true })),
      }
      const observed =
        context.observed ?? (await createLoadBalancer(wanted, required(context.type), applyOptions, call))
      const outcome = await applyChanges(wanted, observed, applyOptions, call)
      // Without its place in the network it does not have the addresses that were asked for: none are published.
      if (outcome.misplaced) throw outcome.misplaced
      const faults: Error[] = [...context.faults, ...outcome.faults]
      if (faults.length === 0) faults.push(...(await deleteCertificates(certificates.after, call)))
      return {
        ingress: ingressOf(outcome.lb, desired.ingress),
        notes: outcome.notes,
        faults,
      }
    },

    async planDeletion(service, call): Promise<HcloudPlan> {
      const { lb, leftBehind } = await findForDeletion(service, reads, call)
      const own = ownCertificates(service.uid, await reads.certificates(call))
      const changes: LoadBalancerChange[] = []
      const notes: Note[] = []
      if (leftBehind)
        notes.push({
          type: 'Warning',
          reason: 'LoadBalancerLeftBehind',
          message: `load balancer "${leftBehind.name}" (${leftBehind.id}) stays: it has the name in annotation ${PREFIX}name, but no label that says that it was this Service's`,
        })
      if (lb?.deleteProtected) {
        notes.push({
          type: 'Warning',
          reason: 'LoadBalancerProtected',
          message: `load balancer "${lb.name}" (${lb.id}) is protected against deletion and stays; a Service with annotation ${PREFIX}name "${lb.name}" takes it over`,
        })
        if (lb.labels[RELEASED_LABEL] === undefined)
          changes.push({
            kind: 'release-load-balancer',
            summary: `leave the protected load balancer "${lb.name}" to whoever adopts it`,
            id: lb.id,
            labels: { ...lb.labels, [RELEASED_LABEL]: 'true' },
          })
        return { changes, notes }
      }
      if (lb)
        changes.push({
          kind: 'delete-load-balancer',
          summary: `delete load balancer "${lb.name}" (${lb.id})`,
          id: lb.id,
        })
      for (const certificate of own) {
        const users = certificate.usedBy.filter(({ id }) => id !== lb?.id)
        if (users.length === 0) changes.push(deleteCertificate(certificate))
        else
          notes.push({
            type: 'Warning',
            reason: 'CertificateLeftBehind',
            message: `managed certificate "${certificate.name}" stays: ${users.map(({ type, id }) => `${type} ${id}`).join(', ')} still uses it`,
          })
      }
      return { changes, notes, unmarked: lb === undefined }
    },

    async applyDeletion(plan, call) {
      for (const change of plan.changes as readonly LoadBalancerChange[]) {
        try {
          if (change.kind === 'delete-load-balancer') await client.loadBalancers.delete(change.id, call)
          if (change.kind === 'release-load-balancer')
            await client.loadBalancers.update(change.id, { labels: change.labels }, call)
          if (change.kind === 'delete-certificate') await client.certificates.delete(change.id, call)
        } catch (error) {
          if (!isNotFound(error)) throw error
        }
      }
      return { notes: [] }
    },

    possessions: (nodes, call) => listPossessions(client, nodes, call),

    targetsKey(service, nodes) {
      const parsed = ANNOTATIONS['node-selector'].kind.parse(service.annotations[`${PREFIX}node-selector`] ?? '')
      if ('fault' in parsed)
        throw invalid(service, [
          `annotation ${PREFIX}node-selector: "${service.annotations[`${PREFIX}node-selector`]}" ${parsed.fault}`,
        ])
      const asked = service.annotations[`${PREFIX}use-private-ip`]
      const bool = asked === undefined ? undefined : ANNOTATIONS['use-private-ip'].kind.parse(asked)
      // A bool that doesn't parse stops the plan; which targets it would ask for does not matter.
      const usePrivateIp = bool && 'value' in bool ? bool.value : settings.loadBalancers.usePrivateIp
      const selected = nodes.filter((node) => matches(parsed.value, node.labels))
      return targetsKey(
        wantedTargets(selected, { usePrivateIp, robotEnabled: desireOptions.robotEnabled }).targets,
        usePrivateIp,
      )
    },
  }

  async function ensureCertificates(
    certificates: CertificatePlan,
    observed: LoadBalancer | undefined,
    call: Call,
  ): Promise<number[]> {
    const { pending } = certificates
    const inUse = pending && observed?.listeners.some(({ http }) => http?.certificates.includes(pending.id))
    if (pending && !inUse)
      throw comeBack(
        `managed certificate "${pending.name}" is being issued; looking again soon`,
        CERTIFICATE_PENDING_MS,
      )
    const ids = [...certificates.ids]
    for (const { name, domains, labels } of certificates.before) {
      const begun = await createCertificate({ name, domainNames: domains, labels }, call)
      // One that can't be issued is used all the same, as soon as its failure is known: the next plan says so.
      await actions.wait(begun.actions, call)
      ids.push(begun.result.id)
    }
    return ids
  }

  async function createCertificate(certificate: Parameters<HcloudClient['certificates']['create']>[0], call: Call) {
    try {
      return await client.certificates.create(certificate, call)
    } catch (error) {
      // Our own call was carried out unseen, or somebody was quicker: the next look finds it and says whose it is.
      if (isCode(error, 'uniqueness_error'))
        throw transient(messageOf(error), { cause: error, code: 'uniqueness_error' })
      throw error
    }
  }

  async function deleteCertificates(changes: CertificatePlan['after'], call: Call): Promise<Error[]> {
    const faults: Error[] = []
    for (const { id } of changes) {
      try {
        await client.certificates.delete(id, call)
      } catch (error) {
        if (kindOf(error) === 'aborted' || kindOf(error) === 'throttled') throw error
        if (!isNotFound(error) && !isCode(error, 'resource_in_use')) faults.push(error as Error)
      }
    }
    return faults
  }
}

/** Which servers the API would refuse as targets, by what a list says of them. A server that it lacks may be new: the API decides. */
function judge(wanted: Wanted, list: readonly Server[] | undefined) {
  const unusable = new Map<CloudServerId, { code: string; reason: string }>()
  for (const server of list ?? []) {
    if (wanted.usePrivateIp) {
      if (!server.privateNets.some((net) => net.network === wanted.network))
        unusable.set(server.id, {
          code: 'server_not_attached_to_network',
          reason: `server ${server.id} is not attached to network ${wanted.network}, which private targets need. Attach it, or set annotation ${PREFIX}use-private-ip to "false"`,
        })
    } else if (!server.ipv4) {
      unusable.set(server.id, {
        code: 'missing_ipv4',
        reason: `server ${server.id} has no public IPv4 address, which public targets need. Give it one, or set annotation ${PREFIX}use-private-ip to "true"`,
      })
    }
  }
  return unusable
}

function withCertificates(listeners: readonly Listener[], ids: number[]): Listener[] {
  return listeners.map((listener) =>
    listener.protocol === 'https' && listener.http
      ? { ...listener, http: { ...listener.http, certificates: ids } }
      : listener,
  )
}

function invalid(service: { namespace: string; name: string }, faults: readonly string[]): WindlassError {
  return permanent(`Service ${service.namespace}/${service.name}: ${faults.join('; ')}`, {
    code: 'invalid_service',
    faults,
  })
}

function required(type: LoadBalancerType | undefined): LoadBalancerType {
  if (!type) throw new TypeError('a load balancer can only be made of a known type')
  return type
}
