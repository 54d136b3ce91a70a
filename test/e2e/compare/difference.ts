import type { Json } from '../../apiserver/admin.ts'
import { isMarker, type Marker } from './marker.ts'

/** Lines that say where `got` is not as `want`ed; none if it is. */
export function differences(want: Json, got: Json, path = ''): string[] {
  if (want === got || (isNothing(want) && isNothing(got))) return []
  if (isMarker(want)) return againstMarker(want, got, path)
  // An object of which nothing has to be there may be missing itself.
  if (got === undefined && isPlain(want) && Object.values(want).every((x) => differences(x, undefined).length === 0)) {
    return []
  }
  if (Array.isArray(want) && Array.isArray(got)) {
    const longer = want.length > got.length ? want : got
    return longer.flatMap((_, i) => differences(want[i], got[i], `${path}[${i}${labelOf(want[i] ?? got[i])}]`))
  }
  if (isPlain(want) && isPlain(got)) {
    const keys = [...new Set([...Object.keys(want), ...Object.keys(got)])].sort()
    return keys.flatMap((key) => differences(want[key], got[key], path ? `${path}.${key}` : key))
  }
  return [`${path}: want ${shown(want)}, got ${shown(got)}`]
}

function againstMarker(want: Marker, got: Json, path: string): string[] {
  if ('$any' in want) {
    const fits = want.$any.some((one) => differences(one ?? undefined, got).length === 0)
    return fits ? [] : [`${path}: want one of ${shown(want.$any)}, got ${shown(got)}`]
  }
  if ('$ignore' in want) return []

  const present = new Map<string, Json>((got ?? []).map((item: Json) => [item.name, item]))
  const lines = want.$subset.flatMap((item) => {
    const name: string = item.name
    const label = `${path}[${name}]`
    if (!present.has(name)) return want.required.includes(name) ? [`${label}: (absent)`] : []
    const found = present.get(name)
    present.delete(name)
    return want.loose?.includes(name) ? [] : differences(item, found, label)
  })
  return [...lines, ...[...present.keys()].map((name) => `${path}[${name}]: not wanted`)]
}

function isNothing(value: Json): boolean {
  return value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)
}

function isPlain(value: Json): value is Record<string, Json> {
  return Boolean(value) && typeof value === 'object' && !Array.isArray(value)
}

function labelOf(item: Json): string {
  const label = isPlain(item) ? (item.name ?? item.type ?? item.reason ?? item.key) : undefined
  return label === undefined || typeof label === 'object' ? '' : ` ${label}`
}

function shown(value: Json): string {
  const text = value === undefined ? '(absent)' : JSON.stringify(value)
  return text.length > 400 ? `${text.slice(0, 400)}...` : text
}
