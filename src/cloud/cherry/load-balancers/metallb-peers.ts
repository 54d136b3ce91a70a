import { createHash } from 'node:crypto'
import type { BgpPeerMode } from '../../../config/cherry-load-balancer.ts'
import type { Selector } from '../../../config/selector.ts'
import type { KubeObject } from '../../../kubernetes/objects.ts'
import type { ObjectChange } from '../../provider.ts'
import { type Observed, OUR_LABELS, PEER, type ServiceName, same, seen, specOf } from './metallb-kinds.ts'
import { isPoolOf } from './metallb-pools.ts'
import { HOSTNAME_LABEL, REGION_LABEL, type Speaker } from './speakers.ts'

/** Which Services use a peer is kept in node selectors that select no node, one for each. */
const USER_NAMESPACE = 'nomatch.cherryservers.com/service-namespace'
const USER_NAME = 'nomatch.cherryservers.com/service-name'
const BGP_PORT = 179
/** Names have 253 characters at most. */
const LONGEST_STEM = 248

interface NodeSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

/** A session that there shall be: one for each node and router, or, where routers may have but one peer each, for each region and router. */
interface WantedPeer {
  /** Node or region. */
  group: string
  spec: PeerSpec
}

interface PeerSpec {
  myASN: number
  peerASN: number
  peerAddress: string
  peerPort: number
  sourceAddress?: string
  holdTime: string
  ebgpMultiHop?: boolean
  /** The one that selects nodes. */
  selector: NodeSelector
}

/** What we keep true in a peer; fields beside these are left to whoever set them. */
const OWN_FIELDS = ['myASN', 'peerASN', 'peerAddress', 'peerPort', 'sourceAddress', 'holdTime', 'ebgpMultiHop'] as const

/** Peers for all nodes that take part, with this Service among their users. Nodes in `unknown` keep the peers that they have. */
export function planPeers(
  service: ServiceName,
  speakers: readonly Speaker[],
  unknown: ReadonlySet<string>,
  options: { mode: BgpPeerMode; selector: Selector; namespace: string },
  observed: Observed,
): ObjectChange[] {
  const { mode, selector, namespace } = options
  const wanted = wantedPeers(speakers, mode, selector)
  const { named, others } = matchUp(wanted, observed.peers)
  const users = (peer: KubeObject | undefined) => {
    const live = peer ? usersOf(peer).filter((user) => isLive(user, service, observed)) : []
    return [...live.filter((user) => !same(user, plain(service))), plain(service)].sort(byName)
  }
  const changes = named.flatMap(({ name, spec, present }) => {
    const { selector: nodes, ...fields } = spec
    const full = { ...fields, nodeSelectors: [nodes, ...users(present).map(selectorOf)] }
    return present ? changePeer(present, full, namespace) : [createPeer(name, full, namespace)]
  })
  const keeps = (peer: KubeObject) => unknown.size > 0 && (mode !== 'native' || unknown.has(hostnameOf(peer) ?? ''))
  return [...changes, ...others.filter((peer) => !keeps(peer)).flatMap((peer) => leavePeer(peer, service, namespace))]
}

/** Takes a Service out of all peers. Those that no other uses go. */
export function planPeersGone(service: ServiceName, namespace: string, observed: Observed): ObjectChange[] {
  const othersLeft = observed.pools.some((pool) => !isOnlyOf(pool, service))
  return observed.peers.flatMap((peer) => {
    // Of the replaced controller: made for a first Service, and never marked as used by any.
    const unmarked = usersOf(peer).every((user) => same(user, plain(service)))
    return unmarked && othersLeft ? stripPeer(peer, service, namespace) : leavePeer(peer, service, namespace)
  })
}

