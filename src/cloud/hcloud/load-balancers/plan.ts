import { permanent, transient, type WindlassError } from '../../../errors.ts'
import type { Note } from '../../provider.ts'
import type { CloudServerId, Listener, LoadBalancer, LoadBalancerType, PrivateNet } from '../model.ts'
import type { KnownTarget, LoadBalancerChange } from './changes.ts'
import type { Desired } from './desire.ts'
import { diffListeners } from './listeners.ts'
import { OWNER_LABEL, RELEASED_LABEL } from './names.ts'
import { type OwnSetting, readOwnSettings, withOwnSettings } from './own-settings.ts'
import { type ResolvedTarget, targetId } from './targets.ts'

/** What a Service wants, with everything looked up that the API knows by id. */
export interface Wanted
  extends Pick<Desired, 'name' | 'algorithm' | 'publicInterface' | 'rdns' | 'attachment' | 'placement'> {
  uid: string
  /** For a load balancer that has to be made. */
  defaultName: string
  /** Undefined leaves the type as it is. */
  type?: LoadBalancerType
  network?: number
  usePrivateIp: boolean
  /** With the ids of their certificates. */
  listeners: Listener[]
  targets: ResolvedTarget[]
  /** Robot did not answer: an ip target that is not wanted may be right. */
  targetsOpen: boolean
  /** Servers that the API would refuse as targets, and why. */
  unusable: ReadonlyMap<CloudServerId, { code: string; reason: string }>
  /** Servers that a list of all lacks: gone, or too new for it. They take no room that others could have. */
  unlisted?: ReadonlySet<CloudServerId>
}

/** What a list of servers says of those that are to be targets. */
export type Judgement = Required<Pick<Wanted, 'unusable' | 'unlisted'>>

export interface Planned {
  changes: LoadBalancerChange[]
  notes: Note[]
  /** More nodes are wanted than there is room for. */
  isFull?: boolean | undefined
  /** Items that can't be brought to their state now; everything else can. */
  faults: WindlassError[]
}

/**
 * Pure. From a load balancer as it is to what is wanted, with traffic never without targets: what targets need comes before them, what
 * takes away their way comes after.
 */
export function planLoadBalancer(wanted: Wanted, observed: LoadBalancer): Planned {
  const settings = planSettings(wanted, observed)
  const network = planNetwork(wanted, observed)
  const maxTargets = Math.min(observed.type.maxTargets, wanted.type?.maxTargets ?? observed.type.maxTargets)
  const grows = wanted.type !== undefined && wanted.type.maxTargets >= observed.type.maxTargets
  const limits = grows && wanted.type ? wanted.type : { ...observed.type, maxTargets }
  const type = planType(wanted, observed)
  // Detaching takes the private targets along.
  const detaches = network.some(({ kind }) => kind === 'detach')
  const left =
    wanted.usePrivateIp && detaches
      ? observed.targets.filter((one) => one.type !== 'server' || !one.usePrivateIp)
      : observed.targets
  const targets = planTargets(wanted, left, limits.maxTargets)
  const listeners = planListeners(wanted, observed, limits.maxServices)
  const publicInterface = planPublicInterface(wanted, observed, settings.own)
  return {
    changes: [
      ...settings.before,
      ...settings.changes,
      ...(grows ? type : []),
      ...publicInterface.filter((change) => change.kind === 'set-public-interface' && change.enabled),
      ...(wanted.usePrivateIp ? [...network, ...targets.changes] : [...targets.changes, ...network]),
      ...publicInterface.filter((change) => change.kind === 'set-public-interface' && !change.enabled),
      ...listeners.changes,
      ...(grows ? [] : type),
      ...settings.after,
    ],
    notes: targets.notes,
    isFull: targets.isFull,
    faults: [...targets.faults, ...listeners.faults],
  }
}

/** Pure. The targets alone, where nothing else of a load balancer may be touched. */
export function planOnlyTargets(wanted: Wanted, observed: LoadBalancer): Planned {
  return planTargets(wanted, observed.targets, observed.type.maxTargets)
}

