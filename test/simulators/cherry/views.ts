import { isIPv6 } from 'node:net'
import { type CherryAccount, primaryOf } from './account.ts'
import type { Address, Data, Options, Project, Region, Server, Tags } from './model.ts'

type Json = Record<string, unknown>

export function regionView(region: Region): Json {
  return { ...region, href: `/regions/${region.id}`, location: region.name }
}

export function projectView({ id, name, bgp }: Project, { ids }: Options): Json {
  return { id: idView(id, ids), name, bgp, href: `/projects/${id}` }
}

/** With `power`, which a server only shows to those that ask for it. */
export function serverView(account: CherryAccount, data: Data, server: Server): Json {
  const { options } = account
  const own = data.addresses.filter(({ owner }) => owner === server.id)
  const floating = data.addresses.filter(({ target, lingersUntil }) => target === server.id && !lingersUntil)
  return {
    id: idView(server.id, options.ids),
    name: server.name,
    hostname: server.hostname,
    href: `/servers/${server.id}`,
    image: 'ubuntu_24_04',
    state: server.state,
    status: 'deployed',
    power: server.power,
    plan: { slug: server.plan, name: server.plan },
    region: regionOf(account, server.region),
    project: reference(data.projects, server.project, options),
    bgp: { enabled: server.bgp.enabled, available: server.bgp.enabled },
    ...tagsView(server.tags, options),
    ip_addresses: [...own, ...floating].map(shortAddressView),
    created_at: '2026-01-01T00:00:00+00:00',
  }
}

export function addressView(account: CherryAccount, data: Data, address: Address): Json {
  const { options } = account
  const routedTo = address.target === 0 ? undefined : primaryOf(data, address.target)
  return {
    ...shortAddressView(address),
    gateway: '',
    region: regionOf(account, address.region),
    project: reference(data.projects, address.project, options),
    routed_to: routedTo ? shortAddressView(routedTo) : null,
    assigned_to: address.owner === 0 ? null : serverReference(data, address.owner, options),
    ...targetView(data, address.target, options),
    ptr_record: address.ptr_record,
    a_record: address.a_record,
    ddos_scrubbing: address.ddos_scrubbing,
    ...tagsView(address.tags, options),
  }
}

export type StateView = ReturnType<typeof stateView>

/** For the control side: everything by its id, nothing bent by options. */
export function stateView({ data, addresses, settings }: CherryAccount, apiserver_port: number | undefined) {
  return {
    projects: structuredClone(data.projects),
    servers: structuredClone(data.servers),
    ips: addresses.map(({ target, hiddenUntil: _, lingersUntil: __, ...rest }) => ({
      ...structuredClone(rest),
      target_server_id: target,
      route_ip_id: target === 0 ? null : (primaryOf(data, target)?.id ?? null),
    })),
    settings: { ...structuredClone(settings), apiserver_port },
  }
}

function shortAddressView({ id, address, cidr, type }: Address): Json {
  return { id, address, address_family: isIPv6(address) ? 6 : 4, cidr, type, href: `/ips/${id}` }
}

function regionOf(account: CherryAccount, slug: string): Json {
  const region = account.regions.find((candidate) => candidate.slug === slug)
  if (!region) throw new Error(`no region ${slug}`)
  return regionView(region)
}

function targetView(data: Data, target: number, options: Options): Json {
  if (target !== 0) return { targeted_to: serverReference(data, target, options) }
  if (options.no_target === 'absent') return {}
  return { targeted_to: { zero: { id: idView(0, options.ids) }, empty: {}, null: null }[options.no_target] }
}

function tagsView(tags: Tags, { no_tags }: Options): Json {
  if (Object.keys(tags).length > 0) return { tags }
  if (no_tags === 'absent') return {}
  return { tags: { object: {}, array: [], null: null }[no_tags] }
}

function serverReference(data: Data, id: number, { ids }: Options): Json {
  const server = data.servers.find((candidate) => candidate.id === id)
  return { id: idView(id, ids), name: server?.name, hostname: server?.hostname, href: `/servers/${id}` }
}

function reference(projects: Project[], id: number, { ids }: Options): Json {
  return { id: idView(id, ids), name: projects.find((project) => project.id === id)?.name, href: `/projects/${id}` }
}

function idView(id: number, ids: Options['ids']): number | string {
  return ids === 'text' ? String(id) : id
}
