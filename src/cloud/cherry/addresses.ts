import type { Call } from '../../call.ts'
import { createCoalescedRead } from '../shared-read.ts'
import type { CherryClient } from './client.ts'
import type { Address, AddressId } from './model.ts'

/** The addresses of the project. What is made or given back depends on them, so that no read serves whose beginning was too early. */
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
  /** Replaces the tags. False when the address is gone. */
  tag(id: AddressId, tags: Record<string, string>, call: Call): Promise<boolean>
  /** Also one that is assigned to a server. One that is gone already is fine. */
  release(address: Address, call: Call): Promise<void>
}

const RECENT_MS = 10_000

export function createAddresses(client: CherryClient): Addresses {
  let last: { beganMs: number; list: Promise<readonly Address[]> } | undefined
  let known: { account: string; beganMs: number; list: readonly Address[] } | undefined
  /** A list that began before the end of a write may not show it. */
  let writes: { id: AddressId; endedMs: number }[] = []

  const now = createCoalescedRead<readonly Address[]>(
    async (call, begun) => {
      const account = client.account()
      let beganMs: number | undefined
      const reading = client.addresses.list(call, () => {
        begun()
        // Further pages are of the same read.
        if (beganMs !== undefined) return
        beganMs = performance.now()
        last = { beganMs, list: reading }
      })
      const list = await reading
      if (beganMs !== undefined) learn({ account, beganMs, list })
      return list
    },
    { saysBegun: true },
  )

  function learn(read: NonNullable<typeof known>): void {
    known = read
    writes = writes.filter(({ endedMs }) => endedMs >= read.beganMs)
  }

  async function writing<T>(id: AddressId, write: () => Promise<T>): Promise<T> {
    const entry = { id, endedMs: Number.POSITIVE_INFINITY }
    writes.push(entry)
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
      return known.list.filter((one) => !writes.some(({ id }) => id === one.id))
    },
    tag: (id, tags, call) => writing(id, () => client.addresses.tag(id, tags, call)),
    release: ({ id, target }, call) =>
      writing(id, async () => {
        // An address that is assigned to a server can't be released.
        if (target !== undefined) await client.addresses.unassign(id, call)
        await client.addresses.release(id, call)
      }),
  }
}
