import type { CherrySettings } from '../../../config/types.ts'
import type { KubeObject } from '../../../kubernetes/objects.ts'
import type { ObjectChange, ObjectKind } from '../../provider.ts'
import { owns } from '../provider-id.ts'
import type { Speaker } from './speakers.ts'

type Templates = CherrySettings['annotations']

export const NODE: ObjectKind = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false }

/** What kube-vip and users read from a node, by peer. Peers are numbered in the order of their addresses as text. */
export function annotationsOf(speaker: Speaker, templates: Templates): Record<string, string> {
  return Object.fromEntries(
    [...speaker.peers].sort().flatMap((peer, n) => {
      const key = (template: string) => template.replace('{{n}}', String(n))
      return [
        [key(templates.localAsn), String(speaker.localAsn)],
        [key(templates.peerAsn), String(speaker.peerAsn)],
        [key(templates.peerIp), peer],
        [key(templates.srcIp), speaker.sourceIp],
        [key(templates.multiHop), 'true'],
      ]
    }),
  )
}

/**
 * Patches that name our keys and no other, for nodes where one differs. Those of peers that are no more, and of nodes that take no part any
 * more, go; a node of which too little is known (`unknown`) keeps what it has.
 */
export function planNodeAnnotations(
  nodes: readonly KubeObject[],
  speakers: readonly Speaker[],
  unknown: ReadonlySet<string>,
  templates: Templates,
): ObjectChange[] {
  const byName = new Map(speakers.map((speaker) => [speaker.node, speaker]))
  const isOwn = ownKeys(templates)
  return nodes.flatMap((node): ObjectChange[] => {
    const { name, uid, annotations = {}, deletionTimestamp } = node.metadata
    const providerId = (node.spec as { providerID?: string } | undefined)?.providerID
    if (deletionTimestamp !== undefined || unknown.has(name) || !providerId || !owns(providerId)) return []
    const speaker = byName.get(name)
    const wanted = speaker ? annotationsOf(speaker, templates) : {}
    const stale = Object.keys(annotations).filter((key) => isOwn(key) && !Object.hasOwn(wanted, key))
    const differing = Object.entries(wanted).filter(([key, value]) => annotations[key] !== value)
    if (stale.length === 0 && differing.length === 0) return []
    const patch = { ...Object.fromEntries(differing), ...Object.fromEntries(stale.map((key) => [key, null])) }
    return [
      {
        action: 'patch',
        summary: speaker ? `annotate node ${name} with its BGP peers` : `take the BGP annotations off node ${name}`,
        object: NODE,
        name,
        essential: false,
        body: { metadata: { uid, annotations: patch } },
      },
    ]
  })
}

function ownKeys(templates: Templates): (key: string) => boolean {
  const { localAsn, peerAsn, peerIp, srcIp, multiHop } = templates
  const patterns = [localAsn, peerAsn, peerIp, srcIp, multiHop].map((template) => {
    const literal = (part: string) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    // Only the first place is one.
    const at = template.indexOf('{{n}}')
    if (at === -1) return new RegExp(`^${literal(template)}$`)
    return new RegExp(`^${literal(template.slice(0, at))}\\d+${literal(template.slice(at + 5))}$`)
  })
  return (key) => patterns.some((pattern) => pattern.test(key))
}
