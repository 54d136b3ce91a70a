import type { JsonObject } from './json.ts'
import { at, type Kind } from './kinds.ts'
import { badRequest } from './refusal.ts'

export type Matcher = (object: JsonObject) => boolean

/** `a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b,c)`, joined by commas. */
export function labelMatcher(selector: string | null): Matcher {
  if (!selector) return () => true
  const terms = selector.split(/,(?![^(]*\))/).map((term) => labelTerm(term.trim()))
  return (object) => {
    const labels = (at(object, 'metadata', 'labels') ?? {}) as Record<string, string>
    return terms.every((matches) => matches(labels))
  }
}

function labelTerm(term: string): (labels: Record<string, string>) => boolean {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term)
  if (set) {
    const [, key = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    return (labels) => (key in labels && values.includes(labels[key] ?? '')) === (operator === 'in')
  }
  const comparison = /^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$/.exec(term)
  if (comparison) {
    const [, key = '', operator, value = ''] = comparison
    return operator === '!=' ? (labels) => labels[key] !== value : (labels) => labels[key] === value
  }
  const presence = /^(!?)([A-Za-z0-9][\w./-]*)$/.exec(term)
  if (!presence) throw badRequest(`unable to parse requirement: ${term}`)
  const [, not, key = ''] = presence
  return (labels) => key in labels === (not === '')
}

/** `a=b`, `a==b`, `a!=b`, joined by commas; only fields that the kind offers. */
export function fieldMatcher(selector: string | null, kind: Kind): Matcher {
  if (!selector) return () => true
  const known = ['metadata.name', ...(kind.namespaced ? ['metadata.namespace'] : []), ...(kind.selectable ?? [])]
  const terms = selector.split(',').map((term) => {
    const parsed = /^([^=!]+)(==|=|!=)(.*)$/.exec(term.trim())
    if (!parsed) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`)
    const [, field = '', operator, value = ''] = parsed
    if (!known.includes(field)) throw badRequest(`field label not supported: ${field}`)
    return (object: JsonObject) => (String(at(object, ...field.split('.')) ?? '') === value) === (operator !== '!=')
  })
  return (object) => terms.every((matches) => matches(object))
}
