import {
  boolean,
  type Check,
  either,
  integer,
  isRecord,
  nullable,
  object,
  optional,
  refuse,
  required,
  text,
} from '../shape.ts'
import { type CherryAccount, listed, newAddress } from './account.ts'
import { listParameters, listReply, withFields } from './lists.ts'
import type { Address, Data, Project, Server, Tags } from './model.ts'
import { badRequest, notFound } from './refusals.ts'
import type { Call, Endpoint, Reply } from './router.ts'
import { addressView, projectView, regionView, serverView } from './views.ts'

const tags: Check = (value, path, problems) => {
  if (!isRecord(value)) return refuse(problems, path, 'must be an object')
  for (const [key, item] of Object.entries(value)) {
    if (typeof item !== 'string') refuse(problems, `${path}.${key}`, 'must be a string')
  }
}

/** A server's id as a string; 0 takes the address off. */
const target = either(text({ pattern: /^\d+$/, says: "must be a server's id" }), integer(0, 0))

const name = text({ min: 1, max: 255 })

const addressFields = {
  ptr_record: optional(text()),
  a_record: optional(text()),
  ddos_scrubbing: optional(boolean),
  targeted_to: optional(target),
  tags: optional(nullable(tags)),
}

interface AddressBody {
  region?: string
  ptr_record?: string
  a_record?: string
  ddos_scrubbing?: boolean
  targeted_to?: string | 0
  tags?: Tags | null
}

/** What the API can do, behind /v1. */
export const endpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/regions',
    query: listParameters,
    answer: ({ regions, options }, { query }) => listReply(regions, query, options, regionView),
  },
  {
    method: 'GET',
    path: '/projects/{id}',
    query: ['fields'],
    answer: (account, call) => {
      const project = findProject(account.visible(), call)
      return { status: 200, body: withFields(projectView(project, account.options), call.query) }
    },
  },
  {
    method: 'PUT',
    path: '/projects/{id}',
    body: object({ name: required(name), bgp: optional(boolean) }),
    answer: putProject,
  },
  {
    method: 'GET',
    path: '/projects/{id}/servers',
    query: listParameters,
    answer: (account, call) => {
      const data = account.visible()
      const project = findProject(data, call)
      const servers = data.servers.filter((server) => server.project === project.id)
      return listReply(servers, call.query, account.options, (server) => serverView(account, data, server))
    },
  },
  {
    method: 'GET',
    path: '/servers/{id}',
    query: ['fields'],
    answer: (account, call) => {
      const data = account.visible()
      return { status: 200, body: withFields(serverView(account, data, findServer(data, call)), call.query) }
    },
  },
  {
    method: 'PUT',
    path: '/servers/{id}',
    body: object({
      name: optional(name),
      hostname: optional(name),
      tags: optional(nullable(tags)),
      bgp: optional(boolean),
    }),
    answer: putServer,
  },
  {
    method: 'GET',
    path: '/projects/{id}/ips',
    query: listParameters,
    answer: (account, call) => {
      const data = account.visible()
      const addresses = listed(data, findProject(data, call).id)
      return listReply(addresses, call.query, account.options, (address) => addressView(account, data, address))
    },
  },
  {
    method: 'POST',
    path: '/projects/{id}/ips',
    body: object({ ...addressFields, region: required(text({ min: 1 })) }),
    answer: createAddress,
  },
  {
    method: 'GET',
    path: '/ips/{id}',
    query: ['fields'],
    answer: (account, call) => {
      const data = account.visible()
      return { status: 200, body: withFields(addressView(account, data, findAddress(data, call)), call.query) }
    },
  },
  { method: 'PUT', path: '/ips/{id}', body: object(addressFields), answer: putAddress },
  { method: 'DELETE', path: '/ips/{id}', answer: deleteAddress },
]

