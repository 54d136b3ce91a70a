import type { TSchema } from 'typebox'
import type { Validator } from 'typebox/compile'
import type { Fault } from './types.ts'

/** What is wrong with a value that a validator refuses, in the words of the schema's descriptions; paths begin at the value. */
export function describe(validator: Validator, event: unknown): Fault[] {
  const faults = new Map<string, string>()
  const say = (pointer: string, message: string) => {
    const path = jsonPath(pointer)
    if (!faults.has(path)) faults.set(path, message)
  }
  for (const error of validator.Errors(event)) {
    const schema = schemaAt(validator.Type(), error.instancePath)
    if (error.keyword === 'required')
      for (const field of error.params.requiredProperties) {
        const pointer = `${error.instancePath}/${escapePointer(field)}`
        say(pointer, `is missing: must be ${wanted(schemaAt(validator.Type(), pointer))}`)
      }
    else if (error.keyword === 'additionalProperties')
      for (const field of error.params.additionalProperties)
        say(`${error.instancePath}/${escapePointer(field)}`, `must not be there: ${allowed(schema)}`)
    else if (error.keyword !== 'boolean') say(error.instancePath, `must be ${wanted(schema)}`)
  }
  return [...faults].map(([path, message]) => ({ path, message }))
}

function wanted(schema: SchemaView | undefined): string {
  return schema?.description ?? (schema?.const === undefined ? 'as the schema says' : JSON.stringify(schema.const))
}

function allowed(schema: SchemaView | undefined): string {
  return schema?.properties
    ? `the fields are ${Object.keys(schema.properties).join(', ')}`
    : `this is ${wanted(schema)}`
}

/** What of a schema the messages look at. */
interface SchemaView {
  description?: string
  const?: unknown
  properties?: Record<string, SchemaView>
  patternProperties?: Record<string, SchemaView>
  items?: SchemaView
}

function schemaAt(root: TSchema, pointer: string): SchemaView | undefined {
  let schema: SchemaView | undefined = root as SchemaView
  for (const part of partsOf(pointer))
    schema = schema?.properties
      ? schema.properties[part]
      : (schema?.items ?? Object.values(schema?.patternProperties ?? {})[0])
  return schema
}

function partsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function escapePointer(field: string): string {
  return field.replaceAll('~', '~0').replaceAll('/', '~1')
}

function jsonPath(pointer: string): string {
  return partsOf(pointer)
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : /^\w+$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`))
    .join('')
}
