/** IPv4 ranges as numbers; private networks know nothing else. */
export interface Range {
  first: number
  last: number
  prefix: number
}

export function ipv4Number(text: string): number | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (!match) return undefined
  const bytes = match.slice(1).map(Number)
  if (bytes.some((byte, i) => byte > 255 || String(byte) !== match[i + 1])) return undefined
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0)
}

export function ipv4Text(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}

/** A range without host bits, else undefined. */
export function parseRange(text: string): Range | undefined {
  const [address = '', length = '', ...rest] = text.split('/')
  const first = ipv4Number(address)
  if (first === undefined || rest.length > 0 || !/^(\d|[12]\d|3[0-2])$/.test(length)) return undefined
  const prefix = Number(length)
  const size = 2 ** (32 - prefix)
  return first % size === 0 ? { first, last: first + size - 1, prefix } : undefined
}

export function holds(range: Range, address: number): boolean {
  return address >= range.first && address <= range.last
}

export function overlaps(a: Range, b: Range): boolean {
  return a.first <= b.last && b.first <= a.last
}

const privateRanges = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'].map((text) => parseRange(text) as Range)

export function isPrivate(range: Range): boolean {
  return privateRanges.some((outer) => holds(outer, range.first) && holds(outer, range.last))
}

export function isPrivateAddress(text: string): boolean {
  const address = ipv4Number(text)
  return address !== undefined && privateRanges.some((range) => holds(range, address))
}
