import type { Call } from '../../../call.ts'
import type { HcloudSettings } from '../../../config/types.ts'
import { kindOf, permanent, type WindlassError } from '../../../errors.ts'
import type { NodeProjection, ServiceProjection } from '../../../events/projection.ts'
import type { Note, SoughtPlan } from '../../provider.ts'
import type { RobotServers } from '../../robot/servers.ts'
import type { CloudServerId, Listener, LoadBalancer, LoadBalancerType, Server } from '../model.ts'
import type { ConfiguredNetwork } from '../network.ts'
import type { Servers } from '../servers.ts'
import { PREFIX, writtenIn } from './annotations.ts'
import { checkAttachment } from './attachment.ts'
import { type CertificatePlan, NO_CERTIFICATES, planCertificates } from './certificates.ts'
import type { LoadBalancerChange } from './changes.ts'
import { planCreation } from './create.ts'
import { annotationIgnored, type Desired, type DesireOptions, desire, type Wish } from './desire.ts'
import { defaultName, OWNER_LABEL } from './names.ts'
import { findForService } from './observe.ts'
import type { Places } from './places.ts'
import { isPlaced, type Judgement, type Planned, planLoadBalancer, planOnlyTargets, type Wanted } from './plan.ts'
import type { LoadBalancerReads } from './reads.ts'
import { ingressOf } from './status.ts'
import { needsRobot, type RobotKnowledge, resolveTargets } from './targets.ts'
import { type LoadBalancerTypes, resolveType } from './types.ts'

export interface PlannerOptions {
  reads: LoadBalancerReads
  types: LoadBalancerTypes
  servers: Servers
  network: ConfiguredNetwork
  robot?: RobotServers
  /** Where it is not the API that says so. */
  places?: Places
}

/** A plan with what it was made from, so that it can be carried out and made again on the way. */
export interface HcloudPlan extends SoughtPlan {
  readonly changes: readonly LoadBalancerChange[]
  readonly context?: PlanContext
}

export interface PlanContext {
  desired: Desired
  /** Without the ids of certificates that are still to be made. */
  wanted: Wanted
  /** For a load balancer that has to be made. */
  type?: LoadBalancerType
  observed?: LoadBalancer
  certificates: CertificatePlan
  /** The Service asks for what can't be: its status stays as it is. */
  onlyTargets?: { ingress: ServiceProjection['ingress'] }
}

/** After these a load balancer may have others than before. */
const MOVES_ADDRESSES: ReadonlySet<LoadBalancerChange['kind']> = new Set(['attach', 'detach', 'set-public-interface'])

export const desireOptionsOf = (settings: HcloudSettings): DesireOptions => ({
  defaults: settings.loadBalancers,
  hasNetwork: settings.network !== undefined,
  robotEnabled: settings.robot !== undefined,
})

