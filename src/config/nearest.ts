import { distance } from 'fastest-levenshtein'

/** The most similar of some names, if it is similar enough to be what was meant. */
export function nearest(name: string, known: Iterable<string>, mostEdits = Math.max(2, Math.floor(name.length / 3))) {
  let best: { name: string; edits: number } | undefined
  for (const candidate of known) {
    const edits = distance(name, candidate)
    if (edits <= mostEdits && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { name: candidate, edits }
  }
  return best?.name
}
