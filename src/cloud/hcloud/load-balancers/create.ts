import type { WindlassError } from '../../../errors.ts'
import type { Note } from '../../provider.ts'
import type { LoadBalancer, LoadBalancerType } from '../model.ts'
import type { KnownTarget, LoadBalancerChange } from './changes.ts'
import { listenerBody } from './listeners.ts'
import { OWNER_LABEL } from './names.ts'
import { type OwnSetting, withOwnSettings } from './own-settings.ts'
import { type Planned, planLoadBalancer, type Wanted } from './plan.ts'
import type { ResolvedTarget } from './targets.ts'

/** What the one call that makes a load balancer carries. */
export interface Creation {
  body: Record<string, unknown>
  /** Without its targets, for the case that the API refuses one of them and with it the whole call. */
  bodyWithoutTargets: Record<string, unknown>
  targets: ResolvedTarget[]
}

/** Pure. A load balancer in one call, with all of it that the call can carry; `planLoadBalancer` finds what is left. */
export function planCreation(wanted: Wanted, type: LoadBalancerType): Planned & { creation: Creation } {
  const { network, attachment } = wanted
  // The call takes a network, but neither an address nor a subnet of it.
  const attaches = network !== undefined && attachment.ip === undefined && attachment.ipRange === undefined
  const carriesTargets = !wanted.usePrivateIp || attaches
  const name = wanted.name ?? wanted.defaultName
  const blank: LoadBalancer = {
    id: 0,
    name,
    labels: creationLabels(wanted),
    publicNet: { enabled: wanted.publicInterface ?? true },
    privateNets: attaches ? [{ network, ip: '' }] : [],
    type,
    algorithm: wanted.algorithm ?? 'round_robin',
    listeners: [],
    targets: [],
    deleteProtected: false,
  }
  const full = planLoadBalancer({ ...wanted, type }, blank)
  const listeners = full.changes.flatMap((change) => (change.kind === 'add-listener' ? [change.listener] : []))
  const targets = carriesTargets
    ? full.changes.flatMap((change) =>
        change.kind === 'add-target' ? [{ node: change.node, target: change.target }] : [],
      )
    : []
  const bodyWithoutTargets = {
    name,
    load_balancer_type: type.id,
    labels: blank.labels,
    ...(wanted.placement.location ? { location: wanted.placement.location } : {}),
    ...(wanted.placement.networkZone ? { network_zone: wanted.placement.networkZone } : {}),
    ...(wanted.algorithm ? { algorithm: { type: wanted.algorithm } } : {}),
    ...(wanted.publicInterface === undefined ? {} : { public_interface: wanted.publicInterface }),
    ...(attaches ? { network } : {}),
    ...(listeners.length > 0 ? { services: listeners.map((listener) => listenerBody(listener)) } : {}),
  }
  const body =
    targets.length === 0
      ? bodyWithoutTargets
      : { ...bodyWithoutTargets, targets: targets.map(({ target }) => targetBody(target)) }
  const place = wanted.placement.location ?? wanted.placement.networkZone ?? 'nowhere'
  const create: LoadBalancerChange = {
    kind: 'create-load-balancer',
    summary: `create load balancer "${name}" (${type.name}, ${place}) with ${counted(listeners.length, 'listener')} and ${counted(targets.length, 'target')}`,
  }
  const later = full.changes.filter(({ kind }) => kind !== 'add-listener' && (kind !== 'add-target' || !carriesTargets))
  const rdns = (['ipv4', 'ipv6'] as const).flatMap((family): LoadBalancerChange[] => {
    const dnsPtr = wanted.rdns[family]
    return dnsPtr === undefined
      ? []
      : [
          {
            kind: 'change-dns-ptr',
            summary: `set the reverse DNS of its ${family} address to ${dnsPtr}`,
            ip: family,
            dnsPtr,
          },
        ]
  })
  return {
    changes: [create, ...rdns, ...later],
    notes: full.notes satisfies Note[],
    faults: full.faults satisfies WindlassError[],
    creation: { body, bodyWithoutTargets, targets },
  }
}

export function targetBody(target: KnownTarget): Record<string, unknown> {
  return target.type === 'server'
    ? { type: 'server', server: { id: target.server }, use_private_ip: target.usePrivateIp }
    : { type: 'ip', ip: { ip: target.ip } }
}

function creationLabels(wanted: Wanted): Record<string, string> {
  const own = new Set<OwnSetting>()
  if (wanted.algorithm === 'least_connections') own.add('algorithm')
  if (wanted.publicInterface === false) own.add('public-network')
  if (wanted.rdns.ipv4 !== undefined) own.add('ipv4-rdns')
  if (wanted.rdns.ipv6 !== undefined) own.add('ipv6-rdns')
  return withOwnSettings({ [OWNER_LABEL]: wanted.uid }, own)
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
