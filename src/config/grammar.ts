import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * What a text comes to: its value, or what is wrong with it and what would be right, as the end of a sentence that begins with
 * the text (`is not a boolean, write true or false`). A fault never contains the text itself: that may be a secret.
 */
export type Parsed<T> = { value: T } | { fault: string }

export type Parser<T> = (text: string) => Parsed<T>

/** Go's `strconv.ParseBool`. */
export const parseBool: Parser<boolean> = (text) => {
  if (TRUE.has(text)) return { value: true }
  if (FALSE.has(text)) return { value: false }
  return { fault: 'is not a boolean, write true or false' }
}

/** Go's `strconv.Atoi`, within the integers that JavaScript holds exactly. */
export const parseInteger: Parser<number> = (text) => {
  const value = /^[+-]?[0-9]+$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? { value: value + 0 } : { fault: 'is not a whole number, write digits only' }
}

/** Kubernetes' rule for keys of labels and annotations, and for classes: a name with letters of either case, and perhaps a prefix. */
export const isQualifiedName = (text: string) => QUALIFIED_NAME.test(text)
const QUALIFIED_NAME =
  /^(?:(?=.{1,253}\/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

/** An integer within bounds, both included. */
export const integerBetween =
  (least: number, most: number): Parser<number> =>
  (text) => {
    const parsed = parseInteger(text)
    if ('fault' in parsed || (parsed.value >= least && parsed.value <= most)) return parsed
    return { fault: `is out of range, write a whole number from ${least} to ${most}` }
  }

/**
 * Go's `time.ParseDuration`, in milliseconds. Exact to the nanosecond where a double can hold it; what overflows Go's int64
 * of nanoseconds is a fault here too.
 */
export const parseDuration: Parser<number> = (text) => {
  const nanoseconds = durationNanoseconds(text)
  return nanoseconds === undefined
    ? { fault: 'is not a duration, write numbers with units such as 500ms, 30s, 5m or 1h30m' }
    : { value: millisecondsOf(nanoseconds) }
}

/** A duration of at least so many milliseconds. */
export const durationFrom =
  (leastMs: number): Parser<number> =>
  (text) => {
    const parsed = parseDuration(text)
    if ('fault' in parsed || parsed.value >= leastMs) return parsed
    return { fault: `is too short, write a duration of at least ${formatDuration(leastMs)}` }
  }

/** A duration within bounds in milliseconds. What a timer counts needs a most: one beyond 2^31 ms fires at once. */
export const durationBetween =
  (leastMs: number, mostMs: number): Parser<number> =>
  (text) => {
    const parsed = durationFrom(leastMs)(text)
    if ('fault' in parsed || parsed.value <= mostMs) return parsed
    return { fault: `is too long, write a duration of at most ${formatDuration(mostMs)}` }
  }

/** Nothing, or at least so many milliseconds. */
export const zeroOrDurationFrom =
  (leastMs: number): Parser<number> =>
  (text) => {
    const parsed = durationFrom(leastMs)(text)
    const zero = 'fault' in parsed && durationNanoseconds(text) === 0n
    return zero ? { value: 0 } : parsed
  }

/** Comma list, blanks around items dropped, empty items too. */
export const parseList: Parser<string[]> = (text) => ({
  value: text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
})

export interface Cidr {
  family: 'ipv4' | 'ipv6'
  /** The address as it was given, in canonical form. */
  address: string
  prefix: number
  /** With host bits cleared: `10.0.1.0/24`. */
  network: string
}

/** Go's `net.ParseCIDR`. */
export const parseCidr: Parser<Cidr> = (text) => {
  const fault = { fault: 'is not a CIDR, write an address and a prefix length such as 10.244.0.0/16' }
  const match = /^([^/%]+)\/([0-9]{1,4})$/.exec(text)
  const [, address, digits] = match ?? []
  if (address === undefined || isIP(address) === 0) return fault
  const ip = ipaddr.parse(address)
  const prefix = Number(digits)
  if (prefix > ip.toByteArray().length * 8) return fault
  const network = ipaddr.fromByteArray(masked(ip.toByteArray(), prefix))
  return { value: { family: ip.kind(), address: canonical(ip), prefix, network: `${canonical(network)}/${prefix}` } }
}

/** A CIDR as the network that it names, host bits cleared. */
export const parseNetwork: Parser<string> = (text) => {
  const parsed = parseCidr(text)
  return 'fault' in parsed ? parsed : { value: parsed.value.network }
}

/** One CIDR, or two of different families, as networks. */
export const parseClusterCidrs: Parser<string[]> = (text) => {
  const families: string[] = []
  const networks: string[] = []
  for (const item of text.split(',')) {
    const parsed = parseCidr(item.trim())
    if ('fault' in parsed) {
      return { fault: 'is not a list of CIDRs, write one such as 10.244.0.0/16, or one of IPv4 and one of IPv6' }
    }
    families.push(parsed.value.family)
    networks.push(parsed.value.network)
  }
  if (new Set(families).size < families.length) {
    return { fault: 'has two CIDRs of one family, write one of IPv4 and one of IPv6 at most' }
  }
  return { value: networks }
}

export interface Listen {
  /** Empty for all addresses of the machine. */
  host: string
  /** 0 lets the OS choose. */
  port: number
}

/** `host:port`, `:port` for all addresses, `[::1]:port` for IPv6. */
export const parseListen: Parser<Listen> = (text) => {
  const fault = {
    fault: 'is not a listen address, write host:port, or :port for all addresses; port 0 lets the OS choose',
  }
  const [, six, plain, digits] = /^(?:\[([^[\]]+)\]|([^:[\]/\s@]*)):([0-9]{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  if (digits === undefined || port > 65535 || (six !== undefined && isIP(six) !== 6)) return fault
  return { value: { host: six ?? plain ?? '', port } }
}

/** One of a few words, exactly as written. */
export const oneOf =
  <const T extends string>(...words: T[]): Parser<T> =>
  (text) => {
    const value = words.find((word) => word === text)
    return value === undefined ? { fault: `is unknown, write ${inWords(words)}` } : { value }
  }

export const parseText: Parser<string> = (text) => ({ value: text })

/** http or https, without user, query and fragment; a trailing slash is dropped. */
export const parseHttpUrl: Parser<string> = (text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '') {
    return { fault: 'is not an address, write a URL such as https://example.org/v1' }
  }
  if (url.username !== '' || url.password !== '') return { fault: 'holds a user or password, write the URL without' }
  if (url.search !== '' || url.hash !== '') return { fault: 'has a query or fragment, write the URL without' }
  return { value: `${url.origin}${url.pathname}`.replace(/\/+$/, '') }
}

/** RFC 1123 label, as the names of namespaces and clusters are. */
export const parseDnsLabel: Parser<string> = (text) =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
    ? { value: text }
    : { fault: 'is not a DNS label, write at most 63 small letters, digits and dashes, no dash at either end' }

/** Text that an HTTP header can carry. */
export const parseHeaderText: Parser<string> = (text) =>
  /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
    ? { value: text }
    : { fault: 'contains a line break or another character that no HTTP header can carry' }

/** `a, b or c` */
export function inWords(words: readonly string[]): string {
  const last = words.at(-1) ?? ''
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`
}

/** The shortest Go duration of so many whole milliseconds: `90000` is `1m30s`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s'
  let rest = Math.abs(milliseconds)
  let text = milliseconds < 0 ? '-' : ''
  for (const [unit, size] of SHOWN_UNITS) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) text += `${count}${unit}`
  }
  return text
}

const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False'])

const SHOWN_UNITS = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['\u00b5s', 1_000n],
  ['\u03bcs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
])

const INT64_LIMIT = 1n << 63n

function durationNanoseconds(text: string): bigint | undefined {
  const negative = text.startsWith('-')
  let rest = /^[+-]/.test(text) ? text.slice(1) : text
  if (rest === '0') return 0n
  if (rest === '') return undefined
  let sum = 0n
  while (rest !== '') {
    const match = /^([0-9]*)(?:\.([0-9]*))?([^.0-9]+)/.exec(rest)
    const [all, whole = '', digits = '', name = ''] = match ?? []
    // More digits than a nanosecond can use would only cost time.
    const fraction = digits.slice(0, 30)
    const unit = UNITS.get(name)
    if (all === undefined || unit === undefined || (whole === '' && fraction === '')) return undefined
    sum += BigInt(whole) * unit + (BigInt(fraction) * unit) / 10n ** BigInt(fraction.length)
    if (sum > INT64_LIMIT) return undefined
    rest = rest.slice(all.length)
  }
  if (!negative && sum === INT64_LIMIT) return undefined
  return negative ? -sum : sum
}

function millisecondsOf(nanoseconds: bigint): number {
  return Number(nanoseconds / 1_000_000n) + Number(nanoseconds % 1_000_000n) / 1e6
}

function masked(bytes: number[], prefix: number): number[] {
  return bytes.map((byte, index) => byte & (0xff00 >> Math.min(8, Math.max(0, prefix - index * 8))) & 0xff)
}

function canonical(ip: ipaddr.IPv4 | ipaddr.IPv6): string {
  return ip.kind() === 'ipv6' ? (ip as ipaddr.IPv6).toRFC5952String() : ip.toString()
}
