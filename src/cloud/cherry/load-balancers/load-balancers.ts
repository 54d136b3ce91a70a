import type { Call } from '../../../call.ts'
import { parseCherryLoadBalancer } from '../../../config/cherry-load-balancer.ts'
import { parseSelector } from '../../../config/selector.ts'
import type { CherrySettings } from '../../../config/types.ts'
import { kindOf, messageOf, permanent, throttled, transient } from '../../../errors.ts'
import type { NodeProjection, ServiceProjection } from '../../../events/projection.ts'
import type { Announcement, Applied, Change, LoadBalancers, Note, SoughtPlan } from '../../provider.ts'
import type { Addresses } from '../addresses.ts'
import type { CherryClient } from '../client.ts'
import type { Address, Project } from '../model.ts'
import type { Projects } from '../projects.ts'
import type { Servers } from '../servers.ts'
import { announce, withdraw } from './announcement.ts'
import { createBgpSwitches } from './bgp-switches.ts'
import { type Candidates, createCandidates } from './candidates.ts'
import { createJudge, strippedOf } from './judge.ts'
import { addressAnnotations, annotationsFor, isDeclined, regionOf } from './own-address.ts'
import { decideReservation, reservationsToRelease } from './reservation.ts'
import { type BgpSwitch, bgpSwitches, HOSTNAME_LABEL, REGION_LABEL, type Speaker, speakerOf } from './speakers.ts'
import { isOfCluster, reservationsOf, tagsOf } from './tags.ts'

export interface CherryLoadBalancersOptions {
  client: CherryClient
  servers: Servers
  addresses: Addresses
  projects: Projects
  settings: CherrySettings & { loadBalancer: string }
  /** uid of the namespace kube-system: tells the addresses of this cluster from those of another in the project. */
  clusterUid(call: Call): Promise<string>
}

type CherryChange = Change &
  (
    | { kind: 'reserve-address'; region: string; tags: Record<string, string> }
    | { kind: 'claim-address'; address: Address; tags: Record<string, string> }
    | { kind: 'enable-project-bgp'; name: string }
    | ({ kind: 'enable-server-bgp' } & BgpSwitch)
    | { kind: 'release-address'; address: Address }
  )

interface CherryPlan extends SoughtPlan {
  readonly changes: readonly CherryChange[]
  readonly context?: PlanContext
  /** Of a deletion: what all addresses of the Service have. */
  readonly tags?: Record<string, string>
}

type MadePlan = CherryPlan & { readonly context: PlanContext }

/** What was observed, for carrying the plan out. */
interface PlanContext {
  service: ServiceProjection
  tags: Record<string, string>
  region: string | undefined
  /** Known addresses: the user's, or the one that is kept. */
  addresses: readonly string[] | undefined
  wished: boolean
  superseded: readonly Address[]
  /** All addresses that are there for the Service, be they of use to it or not. */
  reserved: readonly string[]
  nodes: Candidates
  project: Project
}

/** Between two looks for an address that may turn up yet. */
const AGAIN_MS = 10_000

