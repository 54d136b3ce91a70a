import type { ServerId } from './model.ts'

const PREFIX = 'cherryservers://'

export type ParsedProviderId =
  | { kind: 'server'; id: ServerId }
  /** Our prefix, and no number after it. */
  | { kind: 'malformed'; message: string }
  | { kind: 'foreign' }

/** `cherryservers://<number>`; a bare number is read too, and never written. */
export function parseProviderId(providerId: string): ParsedProviderId {
  const ours = providerId.startsWith(PREFIX)
  const rest = ours ? providerId.slice(PREFIX.length) : providerId
  const id = /^[+-]?\d+$/.test(rest) ? Number(rest) : Number.NaN
  if (Number.isSafeInteger(id)) return { kind: 'server', id: id as ServerId }
  if (!ours) return { kind: 'foreign' }
  return { kind: 'malformed', message: `provider id "${providerId}" has no number after its prefix` }
}

export const owns = (providerId: string) => parseProviderId(providerId).kind !== 'foreign'

export const providerIdOf = (id: ServerId) => `${PREFIX}${id}`
