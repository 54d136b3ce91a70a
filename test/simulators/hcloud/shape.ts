import { type Check, type FieldProblem, integer, isRecord, join, refuse, text } from '../shape.ts'
import { invalidInput } from './errors.ts'
import { parseSelector } from './label-selector.ts'

export {
  boolean,
  type Check,
  either,
  integer,
  isRecord,
  list,
  nullable,
  object,
  oneOf,
  optional,
  required,
  text,
} from '../shape.ts'

/** The real API answers an unknown field or a null with invalid_input and the field's path. */
export function validate(check: Check, value: unknown): void {
  const problems: FieldProblem[] = []
  check(value, '', problems)
  if (problems.length > 0) throw invalidInput(problems)
}

export const id: Check = integer(1, Number.MAX_SAFE_INTEGER)

export const port: Check = integer(1, 65_535)

export const name: Check = text({
  min: 1,
  max: 128,
  pattern: /^\S(.*\S)?$/,
  says: 'must not begin or end with a space',
})

export const hostName: Check = text({
  max: 253,
  pattern: /^([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?$/,
  says: 'must be a domain name',
})

export const selector: Check = (value, path, problems) => {
  if (typeof value !== 'string' || value === '' || !parseSelector(value)) {
    refuse(problems, path, 'must be a label selector')
  }
}

const labelKey = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$/
const labelValue = /^([a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?)?$/

export const labels: Check = (value, path, problems) => {
  if (!isRecord(value)) return refuse(problems, path, 'must be an object')
  for (const [key, item] of Object.entries(value)) {
    if (!labelKey.test(key)) refuse(problems, join(path, key), 'is not a label key')
    if (typeof item !== 'string' || !labelValue.test(item)) refuse(problems, join(path, key), 'is not a label value')
  }
}