/** A floating IP at the cloud, and BGP of project and servers; the announcement in the cluster is planned beside it. */
export function createLoadBalancers(options: CherryLoadBalancersOptions): LoadBalancers {
  const { client, servers, addresses, projects, settings, clusterUid } = options
  const balancer = parsed(parseCherryLoadBalancer(settings.loadBalancer), 'CHERRY_LOAD_BALANCER')
  const selector = parsed(parseSelector(settings.bgpNodeSelector ?? ''), 'CHERRY_BGP_NODE_SELECTOR')
  const keys = addressAnnotations(balancer)
  const switches = createBgpSwitches(client, servers, projects)
  const judge = createJudge(addresses, keys)
  const needsRegion = balancer.kind === 'metallb' && balancer.bgpPeerMode === 'frr'

  const { takesPart, candidatesOf } = createCandidates(servers, switches, selector)

  function announcementOf(
    context: PlanContext,
    address: readonly string[],
    localAsn: number,
    failed: ReadonlySet<string> = new Set(),
  ): { announcement: Announcement; notes: Note[] } {
    const { service, wished, reserved } = context
    const { candidates, unreadable, lost } = context.nodes
    const judged = candidates
      .filter(({ node }) => !failed.has(node.name))
      .map((candidate) => speakerOf(candidate, localAsn))
    const unsure = new Set(judged.flatMap((one) => ('note' in one && one.unsure ? [one.note.node] : [])))
    const missing = [
      ...unreadable.keys(),
      ...lost,
      ...candidates.flatMap(({ node }) => (failed.has(node.name) || unsure.has(node.name) ? [node] : [])),
    ]
    const unknown = new Set(missing.flatMap((node) => [node.name, node.labels[HOSTNAME_LABEL] ?? node.name]))
    return {
      announcement: announce({
        balancer,
        templates: settings.annotations,
        selector,
        service,
        serviceAnnotations: annotationsFor(service, keys, wished ? undefined : address[0], reserved),
        addresses: address,
        speakers: judged.filter((one): one is Speaker => 'sourceIp' in one),
        unknown,
      }),
      notes: [
        ...lost.map(noteLost),
        ...judged.flatMap((one) =>
          'note' in one ? [one.note] : needsRegion && one.region === '' ? [noteNoRegion(one)] : [],
        ),
      ],
    }
  }

  /** The address of the Service, made, found or proven to live. */
  async function addressFor({ changes, context }: MadePlan, call: Call): Promise<string[]> {
    if (context.addresses) {
      const claim = changes.find((change) => change.kind === 'claim-address')
      if (!claim) return [...context.addresses]
      if (await addresses.tag(claim.address.id, claim.tags, call)) return [...context.addresses]
      call.log.info({ address: claim.address.address }, 'a listed address is gone, another is reserved')
    }
    const { service, tags } = context
    const region = context.region ?? noRegion(service)
    const claimed = changes.find((change) => change.kind === 'claim-address')?.address.id
    return [ipOf(await addresses.reserve(region, tags, call, claimed))]
  }

  /** BGP of the project, and the ASN that its servers have. */
  async function projectAsn({ changes, context }: MadePlan, call: Call): Promise<number> {
    const switching = changes.some(({ kind }) => kind === 'enable-project-bgp')
    const project = switching ? await switches.project(call) : context.project
    if (project.localAsn !== 0) return project.localAsn
    throw transient('Cherry Servers has not given the project an ASN yet, so its nodes have no BGP sessions.', {
      code: 'no_asn',
    })
  }

  async function switchServers(changes: readonly CherryChange[], call: Call): Promise<Map<string, Error>> {
    const failed = new Map<string, Error>()
    await Promise.all(
      changes.map(async (one) => {
        if (one.kind !== 'enable-server-bgp') return
        try {
          await switches.server(one, call)
        } catch (error) {
          if (kindOf(error) === 'aborted' && call.signal.aborted) throw error
          failed.set(one.node, asError(error))
        }
      }),
    )
    return failed
  }

  /** Where a second address was made after all, the agreed one stays; the others go when nobody uses them any more. */
  async function superseded(
    context: PlanContext,
    [address = '', ...others]: readonly string[],
    madeMs: number | undefined,
    call: Call,
  ): Promise<CherryPlan> {
    const all = [...context.superseded]
    if (madeMs !== undefined) {
      const { service, tags } = context
      const owner = { ...service, clusterUid: tags.cluster ?? '' }
      const reservations = reservationsOf(owner, await addresses.since(madeMs, call))
      const known = [address]
      all.push(
        ...decideReservation({ uid: service.uid, reservations, known, published: known, wished: false }).superseded,
      )
    }
    const releases = uniqueById(all).filter((one) => one.address !== address && !others.includes(one.address))
    return { changes: releases.map(release), notes: releases.map(noteReleased) }
  }

  return {
    inCluster: true,
    declines: isDeclined,

    async plan(service, nodes, call): Promise<CherryPlan> {
      const owner = { ...service, clusterUid: await clusterUid(call) }
      const { wish, keep, claim, superseded, leftAlone } = await judge(service, owner, call)
      const region = regionOf(service, settings)
      if (!wish && !keep && region === undefined) noRegion(service)
      const [found, project] = await Promise.all([candidatesOf(nodes, call), projects.get(call)])
      const tags = tagsOf(owner)
      const context: PlanContext = {
        service,
        tags,
        region,
        addresses: wish?.addresses ?? (keep ? [ipOf(keep)] : undefined),
        wished: wish !== undefined,
        superseded,
        reserved: [...(keep ? [keep] : []), ...superseded, ...leftAlone].map(({ address }) => address),
        nodes: found,
        project,
      }
      const changes: CherryChange[] = []
      if (!wish && !keep && region !== undefined)
        changes.push({ kind: 'reserve-address', region, tags, summary: `reserve a floating IP in region ${region}` })
      if (keep && claim)
        changes.push({
          kind: 'claim-address',
          address: keep,
          tags: { ...keep.tags, ...tags },
          summary: `take floating IP ${keep.address}`,
        })
      if (!project.bgpEnabled)
        changes.push({ kind: 'enable-project-bgp', name: project.name, summary: 'switch BGP on for the project' })
      for (const one of bgpSwitches(found.candidates))
        changes.push({ kind: 'enable-server-bgp', ...one, summary: `switch BGP on for the server of node ${one.node}` })
      const preview = announcementOf(context, context.addresses ?? ['(the new floating IP)'], project.localAsn)
      return {
        changes,
        notes: leftAlone.map(noteLeftAlone),
        unmarked: keep === undefined,
        ...(context.addresses ? { ingress: context.addresses.map(asIngress) } : {}),
        announcement: preview.announcement,
        context,
      }
    },

    async apply(plan, call): Promise<Applied> {
      const { context } = plan as CherryPlan
      if (!context) throw permanent('This plan was not made for Cherry Servers.')
      const own: MadePlan = { ...(plan as CherryPlan), context }
      // The address first: without one there is nothing to announce, and no reason to touch a server.
      const address = await addressFor(own, call)
      const madeMs = performance.now()
      const localAsn = await projectAsn(own, call)
      const failed = await switchServers(own.changes, call)
      const { announcement, notes } = announcementOf(context, address, localAsn, new Set(failed.keys()))
      const made = own.changes.some(({ kind }) => kind === 'reserve-address' || kind === 'claim-address')
      const doubtMs = await addresses.doubtMs(context.tags)
      return {
        ingress: address.map(asIngress),
        notes,
        faults: [...context.nodes.unreadable.values(), ...failed.values()],
        announcement,
        ...(doubtMs > 0 ? { againMs: Math.min(doubtMs, AGAIN_MS) } : {}),
        // A look for others is worth waiting for only when the Service has its address.
        ...(made || context.superseded.length > 0
          ? { superseded: (call: Call) => superseded(context, address, made ? madeMs : undefined, call) }
          : {}),
      }
    },

    async planDeletion(service, call): Promise<CherryPlan> {
      const owner = { ...service, clusterUid: await clusterUid(call) }
      const list = await addresses.now(call)
      const reservations = reservationsToRelease(service.uid, reservationsOf(owner, list))
      const written = reservations.map(({ address }) => address)
      return {
        changes: reservations.map(release),
        notes: reservations.length > 0 ? [] : strippedOf(service, list).map(noteLeftBehind),
        tags: tagsOf(owner),
        addresses: written,
        unmarked: reservations.length === 0,
        announcement: withdraw(balancer, service, annotationsFor(service, keys, undefined, written)),
      }
    },

    async applyDeletion(plan, call) {
      const { changes, tags } = plan as CherryPlan
      for (const change of changes) {
        if (change.kind !== 'release-address') continue
        await addresses.release(change.address, call)
      }
      const doubtMs = tags ? await addresses.doubtMs(tags) : 0
      if (doubtMs > 0)
        throw throttled(
          'The answer to the reservation of a floating IP for this Service was lost; until it is sure that no list will show one any more, the Service stays.',
          Date.now() + Math.min(doubtMs, AGAIN_MS),
          { code: 'address_in_doubt' },
        )
      return { notes: [] }
    },

    async possessions(_nodes, call) {
      const cluster = await clusterUid(call)
      const ours = (await addresses.now(call)).filter((one) => isOfCluster(cluster, one))
      return ours.map((one) => ({
        what: `floating IP ${one.address} (${one.id})`,
        howToRemove: `release ${one.address} at Cherry Servers`,
        ofThisCluster: true,
        belongsTo: (service) => reservationsOf({ ...service, clusterUid: cluster }, [one]).length > 0,
      }))
    },

    targetsKey(_service, nodes) {
      return JSON.stringify(
        nodes
          .filter(takesPart)
          .map(({ name, providerId, labels }) => [name, providerId, labels[HOSTNAME_LABEL], labels[REGION_LABEL]])
          .sort(),
      )
    },
  }
}

