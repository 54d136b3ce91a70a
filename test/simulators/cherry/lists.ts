import type { Options } from './model.ts'
import { badRequest } from './refusals.ts'
import type { Reply } from './router.ts'

export const listParameters = ['limit', 'offset', 'fields'] as const

/** A part of a list, with the size of the whole in X-Total-Count. */
export function listReply<Item>(
  all: Item[],
  query: URLSearchParams,
  { page_size }: Options,
  show: (item: Item) => Record<string, unknown>,
): Reply {
  const offset = wholeNumber(query, 'offset')
  const size = Math.min(wholeNumber(query, 'limit') || Number.POSITIVE_INFINITY, page_size || Number.POSITIVE_INFINITY)
  return {
    status: 200,
    body: all.slice(offset, offset + size).map((item) => withFields(show(item), query)),
    headers: { 'X-Total-Count': String(all.length) },
  }
}

/** The fields that `?fields=a,b` names; without it all but those that only show when named. */
export function withFields(shown: Record<string, unknown>, query: URLSearchParams): Record<string, unknown> {
  const asked = query.get('fields')
  if (asked === null) {
    const { power: _, ...rest } = shown
    return rest
  }
  const names = asked.split(',')
  const unknown = names.find((name) => !known.has(name) && !Object.hasOwn(shown, name))
  if (unknown !== undefined) throw badRequest(`fields: there is no field '${unknown}'`)
  return Object.fromEntries(names.filter((name) => Object.hasOwn(shown, name)).map((name) => [name, shown[name]]))
}

/** Options may take these away from what is shown. */
const known = new Set(['tags', 'targeted_to'])

function wholeNumber(query: URLSearchParams, key: string): number {
  const text = query.get(key) ?? '0'
  if (!/^\d{1,9}$/.test(text)) throw badRequest(`${key} must be a whole number`)
  return Number(text)
}
