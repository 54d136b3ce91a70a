import type { RobotServerNumber } from '../robot/model.ts'
import type { CloudServerId } from './model.ts'

/** What a provider id names. Ids of the two services are kinds of their own and never compared. */
export type ParsedProviderId =
  | { kind: 'cloud'; id: CloudServerId }
  | { kind: 'robot'; number: RobotServerNumber }
  /** One of our prefixes, and no number after it. */
  | { kind: 'malformed'; message: string }
  | { kind: 'foreign' }

const CLOUD = 'hcloud://'
const ROBOT = 'hrobot://'
/** Of Syself's fork: read, never written. */
const LEGACY_ROBOT = 'hcloud://bm-'

export function parseProviderId(providerId: string): ParsedProviderId {
  const malformed = {
    kind: 'malformed',
    message: `provider id "${providerId}" has no number after its prefix`,
  } as const
  if (providerId.startsWith(LEGACY_ROBOT) || providerId.startsWith(ROBOT)) {
    const number = numberOf(providerId.slice(providerId.startsWith(ROBOT) ? ROBOT.length : LEGACY_ROBOT.length))
    return number === undefined ? malformed : { kind: 'robot', number: number as RobotServerNumber }
  }
  if (!providerId.startsWith(CLOUD)) return { kind: 'foreign' }
  const id = numberOf(providerId.slice(CLOUD.length))
  return id === undefined ? malformed : { kind: 'cloud', id: id as CloudServerId }
}

export const owns = (providerId: string) => parseProviderId(providerId).kind !== 'foreign'

export const cloudProviderId = (id: CloudServerId) => `${CLOUD}${id}`
export const robotProviderId = (number: RobotServerNumber) => `${ROBOT}${number}`
export const legacyRobotProviderId = (number: RobotServerNumber) => `${LEGACY_ROBOT}${number}`

function numberOf(text: string): number | undefined {
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}
