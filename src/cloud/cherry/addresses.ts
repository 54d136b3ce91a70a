import type { Call } from '../../call.ts'
import { createCoalescedRead } from '../shared-read.ts'
import type { CherryClient } from './client.ts'
import type { Address } from './model.ts'

/** The addresses of the project. What is made or given back depends on them, so that no read serves whose beginning was too early. */
export interface Addresses {
  /** As they are now. Who asks at one time shares a read. */
  now(call: Call): Promise<readonly Address[]>
  /** By a read that began no earlier than this (monotonic milliseconds), be it over. */
  since(beganMs: number, call: Call): Promise<readonly Address[]>
}

export function createAddresses(client: CherryClient): Addresses {
  let last: { beganMs: number; list: Promise<readonly Address[]> } | undefined
  const now = createCoalescedRead<readonly Address[]>(
    (call, begun) => {
      const list = client.addresses.list(call, () => {
        begun()
        last = { beganMs: performance.now(), list }
      })
      return list
    },
    { saysBegun: true },
  )
  return {
    now,
    async since(beganMs, call) {
      const known = last && last.beganMs >= beganMs ? last.list.catch(() => undefined) : undefined
      return (await known) ?? (await now(call))
    },
  }
}
