import type { Call } from '../../call.ts'
import { kindOf, WindlassError } from '../../errors.ts'
import { createCoalescedRead } from '../shared-read.ts'
import type { AddressWrites } from './address-writes.ts'
import { type CherryClient, GATHER_MS } from './client.ts'
import type { Address, AddressId, ServerId } from './model.ts'

/**
 * The addresses of the project. What is made or given back depends on them, so that no read serves whose beginning was too early, and what
 * was written of late counts before a list that does not show it yet.
 */
export interface Addresses {
  /** As they are now. Who asks at one time shares a read. */
  now(call: Call): Promise<readonly Address[]>
  /** By a read that began no earlier than this (monotonic milliseconds), be it over. */
  since(beganMs: number, call: Call): Promise<readonly Address[]>
  /**
   * Without asking: a list of the last seconds, less what we have written since. That nothing has to be done may be told from it; that an
   * address is missing may not.
   */
  recent(): readonly Address[] | undefined
  /** One whose answer is lost is looked for by its tags; `other` has them too and is not meant. */
  reserve(region: string, tags: Record<string, string>, call: Call, other?: AddressId): Promise<Address>
  /** So long yet an address with these tags may turn up that no list shows, since an answer was lost; 0 for no such doubt. */
  doubtMs(tags: Record<string, string>): Promise<number>
  /** Replaces the tags. False when the address is gone. */
  tag(id: AddressId, tags: Record<string, string>, call: Call): Promise<boolean>
  /** Also one that is assigned to a server. One that is gone already is fine. */
  release(address: Address, call: Call): Promise<void>
  /** False when address or server is gone. */
  assign(id: AddressId, server: ServerId, call: Call): Promise<boolean>
}

/** Long enough for the runs of a burst to share a look, and no longer: what somebody else deletes meanwhile is not seen. */
const RECENT_MS = 2000

export function createAddresses(client: CherryClient, written: AddressWrites): Addresses {
  let last: { beganMs: number; list: Promise<readonly Address[]> } | undefined
  let known: { account: string; beganMs: number; list: readonly Address[] } | undefined
  /** A list that began before the end of a write may not show it. */
  let underWay: { id: AddressId; endedMs: number }[] = []

  const now = createCoalescedRead<readonly Address[]>(
    async (call, begun) => {
      const account = client.account()
      let beganMs: number | undefined
      const reading = client.addresses
        .list(call, () => {
          begun()
          // Further pages are of the same read.
          if (beganMs !== undefined) return
          beganMs = performance.now()
          last = { beganMs, list: reading }
        })
        .then((list) => written.applyTo(list))
      const list = await reading
      if (beganMs !== undefined) learn({ account, beganMs, list })
      return list
    },
    { saysBegun: true, gatherMs: GATHER_MS },
  )

  function learn(read: NonNullable<typeof known>): void {
    known = read
    underWay = underWay.filter(({ endedMs }) => endedMs >= read.beganMs)
  }

  async function writing<T>(id: AddressId, write: () => Promise<T>): Promise<T> {
    const entry = { id, endedMs: Number.POSITIVE_INFINITY }
    underWay.push(entry)
    try {
      return await write()
    } finally {
      entry.endedMs = performance.now()
    }
  }

  return {
    now,
    async since(beganMs, call) {
      const begun = last && last.beganMs >= beganMs ? last.list.catch(() => undefined) : undefined
      return (await begun) ?? (await now(call))
    },
    recent() {
      if (!known || known.account !== client.account()) return undefined
      if (known.beganMs < performance.now() - RECENT_MS) return undefined
      return known.list.filter((one) => !underWay.some(({ id }) => id === one.id))
    },
    doubtMs: written.doubtMs,
    async reserve(region, tags, call, other) {
      const doubted = (await written.doubtMs(tags)) > 0
      const settle = async () => {
        if (!doubted) await written.answered(tags)
      }
      await written.asked(tags)
      try {
        const made = { ...(await client.addresses.reserve(region, tags, call)), tags }
        await written.made(made)
        await settle()
        return made
      } catch (error) {
        if (isRefusal(error)) await settle()
        if (isRefusal(error) || kindOf(error) === 'aborted') throw error
        // The answer is lost, the address may be there.
        const list = await now(call).catch(() => [])
        const found = list.find((one) => one.id !== other && hasAll(one, tags))
        if (!found) throw error
        await settle()
        return found
      }
    },
    tag: (id, tags, call) =>
      writing(id, async () => {
        const there = await client.addresses.tag(id, tags, call)
        await (there ? written.tagged(id, tags) : written.gone(id))
        return there
      }),
    release: ({ id, target }, call) =>
      writing(id, async () => {
        // An address that is assigned to a server can't be released.
        if (target !== undefined) await client.addresses.unassign(id, call)
        try {
          await client.addresses.release(id, call)
        } catch (error) {
          // It may have been assigned since it was listed.
          if (target !== undefined || !(error instanceof WindlassError) || error.status !== 400) throw error
          await client.addresses.unassign(id, call)
          await client.addresses.release(id, call)
        }
        await written.gone(id)
      }),
    async assign(id, server, call) {
      const done = await client.addresses.assign(id, server, call)
      if (done) await written.moved(id, server)
      return done
    },
  }
}

/** The API has said no. A server's error, or that of one in between that waited no longer, may come after the deed. */
const isRefusal = (error: unknown) =>
  error instanceof WindlassError &&
  (error.kind === 'throttled' ||
    (error.status !== undefined && error.status >= 400 && error.status < 500 && !GIVEN_UP.has(error.status)))

/** Request timeout, and a client that went away, as some proxies put it. */
const GIVEN_UP: ReadonlySet<number> = new Set([408, 499])

const hasAll = (address: Address, tags: Record<string, string>) =>
  Object.entries(tags).every(([key, value]) => address.tags[key] === value)
