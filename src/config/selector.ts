import type { Parsed } from './grammar.ts'

/** A Kubernetes label selector: all requirements must hold; none selects everything. */
export type Selector = readonly Requirement[]

export interface Requirement {
  key: string
  operator: '=' | '!=' | 'in' | 'notin' | 'exists' | '!' | '>' | '<'
  /** One for `=` and `!=`, a whole number in decimal for `>` and `<`, none for `exists` and `!`. */
  values: readonly string[]
}

/** Kubernetes' `labels.Parse`: `a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (x,y)`, `a notin (x)`, `a>1`, `a<1`, joined by commas. */
export function parseSelector(text: string): Parsed<Selector> {
  const tokens = tokensOf(text)
  let at = 0
  const next = () => tokens[at] ?? END
  const take = () => {
    const token = next()
    at++
    return token
  }

  const requirement = (): Parsed<Requirement> => {
    const absent = next().kind === '!'
    if (absent) take()
    const { kind, text: key } = take()
    if (kind !== 'word') return fault('lacks a label key')
    const wrongKey = faultOfKey(key)
    if (wrongKey !== undefined) return fault(wrongKey)
    if (absent) return { value: { key, operator: '!', values: [] } }
    if (next().kind === 'end' || next().kind === ',') return { value: { key, operator: 'exists', values: [] } }
    const operator = operatorOf(take())
    if (operator === undefined) return fault('has no operator after a key, write one of =, ==, !=, in, notin, >, <')
    const values = operator === 'in' || operator === 'notin' ? set() : exact()
    if ('fault' in values) return values
    const wrongValue = faultOfValues(operator, values.value)
    return wrongValue === undefined ? { value: { key, operator, values: values.value } } : fault(wrongValue)
  }

  const exact = (): Parsed<string[]> => {
    if (next().kind === 'end' || next().kind === ',') return { value: [''] }
    const token = take()
    return token.kind === 'word' ? { value: [token.text] } : fault('lacks a value after an operator')
  }

  const set = (): Parsed<string[]> => {
    if (take().kind !== '(') return fault("lacks '(' after in or notin")
    const values: string[] = []
    // Between two commas, and between a comma and a bracket, Kubernetes reads the empty value.
    for (let separated = true; ; ) {
      const token = take()
      if (token.kind === 'word' && separated) {
        values.push(token.text)
        separated = false
      } else if (token.kind === ',') {
        if (separated) values.push('')
        separated = true
      } else if (token.kind === ')') {
        if (separated && values.length > 0) values.push('')
        return { value: [...new Set(values)] }
      } else {
        return fault("lacks ')' or a comma in a list of values")
      }
    }
  }

  const requirements: Requirement[] = []
  if (next().kind === 'end') return { value: requirements }
  for (;;) {
    const parsed = requirement()
    if ('fault' in parsed) return parsed
    requirements.push(parsed.value)
    const token = take()
    if (token.kind === 'end') return { value: requirements }
    if (token.kind !== ',') return fault('lacks a comma between two requirements')
  }
}

/** True when labels fulfil all requirements. Like Kubernetes, `!=` and `notin` hold for objects without the label. */
export function matches(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  return selector.every((requirement) => holds(requirement, labels))
}

function holds({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case '=':
    case 'in':
      return value !== undefined && values.includes(value)
    case '!=':
    case 'notin':
      return value === undefined || !values.includes(value)
    case 'exists':
      return value !== undefined
    case '!':
      return value === undefined
    case '>':
    case '<':
      return value !== undefined && isBeyond(value, operator, values[0] ?? '')
  }
}

interface Token {
  kind: '!' | '=' | '==' | '!=' | '>' | '<' | '(' | ')' | ',' | 'word' | 'end'
  text: string
}

const END: Token = { kind: 'end', text: '' }

function tokensOf(text: string): Token[] {
  return [...text.matchAll(/==|!=|[=!><(),]|[^=!><(), \t\r\n]+/g)].map(([token]) =>
    /^[=!><(),]/.test(token) ? { kind: token as Token['kind'], text: token } : { kind: 'word', text: token },
  )
}

function operatorOf({ kind, text }: Token): Requirement['operator'] | undefined {
  if (kind === '=' || kind === '==') return '='
  if (kind === '!=' || kind === '>' || kind === '<') return kind
  return kind === 'word' && (text === 'in' || text === 'notin') ? text : undefined
}

const NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function faultOfKey(key: string): string | undefined {
  const parts = key.split('/')
  const name = parts.at(-1) ?? ''
  const prefix = parts.length === 2 ? parts[0] : undefined
  const good =
    parts.length <= 2 &&
    name.length <= 63 &&
    NAME.test(name) &&
    (prefix === undefined || (prefix.length <= 253 && SUBDOMAIN.test(prefix)))
  return good ? undefined : 'has a key that no label can have'
}

function faultOfValues(operator: Requirement['operator'], values: string[]): string | undefined {
  if (values.length === 0) return 'has an empty list of values'
  if ((operator === '>' || operator === '<') && int64Of(values[0] ?? '') === undefined) {
    return `compares by ${operator} with what is no whole number`
  }
  const good = values.every((value) => value === '' || (value.length <= 63 && NAME.test(value)))
  return good ? undefined : 'has a value that no label can have'
}

function isBeyond(value: string, operator: '>' | '<', bound: string): boolean {
  const [left, right] = [int64Of(value), int64Of(bound)]
  if (left === undefined || right === undefined) return false
  return operator === '>' ? left > right : left < right
}

function int64Of(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]+$/.test(text)) return undefined
  const value = BigInt(text.replace('+', ''))
  return BigInt.asIntN(64, value) === value ? value : undefined
}

const fault = (what: string) => ({
  fault: `is not a label selector: it ${what}. Write for example role=edge,zone in (a,b)`,
})
