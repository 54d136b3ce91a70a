import { inspect } from 'node:util'

/** Makes `JSON.stringify`, `util.inspect` and loggers show stars for some members of an object. A copy of the object has no such guard. */
export function conceal<T extends object>(object: T, ...members: (keyof T)[]): T {
  const shown = () => {
    const copy: Record<PropertyKey, unknown> = Object.fromEntries(Object.entries(object))
    for (const member of members) if (copy[member] !== undefined) copy[member] = '***'
    return copy
  }
  Object.defineProperty(object, 'toJSON', { value: shown, enumerable: false })
  Object.defineProperty(object, inspect.custom, { value: shown, enumerable: false })
  return object
}
