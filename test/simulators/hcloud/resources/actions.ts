import type { Action, ResourceRef } from '../actions.ts'
import type { Cloud } from '../cloud.ts'
import { invalidField, notFound } from '../errors.ts'
import { actionIds, listPage } from '../query.ts'
import type { Endpoint } from '../router.ts'

const sortable = ['id', 'command', 'status', 'started', 'finished']
const parameters = ['status', 'sort', 'page', 'per_page']

export const actions: Endpoint[] = [
  {
    method: 'GET',
    path: '/actions',
    query: ['id', ...parameters],
    answer: (cloud, { query }) => {
      const ids = new Set(actionIds(query))
      return page(
        cloud.actions.all.filter((action) => ids.has(action.id)),
        query,
      )
    },
  },
  {
    method: 'GET',
    path: '/actions/{id}',
    answer: (cloud, { params }) => one(cloud.actions.all, params.id),
  },
]

/** The ways to ask for the actions of one kind of resource. */
export function actionEndpoints(
  collection: string,
  type: ResourceRef['type'],
  find: (cloud: Cloud, params: Record<string, number>) => { id: number },
): Endpoint[] {
  const ofKind = (cloud: Cloud): Action[] =>
    cloud.actions.all.filter((action) => action.resources.some((ref) => ref.type === type))
  const ofOne = (cloud: Cloud, params: Record<string, number>): Action[] =>
    cloud.actions.of({ id: find(cloud, params).id, type })
  return [
    {
      method: 'GET',
      path: `/${collection}/actions`,
      query: ['id', ...parameters],
      answer: (cloud, { query }) => {
        const ids = query.has('id') ? new Set(actionIds(query)) : undefined
        return page(
          ofKind(cloud).filter((action) => ids?.has(action.id) ?? true),
          query,
        )
      },
    },
    {
      method: 'GET',
      path: `/${collection}/actions/{id}`,
      answer: (cloud, { params }) => one(ofKind(cloud), params.id),
    },
    {
      method: 'GET',
      path: `/${collection}/{id}/actions`,
      query: parameters,
      answer: (cloud, { params, query }) => page(ofOne(cloud, params), query),
    },
    {
      method: 'GET',
      path: `/${collection}/{id}/actions/{action_id}`,
      answer: (cloud, { params }) => one(ofOne(cloud, params), params.action_id),
    },
  ]
}

function page(all: Action[], query: URLSearchParams): { status: number; body: unknown } {
  const statuses = query.getAll('status')
  for (const status of statuses) {
    if (!['running', 'success', 'error'].includes(status)) throw invalidField('status', `unknown status '${status}'`)
  }
  const wanted = all.filter((action) => statuses.length === 0 || statuses.includes(action.status))
  return listPage('actions', wanted, query, (action) => action, sortable)
}

function one(all: Action[], id: number | undefined): { status: number; body: unknown } {
  const action = all.find((candidate) => candidate.id === id)
  if (!action) throw notFound('action', id ?? 0)
  return { status: 200, body: { action } }
}
