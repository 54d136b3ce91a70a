import { notFound } from '../errors.ts'
import { listPage } from '../query.ts'
import type { Endpoint } from '../router.ts'
import { serverView } from '../views.ts'

/** What can only be read: locations, load balancer types, servers. */
export const fixed: Endpoint[] = [
  {
    method: 'GET',
    path: '/locations',
    query: ['name', 'sort', 'page', 'per_page'],
    answer: (cloud, { query }) => listPage('locations', cloud.locations, query, (location) => location, ['id', 'name']),
  },
  {
    method: 'GET',
    path: '/locations/{id}',
    answer: (cloud, { params }) => ({ status: 200, body: { location: pick('location', cloud.locations, params.id) } }),
  },
  {
    method: 'GET',
    path: '/load_balancer_types',
    query: ['name', 'page', 'per_page'],
    answer: (cloud, { query }) => listPage('load_balancer_types', cloud.loadBalancerTypes, query, (type) => type),
  },
  {
    method: 'GET',
    path: '/load_balancer_types/{id}',
    answer: (cloud, { params }) => ({
      status: 200,
      body: { load_balancer_type: pick('load balancer type', cloud.loadBalancerTypes, params.id) },
    }),
  },
  {
    method: 'GET',
    path: '/servers',
    query: ['name', 'label_selector', 'sort', 'status', 'page', 'per_page'],
    answer: (cloud, { query }) => {
      const statuses = query.getAll('status')
      const wanted = cloud.servers.filter((server) => statuses.length === 0 || statuses.includes(server.status))
      return listPage('servers', wanted, query, (server) => serverView(cloud, server))
    },
  },
  {
    method: 'GET',
    path: '/servers/{id}',
    answer: (cloud, { params }) => ({
      status: 200,
      body: { server: serverView(cloud, pick('server', cloud.servers, params.id)) },
    }),
  },
]

function pick<T extends { id: number }>(kind: string, all: T[], id: number | undefined): T {
  const found = all.find((item) => item.id === id)
  if (!found) throw notFound(kind, id ?? 0)
  return found
}