/** Name, labels, algorithm and reverse DNS, with the note of what is ours written before and cleared after. */
function planSettings(wanted: Wanted, observed: LoadBalancer) {
  const own = readOwnSettings(observed.labels)
  const before = new Set(own)
  const after = new Set(own)
  const changes: LoadBalancerChange[] = []
  const claim = (setting: OwnSetting) => {
    before.add(setting)
    after.add(setting)
  }
  const drop = (setting: OwnSetting) => void after.delete(setting)

  const algorithm = wanted.algorithm ?? (own.has('algorithm') ? 'round_robin' : undefined)
  if (algorithm === 'round_robin') drop('algorithm')
  if (algorithm !== undefined && algorithm !== observed.algorithm) {
    if (algorithm !== 'round_robin') claim('algorithm')
    changes.push({
      kind: 'change-algorithm',
      summary: `change the algorithm from ${observed.algorithm} to ${algorithm}`,
      algorithm,
    })
  }

  for (const family of ['ipv4', 'ipv6'] as const) {
    const setting: OwnSetting = `${family}-rdns`
    const ip = observed.publicNet[family]
    const name = wanted.rdns[family]
    const present = observed.publicNet[`${family}DnsPtr`]
    if (name === undefined) drop(setting)
    if (ip === undefined) continue
    if (name !== undefined && plainName(name) !== plainName(present ?? '')) {
      claim(setting)
      changes.push({ kind: 'change-dns-ptr', summary: `set the reverse DNS of ${ip} to ${name}`, ip, dnsPtr: name })
    } else if (name === undefined && own.has(setting)) {
      changes.push({ kind: 'change-dns-ptr', summary: `give the reverse DNS of ${ip} back`, ip, dnsPtr: null })
    }
  }

  if (wanted.publicInterface === false && observed.publicNet.enabled) claim('public-network')
  if (wanted.publicInterface !== false) drop('public-network')

  const { [RELEASED_LABEL]: _, ...kept } = observed.labels
  const owned = { ...kept, [OWNER_LABEL]: wanted.uid }
  const labelsBefore = withOwnSettings(owned, before)
  const labelsAfter = withOwnSettings(owned, after)
  const renamed = wanted.name !== undefined && wanted.name !== observed.name ? wanted.name : undefined
  return {
    own,
    before: metadata(observed.labels, labelsBefore, observed.name, renamed),
    changes,
    after: metadata(labelsBefore, labelsAfter, observed.name, undefined),
  }
}

function metadata(
  from: Record<string, string>,
  to: Record<string, string>,
  presentName: string,
  name: string | undefined,
): LoadBalancerChange[] {
  const labelled = !sameLabels(from, to)
  if (!labelled && name === undefined) return []
  const parts = [
    ...(name === undefined ? [] : [`rename "${presentName}" to "${name}"`]),
    ...(labelled
      ? [from[OWNER_LABEL] === to[OWNER_LABEL] ? 'note settings in labels' : 'label it with its owner']
      : []),
  ]
  return [
    {
      kind: 'update-metadata',
      summary: parts.join(' and '),
      ...(name === undefined ? {} : { name }),
      ...(labelled ? { labels: to } : {}),
    },
  ]
}

function planPublicInterface(
  wanted: Wanted,
  observed: LoadBalancer,
  own: ReadonlySet<OwnSetting>,
): LoadBalancerChange[] {
  const enabled = wanted.publicInterface ?? (own.has('public-network') ? true : undefined)
  if (enabled === undefined || enabled === observed.publicNet.enabled) return []
  return [{ kind: 'set-public-interface', summary: `switch the public interface ${enabled ? 'on' : 'off'}`, enabled }]
}

function planType(wanted: Wanted, observed: LoadBalancer): LoadBalancerChange[] {
  const { type } = wanted
  if (type === undefined || type.name === observed.type.name) return []
  return [{ kind: 'change-type', summary: `change the type from ${observed.type.name} to ${type.name}`, type }]
}

export const isPlaced = (
  { network, attachment }: { network?: number | undefined; attachment: Wanted['attachment'] },
  { network: id, ip }: PrivateNet,
) => id === network && (attachment.ip === undefined || attachment.ip === ip)

/** A load balancer is in the configured network, with the address that is asked for, and in no other. */
function planNetwork(wanted: Wanted, observed: LoadBalancer): LoadBalancerChange[] {
  const { network, attachment } = wanted
  const fits = (net: PrivateNet) => isPlaced(wanted, net)
  const changes: LoadBalancerChange[] = observed.privateNets
    .filter((net) => !fits(net))
    .map(({ network: id, ip }) => ({
      kind: 'detach',
      summary: `detach from network ${id}${ip ? ` (${ip})` : ''}`,
      network: id,
    }))
  if (network !== undefined && !observed.privateNets.some(fits)) changes.push(attachChange(network, attachment))
  return changes
}

function attachChange(network: number, { ip, ipRange }: Wanted['attachment']): LoadBalancerChange {
  const where = ip ? ` as ${ip}` : ipRange ? ` in ${ipRange}` : ''
  return {
    kind: 'attach',
    summary: `attach to network ${network}${where}`,
    network,
    ...(ip ? { ip } : {}),
    ...(ipRange ? { ipRange } : {}),
  }
}

