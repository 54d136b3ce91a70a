import type { Json } from '../../apiserver/admin.ts'

/** Without null, undefined and empty objects, keys sorted. Empty lists inside of lists stay, so that indexes hold. */
export function tidy(value: Json): Json {
  if (Array.isArray(value)) return value.map(tidy)
  if (value === null) return undefined
  if (typeof value !== 'object') return value
  const kept: Record<string, Json> = {}
  for (const key of Object.keys(value).sort()) {
    const inner = tidy(value[key])
    if (inner === undefined || (typeof inner === 'object' && Object.keys(inner).length === 0)) continue
    kept[key] = inner
  }
  return kept
}

/** Lists of named things have no order: names made of UIDs would sort differently in each run. */
export function sortByName(value: Json): Json {
  if (Array.isArray(value)) {
    const items = value.map(sortByName)
    const named = items.length > 1 && items.every((x) => typeof x?.name === 'string')
    return named ? items.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true })) : items
  }
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, sortByName(inner)]))
  }
  return value
}
