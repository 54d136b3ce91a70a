import { closest, distance } from 'fastest-levenshtein'

/** The most similar of some names, unless none is similar at all. */
export function nearestName(wanted: string, names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined
  const name = closest(wanted, names as string[])
  return distance(wanted, name) <= Math.max(2, Math.ceil(Math.max(wanted.length, name.length) / 2)) ? name : undefined
}