function wantedPeers(speakers: readonly Speaker[], mode: BgpPeerMode, selector: Selector): WantedPeer[] {
  if (mode === 'none') return []
  if (mode === 'native')
    return speakers.flatMap((speaker) =>
      speaker.peers.map((peer) => ({
        group: speaker.node,
        spec: {
          ...session(speaker, peer),
          sourceAddress: speaker.sourceIp,
          selector: { matchLabels: { [HOSTNAME_LABEL]: speaker.hostname } },
        },
      })),
    )
  const regions = new Map<string, Speaker>()
  for (const speaker of speakers)
    if (speaker.region && !regions.has(speaker.region)) regions.set(speaker.region, speaker)
  return [...regions].flatMap(([region, speaker]) =>
    speaker.peers.map((peer) => ({
      group: objectName(region),
      spec: {
        ...session(speaker, peer),
        ebgpMultiHop: true,
        selector: structured(selector, { [REGION_LABEL]: region }),
      },
    })),
  )
}

const session = ({ localAsn, peerAsn }: Speaker, peerAddress: string) => ({
  myASN: localAsn,
  peerASN: peerAsn,
  peerAddress,
  peerPort: BGP_PORT,
  holdTime: '30s',
})

const OPERATORS: Readonly<Partial<Record<Selector[number]['operator'], string>>> = {
  '=': 'In',
  in: 'In',
  '!=': 'NotIn',
  notin: 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
}

/** A label selector in the form of objects, in the order that Kubernetes' own parser gives it. A second demand on one key can't be a label to match. */
function structured(selector: Selector, more: Record<string, string>): NodeSelector {
  const matchLabels: Record<string, string> = { ...more }
  const matchExpressions: NonNullable<NodeSelector['matchExpressions']> = []
  for (const { key, operator, values } of [...selector].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))) {
    const [value = ''] = values
    if (operator === '=' && !Object.hasOwn(matchLabels, key)) matchLabels[key] = value
    else if (operator === '=' && matchLabels[key] === value) continue
    else {
      const said = OPERATORS[operator] ?? operator
      matchExpressions.push({ key, operator: said, ...(values.length > 0 ? { values: [...values].sort() } : {}) })
    }
  }
  return { matchLabels, ...(matchExpressions.length > 0 ? { matchExpressions } : {}) }
}

/**
 * Which peer that is there serves which that is wanted: by group and address, so that another order of the API renames no session, then
 * by name. New ones get the first free number of their group, in the API's order.
 */
function matchUp(wanted: readonly WantedPeer[], peers: readonly KubeObject[]) {
  const free = new Map(peers.map((peer) => [peer.metadata.name, peer]))
  const matched = wanted.map((one) => {
    const present = [...free.values()].find(
      (peer) => isOfGroup(peer, one.group) && specOf(peer).peerAddress === one.spec.peerAddress,
    )
    if (present) free.delete(present.metadata.name)
    return { ...one, present }
  })
  const taken = new Set(matched.flatMap(({ present }) => (present ? [present.metadata.name] : [])))
  const named = matched.map(({ group, spec, present }) => {
    if (present) return { name: present.metadata.name, spec, present }
    let number = 0
    while (taken.has(nameOf(group, number))) number++
    const name = nameOf(group, number)
    taken.add(name)
    const inTheWay = free.get(name)
    free.delete(name)
    return { name, spec, present: inTheWay }
  })
  return { named, others: [...free.values()] }
}

/** A label's value may have capitals and underscores, and a name may not. */
const objectName = (label: string) => label.toLowerCase().replaceAll('_', '-')

const nameOf = (group: string, number: number) => `${stemOf(group)}-${number}`

/** A node may have a name so long that no number fits behind it. */
function stemOf(group: string): string {
  if (group.length <= LONGEST_STEM) return group
  return `${group.slice(0, LONGEST_STEM - 17)}-${createHash('sha256').update(group).digest('hex').slice(0, 16)}`
}

function isOfGroup({ metadata: { name } }: KubeObject, group: string): boolean {
  const stem = `${stemOf(group)}-`
  return name.startsWith(stem) && /^\d+$/.test(name.slice(stem.length))
}

