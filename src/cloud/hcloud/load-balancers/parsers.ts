import { isIPv4 } from 'node:net'
import {
  integerBetween,
  inWords,
  type Parsed,
  type Parser,
  parseBool,
  parseCidr,
  parseDuration,
  parseInteger,
} from '../../../config/grammar.ts'
import { parseSelector, type Selector } from '../../../config/selector.ts'

/** Values of annotations, on top of Go's grammars: each names its kind for the reference page. */
export interface AnnotationKind<T> {
  /** As it stands in the reference. */
  values: string
  parse: Parser<T>
  /** Of a kind that is one of a few words. */
  words?: readonly string[]
  /** Of a duration with bounds, in seconds. */
  bounds?: { least: number; most: number }
}

const EMPTY = { fault: 'is empty, give it a value or remove the annotation' } as const

export const bool: AnnotationKind<boolean> = { values: '`true` or `false`', parse: parseBool }

export const text: AnnotationKind<string> = {
  values: 'text',
  parse: (value) => (value.trim() === '' ? EMPTY : { value: value.trim() }),
}

/** Empty counts as not set, or cancels a default. */
export const optionalText: AnnotationKind<string> = { values: 'text', parse: (value) => ({ value: value.trim() }) }

/** Items without the blanks around them. */
export const items: AnnotationKind<string[]> = {
  values: 'comma-separated list',
  parse: (value) => {
    const list = value.split(',').map((item) => item.trim())
    return list.includes('') ? { fault: 'has an empty item, write names separated by single commas' } : { value: list }
  },
}

export interface Seconds {
  seconds: number
  /** What was written has a part below a second, which the API can't hold. */
  truncated: boolean
}

/** A duration, or a bare whole number of seconds. */
export const seconds: AnnotationKind<Seconds> = {
  values: 'duration such as `15s` or `2m`, or whole seconds',
  parse: (value) => {
    const parsed: Parsed<number> = /^\d+$/.test(value) ? { value: Number(value) * 1000 } : parseDuration(value)
    if ('fault' in parsed) return parsed
    if (parsed.value < 0) return { fault: 'is negative, write a duration such as 15s' }
    const whole = Math.trunc(parsed.value / 1000)
    return { value: { seconds: whole, truncated: whole * 1000 !== parsed.value } }
  },
}

/** A duration whose bounds the API documents. */
export const secondsBetween = (least: number, most: number): AnnotationKind<Seconds> => ({
  values: `duration from \`${least}s\` to \`${most}s\`, or whole seconds`,
  bounds: { least, most },
  parse: (value) => {
    const parsed = seconds.parse(value)
    if ('fault' in parsed || (parsed.value.seconds >= least && parsed.value.seconds <= most)) return parsed
    return { fault: `is out of range, write a duration from ${least}s to ${most}s` }
  },
})

export const integer: AnnotationKind<number> = { values: 'whole number', parse: parseInteger }

export const port: AnnotationKind<number> = { values: 'port number', parse: integerBetween(1, 65_535) }

/** One of a few words, in any case. */
export const anyCase = <const T extends string>(...words: T[]): AnnotationKind<T> => ({
  values: words.map((word) => `\`${word}\``).join(', '),
  words,
  parse: (value) => {
    const word = words.find((one) => one === value.trim().toLowerCase())
    return word === undefined ? { fault: `is unknown, write ${inWords(words)}` } : { value: word }
  },
})

export const selector: AnnotationKind<Selector> = { values: 'label selector', parse: parseSelector }

/** Empty counts as not set. */
export const ipv4: AnnotationKind<string> = {
  values: 'IPv4 address',
  parse: (value) =>
    value.trim() === '' || isIPv4(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not an IPv4 address, write for example 10.0.0.100' },
}

/** As a network: host bits cleared. */
export const ipv4Network: AnnotationKind<string> = {
  values: 'CIDR',
  parse: (value) => {
    const parsed = parseCidr(value.trim())
    if ('fault' in parsed) return parsed
    return parsed.value.family === 'ipv4' ? { value: parsed.value.network } : { fault: 'is not an IPv4 network' }
  },
}

const DOMAIN =
  /^(?=.{1,253}\.?$)([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?$/

export const domain: AnnotationKind<string> = {
  values: 'domain name',
  parse: (value) =>
    DOMAIN.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not a domain name, write for example www.example.com' },
}

/** A Host header: no blanks, empty is allowed and means none. */
export const hostHeader: AnnotationKind<string> = {
  values: 'domain name',
  parse: (value) =>
    /\s/.test(value.trim())
      ? { fault: 'has blanks inside, write a domain name such as health.example.com' }
      : { value: value.trim() },
}

export const urlPath: AnnotationKind<string> = {
  values: 'path',
  parse: (value) =>
    /^\/[^\s#]*$/.test(value.trim()) ? { value: value.trim() } : { fault: 'is not a path, write for example /healthz' },
}

export const cookieName: AnnotationKind<string> = {
  values: 'cookie name',
  parse: (value) =>
    /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not a cookie name, write letters, digits, dashes and underscores' },
}

export const statusCodes: AnnotationKind<string[]> = {
  values: 'comma-separated list such as `2??,301`',
  parse: (value) => {
    const parsed = items.parse(value)
    if ('fault' in parsed || parsed.value.every((code) => /^[0-9?*]{1,3}$/.test(code))) return parsed
    return { fault: 'has an item that is no status code, write for example 2??,301' }
  },
}
