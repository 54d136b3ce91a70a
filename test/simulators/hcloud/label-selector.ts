export type Selector = (labels: Record<string, string>) => boolean

const key = '[A-Za-z0-9]([A-Za-z0-9./_-]*[A-Za-z0-9])?'
const value = '[A-Za-z0-9]?[A-Za-z0-9._-]*'
const equality = new RegExp(`^(?<key>${key})\\s*(?<operator>==|=|!=)\\s*(?<value>${value})$`)
const membership = new RegExp(`^(?<key>${key})\\s+(?<operator>in|notin)\\s*\\((?<values>[^()]*)\\)$`)
const presence = new RegExp(`^(?<operator>!?)(?<key>${key})$`)

/** The selectors of the API: k, !k, k=v, k==v, k!=v, k in (a,b), k notin (a,b), joined by commas. Undefined if malformed. */
export function parseSelector(source: string): Selector | undefined {
  const parts = splitOutsideParentheses(source).map((part) => parsePart(part.trim()))
  if (parts.some((part) => part === undefined)) return undefined
  return (labels) => parts.every((part) => part?.(labels))
}

function parsePart(source: string): Selector | undefined {
  const equal = equality.exec(source)?.groups
  if (equal) {
    const negated = equal.operator === '!='
    return (labels) => (labels[equal.key ?? ''] === equal.value) !== negated
  }
  const member = membership.exec(source)?.groups
  if (member) {
    const values = (member.values ?? '').split(',').map((item) => item.trim())
    if (values.some((item) => item === '')) return undefined
    const negated = member.operator === 'notin'
    return (labels) => {
      const actual = labels[member.key ?? '']
      return (actual !== undefined && values.includes(actual)) !== negated
    }
  }
  const present = presence.exec(source)?.groups
  if (present) return (labels) => Object.hasOwn(labels, present.key ?? '') !== (present.operator === '!')
  return undefined
}

function splitOutsideParentheses(source: string): string[] {
  return source.split(/,(?![^(]*\))/)
}
