import { type CherryAccount, newAddress } from './account.ts'
import { type Address, defaultOptions, type Project, type Server, type Tags } from './model.ts'

type Given = Record<string, unknown>

/** How one kind of resource is made from, and changed by, API-like JSON in which slugs and ids stand for what they name. */
interface Kind {
  all: (account: CherryAccount) => object[]
  create: (account: CherryAccount, given: Given) => void
  set: (account: CherryAccount, item: object, given: Given) => void
  remove: (account: CherryAccount, item: object) => void
}

const kinds: Record<string, Kind> = {
  projects: {
    all: ({ data }) => data.projects,
    create: newProject,
    set: (_, item, given) =>
      setFields(item, given, { bgp: (value) => ({ ...(item as Project).bgp, ...(value as Given) }) }),
    remove: ({ data }, item) => void data.projects.splice(data.projects.indexOf(item as Project), 1),
  },
  servers: {
    all: ({ data }) => data.servers,
    create: newServer,
    set: setServer,
    remove: (account, item) => account.deleteServer((item as Server).id),
  },
  ips: {
    all: ({ addresses }) => addresses,
    create: newFloatingIp,
    set: setAddress,
    remove: ({ data }, item) => void data.addresses.splice(data.addresses.indexOf(item as Address), 1),
  },
}

/** Adds an account's resources. What is left out gets a default. Throws a sentence about what it does not understand. */
export function seed(account: CherryAccount, given: Given): void {
  assertKnown(given, [...Object.keys(kinds), 'settings', 'options'])
  setSettings(account, given)
  for (const [key, kind] of Object.entries(kinds)) {
    for (const item of (given[key] as Given[]) ?? []) kind.create(account, item)
  }
  account.touch()
  account.forgetPast()
}

/** Changes the account behind the API's back: {KIND: [{NAME, $delete: true} | {NAME, FIELD: …} | {create: {…}}]}. */
export function mutate(account: CherryAccount, patch: Given): void {
  assertKnown(patch, [...Object.keys(kinds), 'settings', 'options'])
  setSettings(account, patch)
  for (const [key, kind] of Object.entries(kinds)) {
    for (const change of (patch[key] as Given[]) ?? []) applyChange(account, key, kind, change)
  }
  account.touch()
}

function applyChange(account: CherryAccount, key: string, kind: Kind, change: Given): void {
  if (change.create) {
    kind.create(account, change.create as Given)
    return
  }
  const identity = ['id', 'hostname', 'address', 'name'].find((field) => change[field] !== undefined) ?? 'id'
  const item = kind.all(account).find((candidate) => (candidate as Given)[identity] === change[identity])
  if (!item) throw new Error(`mutate: no such item in ${key}: ${JSON.stringify(change)}`)
  const { $delete, [identity]: _, ...fields } = change
  if ($delete === true) kind.remove(account, item)
  else kind.set(account, item, fields)
}

function setSettings(account: CherryAccount, given: Given): void {
  const { limits, apiserver_port, ...unknown } = (given.settings ?? {}) as Given
  assertKnown(unknown, [])
  Object.assign(account.settings.limits, limits)
  if (apiserver_port !== undefined) account.settings.apiserver_port = Number(apiserver_port)
  if (given.options === undefined) return
  assertKnown(given.options as Given, Object.keys(defaultOptions))
  Object.assign(account.options, given.options)
  account.forgetPast()
}

function newProject(account: CherryAccount, given: Given): void {
  const id = Number(given.id ?? account.nextId())
  const project: Project = { id, name: `project-${id}`, bgp: { enabled: false, local_asn: 0 } }
  setFields(project, given, { bgp: (value) => ({ ...project.bgp, ...(value as Given) }) })
  assertUnique(account.data.projects, project)
  account.data.projects.push(project)
}