function parsed<T>(result: { value: T } | { fault: string }, name: string): T {
  if ('fault' in result) throw permanent(`${name} ${result.fault}`)
  return result.value
}

const asIngress = (ip: string) => ({ ip, ipMode: 'VIP' })

const asError = (error: unknown) => (error instanceof Error ? error : new Error(messageOf(error)))

function noRegion({ namespace, name }: ServiceProjection): never {
  throw permanent(
    `Service ${namespace}/${name} has no floating IP yet, and no region says where to reserve one: set CHERRY_REGION_NAME, or the Service's annotation for the region.`,
    { code: 'no_region' },
  )
}

/** One that is still being set up has none. */
function ipOf({ id, address }: Address): string {
  if (address !== '') return address
  throw transient(`Cherry Servers does not say yet which address floating IP ${id} is.`, { code: 'no_address' })
}

const noteLeftBehind = ({ address }: Address): Note => ({
  type: 'Warning',
  reason: 'FloatingIPLeftBehind',
  message: `Floating IP ${address} was this Service's, and has no tags any more that say so: it stays. Release it at Cherry Servers if nobody needs it`,
})

const release = (address: Address): CherryChange => ({
  kind: 'release-address',
  address,
  summary: `release floating IP ${address.address}`,
})

const uniqueById = (addresses: readonly Address[]) => [...new Map(addresses.map((one) => [one.id, one])).values()]

const noteNoRegion = ({ node }: Speaker): Note => ({
  type: 'Warning',
  reason: 'NoBgpSpeaker',
  message: `Node ${node} announces no addresses: it has no label ${REGION_LABEL}, by which peers of mode frr select their nodes`,
  node,
})

const noteLost = ({ name, providerId }: NodeProjection): Note => ({
  type: 'Warning',
  reason: 'NoBgpSpeaker',
  message: `Node ${name} announces no new addresses: server ${providerId} is not found at Cherry Servers`,
  node: name,
})

const noteReleased = ({ address }: Address): Note => ({
  type: 'Normal',
  reason: 'FloatingIPReleased',
  message: `Floating IP ${address} has this Service's tags and is of no more use to it, so it is released`,
})

const noteLeftAlone = ({ address }: Address): Note => ({
  type: 'Warning',
  reason: 'FloatingIPUnused',
  message: `Floating IP ${address} was reserved for this Service, which now names another address. It is kept until the Service goes; release it at Cherry Servers if you don't need it`,
})
