import type { Json } from '../../apiserver/admin.ts'

/** What differs by run, and the name that stands for it. */
export type Substitution = [from: string, to: string]

/**
 * Puts names in place of values, in keys too. The longest go first, and only whole tokens are taken: 10.0.0.2 is not
 * found in 10.0.0.20, nor in 10.0.0.2.1.
 */
export function substitute(value: Json, substitutions: Substitution[]): Json {
  const patterns = substitutions
    .filter(([from]) => from)
    .sort((a, b) => b[0].length - a[0].length)
    .map(([from, to]) => ({ from, to, pattern: wholeToken(from) }))
  return walk(value, (text) =>
    patterns.reduce((now, { from, to, pattern }) => (now.includes(from) ? now.replace(pattern, () => to) : now), text),
  )
}

function wholeToken(text: string): RegExp {
  const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`(?<![0-9A-Za-z.:])${escaped}(?![0-9A-Za-z:]|\\.\\d)`, 'g')
}

function walk(value: Json, change: (text: string) => string): Json {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => walk(item, change))
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [change(key), walk(inner, change)]))
  }
  return value
}
