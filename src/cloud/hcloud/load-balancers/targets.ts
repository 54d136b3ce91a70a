import type { NodeProjection } from '../../../events/projection.ts'
import type { Note } from '../../provider.ts'
import type { RobotServer, RobotServerNumber } from '../../robot/model.ts'
import type { CloudServerId, Target } from '../model.ts'
import { parseProviderId } from '../provider-id.ts'

/** A node that shall be a target. */
export type WantedTarget =
  | { kind: 'cloud'; node: string; id: CloudServerId }
  /** `internalIp` is the node's first InternalIP, looked at in private mode only. Else a change of `externalIp` tells of a new address. */
  | { kind: 'robot'; node: string; number: RobotServerNumber; internalIp?: string; externalIp?: string }

/** Deterministic: servers of the cloud by id, then of Robot by number, each once. */
export function wantedTargets(
  nodes: readonly NodeProjection[],
  options: { usePrivateIp: boolean; robotEnabled: boolean },
): { targets: WantedTarget[]; notes: Note[] } {
  const cloud = new Map<CloudServerId, WantedTarget & { kind: 'cloud' }>()
  const robot = new Map<RobotServerNumber, WantedTarget & { kind: 'robot' }>()
  const notes: Note[] = []
  for (const node of nodes) {
    // It waits for its provider id, and joins when it has one.
    if (node.providerId === undefined) continue
    const parsed = parseProviderId(node.providerId)
    if (parsed.kind === 'cloud') cloud.set(parsed.id, { kind: 'cloud', node: node.name, id: parsed.id })
    else if (parsed.kind === 'robot') {
      if (!options.robotEnabled) continue
      const first = (wanted: string) => node.addresses.find(({ type }) => type === wanted)?.address
      const internalIp = options.usePrivateIp ? first('InternalIP') : undefined
      const externalIp = internalIp === undefined ? first('ExternalIP') : undefined
      robot.set(parsed.number, {
        kind: 'robot',
        node: node.name,
        number: parsed.number,
        ...(internalIp === undefined ? {} : { internalIp }),
        ...(externalIp === undefined ? {} : { externalIp }),
      })
    } else {
      notes.push({
        type: 'Warning',
        reason: parsed.kind === 'foreign' ? 'UnknownProviderIDPrefix' : 'MalformedProviderID',
        message:
          parsed.kind === 'foreign'
            ? `node ${node.name} is no target: its provider id "${node.providerId}" is not one of Hetzner's`
            : `node ${node.name} is no target: ${parsed.message}`,
        node: node.name,
      })
    }
  }
  const targets = [
    ...[...cloud.values()].sort((a, b) => a.id - b.id),
    ...[...robot.values()].sort((a, b) => a.number - b.number),
  ]
  return { targets, notes }
}

/** Equal text, equal targets. */
export function targetsKey(targets: readonly WantedTarget[], usePrivateIp: boolean): string {
  const parts = targets.map((target) => {
    if (target.kind === 'cloud') return `c${target.id}`
    const address = target.internalIp ?? target.externalIp
    return `r${target.number}${address === undefined ? '' : `@${address}`}`
  })
  return `${usePrivateIp ? 'private' : 'public'}:${parts.join(',')}`
}

/** A wanted target as the API takes it, with the node that it is for. */
export type ResolvedTarget = { node: string; target: Exclude<Target, { type: 'other' }> }

/** What Robot says of its servers; an error when it says nothing now. */
export type RobotKnowledge =
  | { kind: 'known'; servers: readonly RobotServer[] }
  /** Enabled without credentials: addresses come from the nodes alone. */
  | { kind: 'no-client' }
  | { kind: 'unavailable'; error: Error }

/**
 * Wanted targets with addresses. `open` holds while Robot does not answer: then ip targets whose server is unknown may be right, and
 * none is removed.
 */
export function resolveTargets(
  wanted: readonly WantedTarget[],
  options: { usePrivateIp: boolean; robot: RobotKnowledge },
): { targets: ResolvedTarget[]; notes: Note[]; open: boolean } {
  const { usePrivateIp, robot } = options
  const targets: ResolvedTarget[] = []
  const notes: Note[] = []
  let open = false
  for (const one of wanted) {
    if (one.kind === 'cloud') {
      targets.push({ node: one.node, target: { type: 'server', server: one.id, usePrivateIp } })
      continue
    }
    if (usePrivateIp && one.internalIp === undefined)
      notes.push({
        type: 'Warning',
        reason: 'InternalIPNotConfigured',
        message: `node ${one.node} (Robot server ${one.number}) has no InternalIP, which private targets need: start its kubelet with --node-ip`,
      })
    const ip = usePrivateIp && one.internalIp !== undefined ? one.internalIp : publicIp(one.number, robot)
    if (ip !== undefined) targets.push({ node: one.node, target: { type: 'ip', ip } })
    else if (robot.kind === 'unavailable') open = true
    else
      notes.push({
        type: 'Warning',
        reason: 'ServerNotFound',
        message: `node ${one.node} is no target: no address is known for Robot server ${one.number}`,
        node: one.node,
      })
  }
  return { targets, notes, open }
}

/** True when addresses of Robot servers are needed that only Robot knows. */
export function needsRobot(wanted: readonly WantedTarget[], usePrivateIp: boolean): boolean {
  return wanted.some((one) => one.kind === 'robot' && !(usePrivateIp && one.internalIp !== undefined))
}

export function targetId(target: Target): string {
  if (target.type === 'server') return `server ${target.server}`
  return target.type === 'ip' ? `ip ${target.ip}` : 'other'
}

function publicIp(number: RobotServerNumber, robot: RobotKnowledge): string | undefined {
  return robot.kind === 'known' ? robot.servers.find((server) => server.number === number)?.ip : undefined
}
