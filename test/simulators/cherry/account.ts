import { randomUUID } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { Account } from '../hub.ts'
import { type Address, type Data, defaultOptions, type Options, type Server, type Settings } from './model.ts'
import { floatingIpsOf, regions } from './regions.ts'

/** All state that the simulator has. */
export class CherryAccount implements Account {
  readonly options: Options
  readonly settings: Settings = { limits: { floating_ips: 1000 } }
  readonly regions = regions()
  readonly data: Data = { projects: [], servers: [], addresses: [] }
  /** deleted addresses and lagging reads are no work that somebody has to wait for */
  readonly inFlight = 0
  revision = 0
  #lastId = 400_000
  #past: { at: number; data: Data }[] = []

  constructor(options: Partial<Options>) {
    for (const name of Object.keys(options)) {
      if (!Object.hasOwn(defaultOptions, name)) throw new Error(`unknown option ${name}`)
    }
    this.options = { ...defaultOptions, ...options }
  }

  /** To be called after every change. */
  touch(): void {
    this.revision++
    if (this.options.lag_ms > 0) this.#past.push({ at: Date.now(), data: structuredClone(this.data) })
  }

  /** Whoever arranges the account wants it seen at once. */
  forgetPast(): void {
    this.#past = this.options.lag_ms > 0 ? [{ at: 0, data: structuredClone(this.data) }] : []
  }

  /** What reads see now. */
  visible(): Data {
    if (this.options.lag_ms === 0 || this.#past.length === 0) return this.data
    const seenUntil = Date.now() - this.options.lag_ms
    const newest = this.#past.findLastIndex(({ at }) => at <= seenUntil)
    this.#past = this.#past.slice(Math.max(0, newest))
    return this.#past[0]?.data ?? this.data
  }

  nextId(): number {
    return ++this.#lastId
  }

  server(id: number): Server | undefined {
    return this.data.servers.find((server) => server.id === id)
  }

  /** The addresses that are not deleted. */
  get addresses(): Address[] {
    return this.data.addresses.filter((address) => address.lingersUntil === undefined)
  }

  floatingIps(project: number): Address[] {
    return this.addresses.filter((address) => address.type === 'floating-ip' && address.project === project)
  }

  /** A floating IP that nobody has. Those ending in .0 are as good as any other. */
  freeFloatingIp(region: string): string {
    const used = new Set(this.data.addresses.map(({ address }) => address))
    const prefix = floatingIpsOf(region)
    for (let last = 0; last < 256; last++) if (!used.has(`${prefix}.${last}`)) return `${prefix}.${last}`
    throw new Error(`the simulator has no floating IP left in ${region}`)
  }

  deleteServer(id: number): void {
    const { data } = this
    data.servers = data.servers.filter((server) => server.id !== id)
    data.addresses = data.addresses.filter((address) => address.owner !== id)
    for (const address of data.addresses) if (address.target === id) address.target = 0
  }

  deleteAddress(address: Address): void {
    const { data, options } = this
    if (options.deleted_stays_ms > 0) address.lingersUntil = Date.now() + options.deleted_stays_ms
    else data.addresses = data.addresses.filter((other) => other !== address)
  }
}

/** Those of a list: hidden ones are missing, deleted ones may linger. */
export function listed({ addresses }: Data, project: number): Address[] {
  const now = Date.now()
  return addresses.filter(
    (address) =>
      address.project === project &&
      now >= address.hiddenUntil &&
      (address.lingersUntil === undefined || now < address.lingersUntil),
  )
}

/** The server's own address that is public and of the family of IPv4. */
export function primaryOf({ addresses }: Data, server: number): Address | undefined {
  return addresses.find(({ owner, type, address }) => owner === server && type === 'primary-ip' && !isIPv6(address))
}

export function newAddress(
  given: Pick<Address, 'project' | 'address' | 'type' | 'region'> & Partial<Address>,
): Address {
  return {
    id: randomUUID(),
    cidr: `${given.address}/${isIPv6(given.address) ? 128 : 32}`,
    owner: 0,
    target: 0,
    tags: {},
    ptr_record: '',
    a_record: '',
    ddos_scrubbing: false,
    hiddenUntil: 0,
    ...given,
  }
}
