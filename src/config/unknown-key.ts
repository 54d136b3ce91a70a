import type { Fault } from './fault.ts'
import { nearest } from './nearest.ts'
import type { Group } from './setting.ts'
import { namesOf, plainName } from './source.ts'
import { CLUSTER, PROCESS } from './table/windlass.ts'
import { TABLE } from './table.ts'

const BLOCKS: Readonly<Record<string, Group>> = {
  framework: { ...TABLE.framework.settings, ...TABLE.ignored.settings },
  hcloud: TABLE.hcloud.settings,
  cherry: TABLE.cherry.settings,
}

/** Of a key that is no setting where it stands: where it would be one, else what it may be a slip of. */
export function withHint(fault: Fault, group: Group): Fault {
  if (fault.message !== 'is no setting') return fault
  const [place = ''] = fault.name.split(' ')
  const key = place.slice(place.indexOf('.') + 1)
  const where = belongsTo(key)
  if (where !== undefined) return { ...fault, message: `is no setting here, it belongs ${where}` }
  const hint = nearest(key, Object.keys(group))
  return hint === undefined ? fault : { ...fault, message: `is no setting, the nearest is ${hint}` }
}

function belongsTo(key: string): string | undefined {
  const has = (group: Group) => namesOf(group).has(plainName(key))
  const blocks = Object.keys(BLOCKS).filter((block) => has(BLOCKS[block] ?? {}))
  if (blocks.length > 0) return `into the block ${blocks.join(' or ')}`
  if (has(CLUSTER)) return 'to the cluster, outside of its blocks'
  return has(PROCESS)
    ? 'to the process: set its variable or flag, or write it at the top of the file of --config'
    : undefined
}