/** Targets that stay keep their place; new ones fill the room that is left, in their fixed order. */
function planTargets(wanted: Wanted, present: LoadBalancer['targets'], maxTargets: number): Planned {
  const faults: WindlassError[] = []
  const notes: Note[] = []
  const wantedBy = new Map(wanted.targets.map((one) => [targetId(one.target), one]))
  const presentBy = new Map(present.map((one) => [targetId(one), one]))
  const switches: { from: KnownTarget; to: ResolvedTarget }[] = []
  const removals: KnownTarget[] = []
  for (const target of present) {
    if (target.type === 'other') continue
    const want = wantedBy.get(targetId(target))
    if (!want) {
      if (target.type === 'server' || !wanted.targetsOpen) removals.push(target)
    } else if (
      target.type === 'server' &&
      want.target.type === 'server' &&
      target.usePrivateIp !== want.target.usePrivateIp
    ) {
      if (usable(want)) switches.push({ from: target, to: want })
    }
  }
  const missing = wanted.targets.filter((one) => !presentBy.has(targetId(one.target)) && usable(one))
  const additions = [
    ...missing.filter((one) => !isUnlisted(wanted, one)),
    ...missing.filter((one) => isUnlisted(wanted, one)),
  ]
  const changes: LoadBalancerChange[] = []
  let count = present.length
  // Targets that change their address are away for a moment: others that can be there before serve meanwhile.
  while (count < maxTargets && additions.length > 0) {
    const one = additions.shift()
    if (one) changes.push(addition(one))
    count++
  }
  const isFull = additions.length > removals.length
  changes.push(...switches.flatMap(({ from, to }) => [{ ...removal(from), withdraws: false }, addition(to)]))
  for (const one of additions) {
    const gone = removals.shift()
    if (!gone) {
      notes.push({
        type: 'Warning',
        reason: 'MaxTargetsReached',
        message: `node ${one.node} is no target: the load balancer has ${count} of at most ${maxTargets} targets. Choose a bigger type (annotation load-balancer.hetzner.cloud/type), or fewer nodes (…/node-selector)`,
        node: one.node,
      })
      continue
    }
    changes.push(removal(gone), addition(one))
  }
  changes.push(...removals.map(removal))
  return { changes, notes, faults, isFull }

  function usable({ node, target }: ResolvedTarget): boolean {
    const refused = target.type === 'server' ? wanted.unusable.get(target.server) : undefined
    if (!refused) return true
    const { note, fault } = badTarget(node, refused.code, refused.reason)
    notes.push(note)
    faults.push(fault)
    return false
  }
}

export const isUnlisted = ({ unlisted }: Pick<Wanted, 'unlisted'>, { target }: ResolvedTarget) =>
  target.type === 'server' && unlisted?.has(target.server) === true

/** A node that the API does not take as a target: an Event on the node, and a fault so that the run comes back. */
export function badTarget(node: string, code: string, reason: string): { note: Note; fault: WindlassError } {
  const message = `node ${node} is no target: ${reason}`
  // A server can join a network at any time; no public address it has by somebody's decision.
  const fault = code === 'missing_ipv4' ? permanent(message, { code }) : transient(message, { code })
  return { note: { type: 'Warning', reason: 'TargetRefused', message, node }, fault }
}

function planListeners(
  wanted: Wanted,
  observed: LoadBalancer,
  maxListeners: number,
): Pick<Planned, 'changes' | 'faults'> {
  const { steps, leftOut } = diffListeners(observed.listeners, wanted.listeners, maxListeners)
  const changes = steps.map((step): LoadBalancerChange => {
    const { listener } = step
    const what = `listener ${listener.protocol} ${listener.listenPort}`
    if (step.kind === 'update')
      return { kind: 'update-listener', summary: `update ${what}`, listener, observed: step.observed }
    if (step.kind === 'delete') return { kind: 'delete-listener', summary: `delete ${what}`, listener }
    return { kind: 'add-listener', summary: `add ${what} to node port ${listener.destinationPort}`, listener }
  })
  return { changes, faults: tooManyListeners(leftOut, maxListeners) }
}

function tooManyListeners(leftOut: readonly Listener[], maxListeners: number): WindlassError[] {
  if (leftOut.length === 0) return []
  const ports = leftOut.map(({ listenPort }) => listenPort).join(', ')
  return [
    permanent(
      `ports ${ports} have no listener: the load balancer takes at most ${maxListeners}. Choose a bigger type (annotation load-balancer.hetzner.cloud/type), or spread the ports over several Services.`,
      { code: 'max_listeners' },
    ),
  ]
}

function addition({ node, target }: ResolvedTarget): LoadBalancerChange {
  return { kind: 'add-target', summary: `add node ${node} (${described(target)}) as a target`, target, node }
}

export function removal(target: KnownTarget): LoadBalancerChange {
  return { kind: 'remove-target', summary: `remove target ${described(target)}`, target, withdraws: true }
}

function described(target: KnownTarget): string {
  return target.type === 'ip' ? target.ip : `server ${target.server}, ${target.usePrivateIp ? 'private' : 'public'}`
}

function sameLabels(a: Record<string, string>, b: Record<string, string>): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}

const plainName = (name: string) => name.toLowerCase().replace(/\.$/, '')