/** Without bgp it stays as it is. */
function putProject(account: CherryAccount, call: Call): Reply {
  const project = findProject(account.data, call)
  const body = call.body as { name: string; bgp?: boolean }
  project.name = body.name
  if (body.bgp === true && !project.bgp.enabled) project.bgp = { enabled: true, local_asn: account.options.local_asn }
  if (body.bgp === false) project.bgp = { enabled: false, local_asn: 0 }
  account.touch()
  return { status: 200, body: withFields(projectView(project, account.options), call.query) }
}

/** Replaces: without tags there are none, and without bgp it is off. The answer has no addresses. */
function putServer(account: CherryAccount, call: Call): Reply {
  const server = findServer(account.data, call)
  const body = call.body as { name?: string; hostname?: string; tags?: Tags | null; bgp?: boolean }
  server.name = body.name ?? server.name
  server.hostname = body.hostname ?? server.hostname
  server.tags = body.tags ?? {}
  server.bgp.enabled = body.bgp === true
  account.touch()
  const { ip_addresses: _, ...shown } = serverView(account, account.data, server)
  return { status: 200, body: withFields(shown, call.query) }
}

function createAddress(account: CherryAccount, call: Call): Reply {
  const project = findProject(account.data, call)
  const { region, tags, targeted_to, ...rest } = call.body as AddressBody & { region: string }
  if (!account.regions.some(({ slug }) => slug === region)) throw badRequest(`region: there is no region '${region}'`)
  if (account.floatingIps(project.id).length >= account.settings.limits.floating_ips) {
    throw badRequest('the limit of floating IP addresses of this project is reached')
  }
  const address = newAddress({
    project: project.id,
    address: account.freeFloatingIp(region),
    type: 'floating-ip',
    region,
    tags: tags ?? {},
    hiddenUntil: Date.now() + (call.twist.staleMs ?? 0),
    ...rest,
  })
  if (targeted_to !== undefined) address.target = targetOf(account, address, targeted_to)
  account.data.addresses.push(address)
  account.touch()
  return { status: 201, body: addressView(account, account.data, address) }
}

/** Tags are replaced as a whole; what is left out stays. */
function putAddress(account: CherryAccount, call: Call): Reply {
  const address = findAddress(account.data, call)
  const { tags, targeted_to, ...rest } = call.body as AddressBody
  if (targeted_to !== undefined) {
    if (address.type !== 'floating-ip') throw badRequest('only a floating IP address can be moved')
    address.target = targetOf(account, address, targeted_to)
  }
  if (tags !== undefined) address.tags = tags ?? {}
  Object.assign(address, rest)
  account.touch()
  return { status: 200, body: addressView(account, account.data, address) }
}

function deleteAddress(account: CherryAccount, call: Call): Reply {
  const address = findAddress(account.data, call)
  if (address.type !== 'floating-ip') throw badRequest('only a floating IP address can be deleted')
  if (address.target !== 0) throw badRequest('the IP address is assigned to a server')
  account.deleteAddress(address)
  account.touch()
  return { status: 204 }
}

function targetOf(account: CherryAccount, address: Address, targeted_to: string | 0): number {
  const id = Number(targeted_to)
  if (id === 0) return 0
  const server = account.server(id)
  if (!server || server.project !== address.project) throw badRequest(`targeted_to: there is no server ${id}`)
  if (server.region !== address.region) throw badRequest('targeted_to: the server is in another region')
  return id
}

function findProject({ projects }: Data, { id }: Call): Project {
  const project = projects.find((candidate) => String(candidate.id) === id)
  if (!project) throw notFound('Project')
  return project
}

function findServer({ servers }: Data, { id }: Call): Server {
  const server = servers.find((candidate) => String(candidate.id) === id)
  if (!server) throw notFound('Server')
  return server
}

function findAddress({ addresses }: Data, { id }: Call): Address {
  const address = addresses.find((candidate) => candidate.id === id && candidate.lingersUntil === undefined)
  if (!address) throw notFound('IP address')
  return address
}