const selectorsOf = (peer: KubeObject) => (specOf(peer).nodeSelectors ?? []) as NodeSelector[]

const hostnameOf = (peer: KubeObject) =>
  selectorsOf(peer).find(({ matchLabels }) => matchLabels?.[HOSTNAME_LABEL] !== undefined)?.matchLabels?.[
    HOSTNAME_LABEL
  ]

function usersOf(peer: KubeObject): ServiceName[] {
  return selectorsOf(peer).flatMap((selector) => userIn(selector) ?? [])
}

function userIn({ matchLabels = {} }: NodeSelector): ServiceName | undefined {
  const namespace = matchLabels[USER_NAMESPACE]
  const name = matchLabels[USER_NAME]
  return namespace !== undefined && name !== undefined ? { namespace, name } : undefined
}

const selectorOf = ({ namespace, name }: ServiceName): NodeSelector => ({
  matchLabels: { [USER_NAME]: name, [USER_NAMESPACE]: namespace },
})

const plain = ({ namespace, name }: ServiceName): ServiceName => ({ namespace, name })

const byName = (a: ServiceName, b: ServiceName) => {
  const [left, right] = [`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`]
  return left < right ? -1 : left > right ? 1 : 0
}

const isLive = (user: ServiceName, self: ServiceName, { pools }: Observed) =>
  same(user, plain(self)) || pools.some((pool) => isPoolOf(pool, user))

function isOnlyOf(pool: KubeObject, service: ServiceName): boolean {
  const labels = Object.keys(pool.metadata.labels ?? {}).filter((key) => key.startsWith('service-'))
  return labels.length <= 1 && (labels.length === 0 || isPoolOf(pool, service))
}

function createPeer(name: string, spec: Record<string, unknown>, namespace: string): ObjectChange {
  return {
    action: 'create',
    summary: `create BGP peer ${name} to ${String(spec.peerAddress)}`,
    object: PEER,
    namespace,
    name,
    essential: false,
    labels: { ...OUR_LABELS },
    spec,
  }
}

function changePeer(peer: KubeObject, wanted: Record<string, unknown>, namespace: string): ObjectChange[] {
  const present = specOf(peer)
  const spec: Record<string, unknown> = {}
  for (const field of OWN_FIELDS) {
    const value = wanted[field]
    if (value === undefined ? present[field] : !same(present[field], value)) spec[field] = value ?? null
  }
  if (!same(present.nodeSelectors, wanted.nodeSelectors)) spec.nodeSelectors = wanted.nodeSelectors
  if (Object.keys(spec).length === 0) return []
  const { name } = peer.metadata
  return [
    {
      action: 'patch',
      summary: `change BGP peer ${name}`,
      object: PEER,
      namespace,
      name,
      essential: false,
      body: { metadata: seen(peer), spec },
    },
  ]
}

function leavePeer(peer: KubeObject, service: ServiceName, namespace: string): ObjectChange[] {
  if (usersOf(peer).some((user) => !same(user, plain(service)))) return stripPeer(peer, service, namespace)
  const { name } = peer.metadata
  return [
    {
      action: 'delete',
      summary: `delete BGP peer ${name}`,
      object: PEER,
      namespace,
      name,
      essential: false,
      ...seen(peer),
    },
  ]
}

function stripPeer(peer: KubeObject, service: ServiceName, namespace: string): ObjectChange[] {
  const present = selectorsOf(peer)
  const left = present.filter((selector) => !same(userIn(selector), plain(service)))
  if (left.length === present.length) return []
  const { name } = peer.metadata
  return [
    {
      action: 'patch',
      summary: `take Service ${service.namespace}/${service.name} off BGP peer ${name}`,
      object: PEER,
      namespace,
      name,
      essential: false,
      body: { metadata: seen(peer), spec: { nodeSelectors: left } },
    },
  ]
}
