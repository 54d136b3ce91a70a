import { ApiError, invalidField } from './errors.ts'
import { parseSelector } from './label-selector.ts'
import type { Labels } from './model.ts'

const maxPerPage = 50

/** Refuses parameters that the endpoint does not know, and a second value where only one makes sense. */
export function assertKnown(query: URLSearchParams, known: readonly string[]): void {
  for (const key of new Set(query.keys())) {
    if (!known.includes(key)) throw invalidField(key, 'unknown query parameter')
    if (!['sort', 'status', 'id', 'type'].includes(key) && query.getAll(key).length > 1) {
      throw invalidField(key, 'given more than once')
    }
  }
}

export const listParameters = ['page', 'per_page', 'name', 'label_selector', 'sort', 'status', 'type'] as const

interface Listable {
  id: number
  name?: string
  labels?: Labels
}

/** One page of a list as the API answers it: {KEY: [...], meta: {pagination}}. */
export function listPage<T extends Listable>(
  key: string,
  all: T[],
  query: URLSearchParams,
  show: (item: T) => unknown,
  sortable = ['id', 'name', 'created'],
): { status: number; body: Record<string, unknown> } {
  const page = wholeNumber(query, 'page', 1, Number.MAX_SAFE_INTEGER, 1)
  const per_page = wholeNumber(query, 'per_page', 1, maxPerPage, 25)
  const matching = sorted(filtered(all, query), query.getAll('sort'), sortable)
  const last_page = Math.max(1, Math.ceil(matching.length / per_page))
  return {
    status: 200,
    body: {
      [key]: matching.slice((page - 1) * per_page, page * per_page).map(show),
      meta: {
        pagination: {
          page,
          per_page,
          previous_page: page > 1 ? page - 1 : null,
          next_page: page < last_page ? page + 1 : null,
          last_page,
          total_entries: matching.length,
        },
      },
    },
  }
}

export function sorted<T extends object>(items: T[], orders: string[], sortable: string[]): T[] {
  const keys = orders.map((order) => {
    const [field = '', direction = 'asc', ...rest] = order.split(':')
    if (!sortable.includes(field) || !['asc', 'desc'].includes(direction) || rest.length > 0) {
      throw invalidField('sort', `cannot sort by '${order}'`)
    }
    return { field: field as keyof T, sign: direction === 'asc' ? 1 : -1 }
  })
  if (keys.length === 0) return items
  return items.toSorted((a, b) => {
    for (const { field, sign } of keys) {
      const [x, y] = [a[field], b[field]]
      if (x !== y) return (x ?? '') < (y ?? '') ? -sign : sign
    }
    return 0
  })
}

/** The ids of `id=1&id=2`. Listing actions without ids was taken out of the API. */
export function actionIds(query: URLSearchParams): number[] {
  const ids = query.getAll('id')
  if (ids.length === 0) throw new ApiError('deprecated_api_endpoint', 'listing all actions is no longer possible')
  return ids.map((text) => {
    if (!/^[1-9]\d*$/.test(text)) throw invalidField('id', 'must be an ID')
    return Number(text)
  })
}

function filtered<T extends Listable>(all: T[], query: URLSearchParams): T[] {
  const name = query.get('name')
  const source = query.get('label_selector')
  const selects = source ? parseSelector(source) : () => true
  if (!selects) throw invalidField('label_selector', 'is not a label selector')
  return all.filter((item) => (name === null || item.name === name) && selects(item.labels ?? {}))
}

function wholeNumber(query: URLSearchParams, key: string, min: number, max: number, fallback: number): number {
  const text = query.get(key)
  if (text === null) return fallback
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max) throw invalidField(key, `must be from ${min} to ${max}`)
  return value
}
