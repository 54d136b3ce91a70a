import { isDeepStrictEqual } from 'node:util'
import type { Redis } from 'ioredis'
import type { Address, AddressId, ServerId } from './model.ts'

/**
 * What was written to addresses of late, by all workers. Lists lag behind writes by seconds: without this, an address that was just made
 * would be made again, and one that is gone be taken for a Service's.
 */
export interface AddressWrites {
  made(address: Address): Promise<void>
  tagged(id: AddressId, tags: Record<string, string>): Promise<void>
  moved(id: AddressId, target: ServerId | undefined): Promise<void>
  gone(id: AddressId): Promise<void>
  /** A list as it will be once it shows all of that. */
  applyTo(list: readonly Address[]): Promise<readonly Address[]>
  /** An address with these tags is asked for: until the answer is there, and when none comes, it may have been made. */
  asked(tags: Record<string, string>): Promise<void>
  answered(tags: Record<string, string>): Promise<void>
  /** So long yet an address with these tags may turn up that no list shows; 0 for no such doubt. */
  doubtMs(tags: Record<string, string>): Promise<number>
}

/** No list is believed to lag further behind. */
const LAG_MS = 30_000
const DOUBT_MS = 60_000

interface Written {
  atMs: number
  made?: Address
  tags?: Record<string, string>
  /** 0 for none. */
  target?: ServerId | 0
  gone?: true
}

export interface AddressWritesOptions {
  /** Without it each process knows its own. */
  redis?: Redis
  /** Before every key, without trailing colon. */
  prefix: string
  /** Names the account. */
  account(): string
}

export function createAddressWrites({ redis, prefix, account }: AddressWritesOptions): AddressWrites {
  const own = new Map<string, Written>()
  const ownDoubts = new Map<string, number>()
  const key = (what: string) => `${prefix}:cherry:v1:${what}:${account()}`
  const writesKey = () => key('address-writes')
  const askedKey = (tags: Record<string, string>) => `${key('address-asked')}:${tags.cluster}:${tags.service}`

  async function note(id: AddressId, written: Omit<Written, 'atMs'>): Promise<void> {
    const before = (await known()).get(id)
    const entry = { ...before, ...written, atMs: Date.now() }
    own.set(`${account()} ${id}`, entry)
    // Where Redis does not take it, this process knows.
    await redis
      ?.multi()
      .hset(writesKey(), id, JSON.stringify(entry))
      .pexpire(writesKey(), 2 * LAG_MS)
      .exec()
      .catch(() => undefined)
  }

  async function known(): Promise<Map<string, Written>> {
    const oldest = Date.now() - LAG_MS
    const all = new Map<string, Written>()
    for (const [name, entry] of own) {
      const [of, id = ''] = name.split(' ')
      if (entry.atMs < oldest) own.delete(name)
      else if (of === account()) all.set(id, entry)
    }
    const fields = Object.entries((await redis?.hgetall(writesKey()).catch(() => undefined)) ?? {})
    const old: string[] = []
    for (const [id, text] of fields) {
      const entry = JSON.parse(text) as Written
      if (entry.atMs < oldest) old.push(id)
      else if (entry.atMs >= (all.get(id)?.atMs ?? 0)) all.set(id, entry)
    }
    await forget(old)
    return all
  }

  async function forget(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    for (const id of ids) own.delete(`${account()} ${id}`)
    await redis?.hdel(writesKey(), ...ids).catch(() => undefined)
  }

  return {
    made: (address) => note(address.id, { made: address }),
    tagged: (id, tags) => note(id, { tags }),
    moved: (id, target) => note(id, { target: target ?? 0 }),
    gone: (id) => note(id, { gone: true }),
    async applyTo(list) {
      const writes = await known()
      if (writes.size === 0) return list
      const listed = new Map(list.map((address) => [String(address.id), address]))
      // What a list has shown is its own from then on: whoever deletes or changes it after that is believed at once.
      await forget([...writes].flatMap(([id, written]) => (isShown(listed.get(id), written) ? [id] : [])))
      const unlisted = [...writes].flatMap(([id, { made }]) => (made && !listed.has(id) ? [made] : []))
      return [...list, ...unlisted].flatMap((address) => {
        const written = writes.get(address.id)
        return written ? (written.gone ? [] : [changed(address, written)]) : [address]
      })
    },
    async asked(tags) {
      ownDoubts.set(askedKey(tags), Date.now() + DOUBT_MS)
      await redis?.set(askedKey(tags), '1', 'PX', DOUBT_MS).catch(() => undefined)
    },
    async answered(tags) {
      ownDoubts.delete(askedKey(tags))
      await redis?.del(askedKey(tags)).catch(() => undefined)
    },
    async doubtMs(tags) {
      const ownMs = (ownDoubts.get(askedKey(tags)) ?? 0) - Date.now()
      if (ownMs <= 0) ownDoubts.delete(askedKey(tags))
      return Math.max(ownMs, (await redis?.pttl(askedKey(tags)).catch(() => 0)) ?? 0, 0)
    },
  }
}

function isShown(listed: Address | undefined, { gone, tags, target }: Written): boolean {
  if (!listed || gone) return false
  return (
    (tags === undefined || isDeepStrictEqual(listed.tags, tags)) &&
    (target === undefined || (listed.target ?? 0) === target)
  )
}

function changed({ target: before, ...address }: Address, { tags, target = before }: Written): Address {
  return { ...address, ...(tags ? { tags } : {}), ...(target ? { target } : {}) }
}
