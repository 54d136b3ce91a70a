import { inspect } from 'node:util'

/**
 * Makes `JSON.stringify`, `util.inspect` and loggers show stars for some members of an object. The guards are members themselves,
 * so that a copy by spreading has them too.
 */
export function conceal<T extends object>(object: T, ...members: (keyof T)[]): T {
  function shown(this: object): Record<PropertyKey, unknown> {
    const copy: Record<PropertyKey, unknown> = Object.fromEntries(
      Object.entries(this).filter(([key]) => key !== 'toJSON'),
    )
    for (const member of members) if (copy[member] !== undefined) copy[member] = '***'
    return copy
  }
  return Object.assign(object, { toJSON: shown, [inspect.custom]: shown })
}
