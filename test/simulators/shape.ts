export interface FieldProblem {
  /** dotted path into the body */
  name: string
  messages: string[]
}

/** What a JSON body may look like. A field that the shape does not name, or null where it is not allowed, is refused. */
export type Check = (value: unknown, path: string, problems: FieldProblem[]) => void

interface Field {
  check: Check
  required: boolean
}

export const required = (check: Check): Field => ({ check, required: true })
export const optional = (check: Check): Field => ({ check, required: false })

export function object(fields: Record<string, Field>): Check {
  return (value, path, problems) => {
    if (!isRecord(value)) return refuse(problems, path || 'body', 'must be an object')
    for (const key of Object.keys(value)) {
      if (!Object.hasOwn(fields, key)) refuse(problems, join(path, key), 'unknown field')
    }
    for (const [key, field] of Object.entries(fields)) {
      if (value[key] !== undefined) field.check(value[key], join(path, key), problems)
      else if (field.required) refuse(problems, join(path, key), 'missing required field')
    }
  }
}

export function list(of: Check, limits: { min?: number; max?: number } = {}): Check {
  return (value, path, problems) => {
    if (!Array.isArray(value)) return refuse(problems, path, 'must be an array')
    if (value.length < (limits.min ?? 0)) refuse(problems, path, `must have at least ${limits.min} items`)
    if (value.length > (limits.max ?? Number.POSITIVE_INFINITY)) {
      refuse(problems, path, `must have at most ${limits.max} items`)
    }
    for (const [i, item] of value.entries()) of(item, join(path, String(i)), problems)
  }
}

export function text(rule: { min?: number; max?: number; pattern?: RegExp; says?: string } = {}): Check {
  return (value, path, problems) => {
    if (typeof value !== 'string') return refuse(problems, path, 'must be a string')
    if (value.length < (rule.min ?? 0)) refuse(problems, path, `must be at least ${rule.min} characters long`)
    if (value.length > (rule.max ?? 100_000)) refuse(problems, path, `must be at most ${rule.max} characters long`)
    if (rule.pattern && !rule.pattern.test(value)) refuse(problems, path, rule.says ?? 'has invalid characters')
  }
}

export function integer(min: number, max: number): Check {
  return (value, path, problems) => {
    if (!Number.isInteger(value)) return refuse(problems, path, 'must be an integer')
    if (Number(value) < min || Number(value) > max) refuse(problems, path, `must be between ${min} and ${max}`)
  }
}

export function oneOf(...values: string[]): Check {
  return (value, path, problems) => {
    if (!values.includes(value as string)) refuse(problems, path, `must be one of ${values.join(', ')}`)
  }
}

export function either(...checks: Check[]): Check {
  return (value, path, problems) => {
    const attempts = checks.map((check) => {
      const own: FieldProblem[] = []
      check(value, path, own)
      return own
    })
    if (attempts.every((own) => own.length > 0)) problems.push(...(attempts[0] ?? []))
  }
}

export const nullable =
  (check: Check): Check =>
  (value, path, problems) => {
    if (value !== null) check(value, path, problems)
  }

export const boolean: Check = (value, path, problems) => {
  if (typeof value !== 'boolean') refuse(problems, path, 'must be a boolean')
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function refuse(problems: FieldProblem[], path: string, message: string): void {
  const known = problems.find((problem) => problem.name === path)
  if (known) known.messages.push(message)
  else problems.push({ name: path, messages: [message] })
}

export function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}
