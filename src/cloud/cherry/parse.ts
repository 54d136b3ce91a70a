import { isIP } from 'node:net'
import type { Address, AddressId, Project, Server, ServerId } from './model.ts'

/** An answer that is JSON, but not what the API documents. Its message has no names or values of the account. */
export class MalformedAnswer extends Error {}

/** Tolerant where the API is known to vary: empty objects come as `[]` or null, ids as text. Never where it would have to guess. */
export function parseServer(json: unknown): Server {
  const server = fields(json, 'a server')
  const region = optionalFields(server.region)
  const bgp = optionalFields(server.bgp)
  const routers = routersOf(optionalFields(region?.bgp))
  return {
    id: requiredNumber(server.id, 'a server') as ServerId,
    hostname: hostnameOf(server.hostname),
    state: text(server.state),
    plan: text(optionalFields(server.plan)?.slug),
    region: text(region?.slug),
    ...(Array.isArray(server.ip_addresses) ? { addresses: server.ip_addresses.flatMap(addressOf) } : {}),
    ...(typeof bgp?.enabled === 'boolean' ? { bgpEnabled: bgp.enabled } : {}),
    ...(server.tags === undefined ? {} : { tags: tags(server.tags) }),
    ...(routers ? { routers } : {}),
  }
}

function addressOf(json: unknown): { address: string; type: string }[] {
  const entry = optionalFields(json)
  const address = text(entry?.address)
  return address === '' ? [] : [{ address, type: text(entry?.type) }]
}

export function parseAddress(json: unknown): Address {
  const entry = fields(json, 'an address')
  const id = typeof entry.id === 'number' ? String(entry.id) : text(entry.id)
  if (id === '') throw new MalformedAnswer('an address without id')
  const target = number(optionalFields(entry.targeted_to)?.id)
  return {
    id: id as AddressId,
    address: ipOf(entry),
    type: text(entry.type),
    region: text(optionalFields(entry.region)?.slug),
    tags: tags(entry.tags),
    ...(target ? { target: target as ServerId } : {}),
  }
}

export function parseProject(json: unknown): Project {
  const project = fields(json, 'a project')
  const bgp = optionalFields(project.bgp)
  return { name: text(project.name), bgpEnabled: bgp?.enabled === true, localAsn: number(bgp?.local_asn) ?? 0 }
}

export function parseList<T extends { id: string | number }>(json: unknown, parse: (json: unknown) => T): T[] {
  if (!Array.isArray(json)) throw new MalformedAnswer('no list')
  return json.map(parse)
}

type Fields = Record<string, unknown>

function optionalFields(json: unknown): Fields | undefined {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as Fields) : undefined
}

function fields(json: unknown, what: string): Fields {
  const found = optionalFields(json)
  if (!found) throw new MalformedAnswer(`something where ${what} belongs`)
  return found
}

function number(value: unknown): number | undefined {
  const parsed = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof parsed === 'number' && Number.isSafeInteger(parsed) ? parsed : undefined
}

function requiredNumber(value: unknown, what: string): number {
  const parsed = number(value)
  if (parsed === undefined) throw new MalformedAnswer(`${what} without id`)
  return parsed
}

const text = (value: unknown) => (typeof value === 'string' ? value : '')

/** What is no mapping and not just empty is not "no tags": an update would drop those that there are, and an address not be known again. */
function tags(value: unknown): Record<string, string> {
  const found = optionalFields(value)
  const isEmpty = value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
  if (!found && !isEmpty) throw new MalformedAnswer('something where tags belong')
  return Object.fromEntries(
    Object.entries(found ?? {}).map(([key, tag]) => {
      if (typeof tag === 'object' && tag !== null) throw new MalformedAnswer('a tag that is no text')
      return [key, String(tag ?? '')]
    }),
  )
}

const LONGEST_HOSTNAME = 253

function hostnameOf(value: unknown): string {
  const hostname = text(value)
  if (hostname.length > LONGEST_HOSTNAME) throw new MalformedAnswer('a hostname that is too long')
  return hostname
}

/** Undefined unless all of it is good: a session with half of the routers is worse than the one that there is. */
function routersOf(bgp: Fields | undefined): Server['routers'] {
  const asn = number(bgp?.asn)
  if (!Array.isArray(bgp?.hosts) || asn === undefined || asn < 1 || asn > MOST_ASN) return undefined
  const hosts = bgp.hosts.map(text)
  return hosts.every((host) => isIP(host) !== 0) ? { hosts, asn } : undefined
}

const MOST_ASN = 2 ** 32 - 1

/** An address without its prefix length; empty while there is none. One that is none troubles only whose it is. */
function ipOf(entry: Fields): string {
  const address = (text(entry.address) || text(entry.cidr)).replace(/\/\d+$/, '')
  return isIP(address) === 0 ? '' : address
}
