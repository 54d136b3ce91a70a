import type { Call } from '../../call.ts'
import { createCoalescedRead } from '../shared-read.ts'
import type { CherryClient } from './client.ts'
import type { Address } from './model.ts'

/** The addresses of the project, always as they are now: what is made or given back depends on them. Who asks at one time shares a read. */
export type Addresses = (call: Call) => Promise<readonly Address[]>

export function createAddresses(client: CherryClient): Addresses {
  return createCoalescedRead<readonly Address[]>(client.addresses.list)
}