function newServer(account: CherryAccount, given: Given): void {
  const n = account.data.servers.length + 1
  const hostname = String(given.hostname ?? given.name ?? `server-${n}`)
  const server: Server = {
    id: account.nextId(),
    project: firstProject(account),
    name: hostname,
    hostname,
    plan: 'e5_1620v4',
    region: 'LT-Siauliai',
    state: 'active',
    power: 'on',
    bgp: { enabled: false },
    tags: {},
  }
  const { id = server.id } = given
  assertUnique(account.data.servers, { id })
  server.id = Number(id)
  account.data.servers.push(server)
  const own = [
    { address: `5.199.160.${n}`, type: 'primary-ip' },
    { address: `10.168.0.${n}`, type: 'private-ip' },
  ]
  setServer(account, server, { ip_addresses: own, ...given })
}

function setServer(account: CherryAccount, item: object, { ip_addresses, apiserver, ...fields }: Given): void {
  const server = item as Server
  setFields(server, fields, {
    region: (value) => knownRegion(account, value),
    bgp: (value) => ({ enabled: typeof value === 'boolean' ? value : (value as Server['bgp']).enabled }),
  })
  if (apiserver !== undefined) {
    if (!['ok', 'refuse', 'hang'].includes(apiserver as string) && !Number.isInteger(apiserver)) {
      throw new Error(`account: apiserver is ok, refuse, hang or a status, not ${apiserver}`)
    }
    server.apiserver = apiserver as Server['apiserver'] & {}
  }
  if (ip_addresses === undefined) return
  const { data } = account
  data.addresses = data.addresses.filter(({ owner }) => owner !== server.id)
  for (const { address, type, ...rest } of ip_addresses as { address: string; type: string }[]) {
    assertKnown(rest, ['id', 'cidr'])
    assertFree(account, address)
    data.addresses.push(
      newAddress({ project: server.project, region: server.region, owner: server.id, address, type, ...rest }),
    )
  }
}

function newFloatingIp(account: CherryAccount, given: Given): void {
  const region = String(given.region ?? 'LT-Siauliai')
  const address = String(given.address ?? account.freeFloatingIp(region))
  assertFree(account, address)
  const floating = newAddress({ project: firstProject(account), address, type: 'floating-ip', region })
  setAddress(account, floating, given)
  account.data.addresses.push(floating)
}

function setAddress(account: CherryAccount, item: object, { targeted_to, ...fields }: Given): void {
  const address = item as Address
  setFields(address, fields, {
    region: (value) => knownRegion(account, value),
    tags: (value) => stringTags(value as Tags),
  })
  if (targeted_to === undefined) return
  const target = Number(targeted_to)
  if (target !== 0 && !account.server(target)) throw new Error(`account: no server ${targeted_to} to target`)
  address.target = target
}

/** YAML reads `yes` as it likes; the API has strings only. */
function stringTags(tags: Tags): Tags {
  return Object.fromEntries(Object.entries(tags).map(([key, value]) => [key, String(value)]))
}

function setFields(item: object, given: Given, readers: Record<string, (value: unknown) => unknown>): void {
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(item, key)) throw new Error(`account: unknown field ${key}`)
    Reflect.set(item, key, readers[key] ? readers[key](value) : value)
  }
}

function firstProject(account: CherryAccount): number {
  if (account.data.projects.length === 0) newProject(account, { id: 1, name: 'default' })
  return account.data.projects[0]?.id ?? 0
}

function knownRegion(account: CherryAccount, value: unknown): unknown {
  if (!account.regions.some(({ slug }) => slug === value)) throw new Error(`account: unknown region ${value}`)
  return value
}

function assertFree(account: CherryAccount, address: string): void {
  if (account.addresses.some((other) => other.address === address)) {
    throw new Error(`account: address ${address} is used twice`)
  }
}

function assertUnique(items: { id: number }[], { id }: { id?: unknown }): void {
  if (items.some((other) => other.id === id)) throw new Error(`account: id ${id} is used twice`)
}

function assertKnown(given: Given, known: string[]): void {
  for (const key of Object.keys(given)) if (!known.includes(key)) throw new Error(`account: unknown key ${key}`)
}