/** Looks at everything that a plan for one Service depends on, and plans. */
export function createPlanner(
  { reads, types, servers, network, robot, places }: PlannerOptions,
  desireOptions: DesireOptions,
) {
  async function plan(service: ServiceProjection, nodes: readonly NodeProjection[], call: Call): Promise<HcloudPlan> {
    const wish = desire(service, nodes, desireOptions)
    const { desired } = wish
    if (wish.faults.length > 0 && !wish.targetsKnown) throw invalid(service, [...wish.faults, ...wish.slips])
    const observed = await findForService(service, desired.name, reads, call)
    const networkId = await network.id(call)
    const { faults, notes } = settleFaults(wish, observed, networkId)
    if (faults.length > 0) return planTargets(service, wish, observed, networkId, faults, call)
    const certificates = await lookUpCertificates(service, desired, call)
    faults.push(
      ...certificates.faults,
      ...(await checkAttachment(
        { ...desired.attachment, rangeFrom: writtenIn('private-subnet-ip-range', service.annotations) },
        observed,
        { network, networkId, servers, reads },
        call,
      )),
      ...placementFaults(desired, observed),
      ...(observed ? [] : await foreseenPlaceFaults(service, desired, call)),
    )
    const type = await resolveType(
      { name: desired.type, from: writtenIn('type', service.annotations) },
      observed,
      types,
      call,
    )
    faults.push(...type.faults)
    if (faults.length > 0) return planTargets(service, wish, observed, networkId, faults, call)
    const {
      wanted,
      faults: robotFaults,
      notes: targetNotes,
    } = await want(
      service,
      desired,
      { observed, ...(type.type ? { maxTargets: type.type.maxTargets } : {}) },
      networkId,
      call,
    )
    wanted.listeners = withCertificates(desired.listeners, certificates.ids)
    if (type.type) wanted.type = type.type
    const planned: Planned = observed ? planLoadBalancer(wanted, observed) : planCreation(wanted, required(type.type))
    return {
      changes: [...certificates.before, ...planned.changes, ...certificates.after],
      notes: [...notes, ...type.notes, ...certificates.notes, ...targetNotes, ...planned.notes],
      faults: [...planned.faults, ...robotFaults],
      unmarked: observed?.labels[OWNER_LABEL] !== service.uid,
      ...(observed && !planned.changes.some(({ kind }) => MOVES_ADDRESSES.has(kind))
        ? { ingress: ingressOf(observed, desired.ingress) }
        : {}),
      context: {
        desired,
        wanted,
        ...(type.type ? { type: type.type } : {}),
        ...(observed ? { observed } : {}),
        certificates,
      },
    }
  }

  async function foreseenPlaceFaults(
    service: ServiceProjection,
    { placement }: Desired,
    call: Call,
  ): Promise<string[]> {
    const from = {
      location: writtenIn('location', service.annotations),
      networkZone: writtenIn('network-zone', service.annotations),
    }
    return (await places?.faults(placement, from, call)) ?? []
  }

  /**
   * A Service that asks for what can't be keeps the load balancer that it has, and nodes come and go meanwhile: nothing but the targets
   * is changed.
   */
  async function planTargets(
    service: ServiceProjection,
    { desired, targetsKnown, slips, notes }: Wish,
    observed: LoadBalancer | undefined,
    networkId: number | undefined,
    faults: readonly string[],
    call: Call,
  ): Promise<HcloudPlan> {
    const fault = invalid(service, faults)
    // Without a plan nobody hears of the notes.
    const nothing = () => invalid(service, [...faults, ...slips])
    const ours = observed?.labels[OWNER_LABEL] === service.uid
    const reaches = !desired.usePrivateIp || observed?.privateNets.some((net) => net.network === networkId)
    if (!observed || !ours || !reaches || !targetsKnown) throw nothing()
    const {
      wanted,
      faults: robotFaults,
      notes: targetNotes,
    } = await want(service, desired, { observed }, networkId, call)
    const planned = planOnlyTargets(wanted, observed)
    if (planned.changes.length === 0) throw nothing()
    return {
      changes: planned.changes,
      notes: [...notes, ...targetNotes, ...planned.notes],
      faults: [fault, ...planned.faults, ...robotFaults],
      ingress: service.ingress,
      context: {
        desired,
        wanted,
        observed,
        certificates: NO_CERTIFICATES,
        onlyTargets: { ingress: service.ingress },
      },
    }
  }

  /** What is wanted, without type and certificates. */
  async function want(
    service: ServiceProjection,
    desired: Desired,
    present: Present,
    networkId: number | undefined,
    call: Call,
  ): Promise<{ wanted: Wanted; faults: Error[]; notes: Note[] }> {
    const { usePrivateIp } = desired
    const knowledge = await askRobot(desired, call)
    const resolved = resolveTargets(desired.targets, { usePrivateIp, robot: knowledge })
    const wanted: Wanted = {
      ...desired,
      uid: service.uid,
      defaultName: defaultName(service.uid),
      type: undefined,
      ...(networkId === undefined ? {} : { network: networkId }),
      targets: resolved.targets,
      targetsOpen: resolved.open || knowledge.kind === 'unavailable',
      unusable: new Map(),
    }
    Object.assign(wanted, await judged(wanted, present, call))
    const missed = knowledge.kind === 'unavailable' && needsRobot(desired.targets, usePrivateIp)
    return { wanted, faults: missed ? [knowledge.error] : [], notes: resolved.notes }
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

  /** Asked only for targets that are to be added; for a new load balancer only what is known anyway, unless it is too small for all. */
  async function judged(
    wanted: Wanted,
    { observed, maxTargets = Number.POSITIVE_INFINITY }: Present,
    call: Call,
  ): Promise<Judgement> {
    const missing = wanted.targets.some(
      ({ target }) =>
        target.type === 'server' &&
        !observed?.targets.some(
          (one) => one.type === 'server' && one.server === target.server && one.usePrivateIp === target.usePrivateIp,
        ),
    )
    if (!missing) return judge(wanted, undefined)
    return judge(wanted, observed || wanted.targets.length > maxTargets ? await servers.list(call) : servers.peek())
  }

  return plan
}

/** Faults that count for this load balancer, and what is told of those that do not. */
function settleFaults(
  { desired, faults, faultsIfMade, faultsIfAttached, notes }: Wish,
  observed: LoadBalancer | undefined,
  networkId: number | undefined,
): { faults: string[]; notes: Note[] } {
  const place = { network: networkId, attachment: desired.attachment }
  const attaches = networkId !== undefined && !observed?.privateNets.some((net) => isPlaced(place, net))
  const counting = [...(observed ? [] : faultsIfMade), ...(attaches ? faultsIfAttached : [])]
  const idle = [...(observed ? faultsIfMade : []), ...(attaches ? [] : faultsIfAttached)]
  return {
    faults: [...faults, ...counting],
    notes: [...notes, ...idle.map((message) => annotationIgnored(`${message}; what is there stays`))],
  }
}

function placementFaults({ placement }: Desired, observed: LoadBalancer | undefined): string[] {
  if (observed || placement.location || placement.networkZone) return []
  return [
    `neither ${PREFIX}location nor ${PREFIX}network-zone set: add one of the annotations, or set HCLOUD_LOAD_BALANCERS_LOCATION or HCLOUD_LOAD_BALANCERS_NETWORK_ZONE`,
  ]
}

/** What is there already, and how many targets it takes if it has to be made. */
interface Present {
  observed: LoadBalancer | undefined
  maxTargets?: number
}

/** Which servers the API would refuse as targets, by what a list says of them. A server that it lacks may be new: the API decides. */
export function judge(wanted: Wanted, list: readonly Server[] | undefined): Judgement {
  const unusable = new Map<CloudServerId, { code: string; reason: string }>()
  const listed = new Set(list?.map(({ id }) => id))
  const unlisted = new Set(
    wanted.targets.flatMap(({ target }) =>
      list && target.type === 'server' && !listed.has(target.server) ? [target.server] : [],
    ),
  )
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
  return { unusable, unlisted }
}

export function withCertificates(listeners: readonly Listener[], ids: number[]): Listener[] {
  return listeners.map((listener) =>
    listener.protocol === 'https' && listener.http
      ? { ...listener, http: { ...listener.http, certificates: ids } }
      : listener,
  )
}

export function invalid(service: { namespace: string; name: string }, faults: readonly string[]): WindlassError {
  return permanent(`Service ${service.namespace}/${service.name}: ${faults.join('; ')}`, {
    code: 'invalid_service',
    faults,
  })
}

export function required(type: LoadBalancerType | undefined): LoadBalancerType {
  if (!type) throw new TypeError('a load balancer can only be made of a known type')
  return type
}
