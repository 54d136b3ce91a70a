import type { Call } from '../../../call.ts'
import { nearest } from '../../../config/nearest.ts'
import type { HcloudClient } from '../client.ts'
import type { Location } from '../model.ts'
import type { Desired } from './desire.ts'

/** Where load balancers can be. */
export interface Places {
  /** Of the place of one that has to be made; `from` says where it was written. */
  faults(placement: Desired['placement'], from: PlacedBy, call: Call): Promise<string[]>
}

export interface PlacedBy {
  location: string
  networkZone: string
}

/** Asked once: for who plans only. Who makes a load balancer hears of a wrong place from the API. */
export function createPlaces(client: HcloudClient): Places {
  let known: Promise<Location[]> | undefined
  return {
    async faults(placement, from, call) {
      known ??= client.locations.list(call)
      return placeFaults(placement, from, await known)
    },
  }
}

/** Pure. */
export function placeFaults(
  { location, networkZone }: Desired['placement'],
  from: PlacedBy,
  known: readonly Location[],
): string[] {
  if (location !== undefined) {
    if (known.some(({ id, name }) => name === location || String(id) === location)) return []
    return [notFound('location', location, from.location, new Set(known.map(({ name }) => name)))]
  }
  const zones = new Set(known.map((one) => one.networkZone))
  if (networkZone === undefined || zones.has(networkZone)) return []
  return [notFound('network zone', networkZone, from.networkZone, zones)]
}

function notFound(what: string, name: string, from: string, known: ReadonlySet<string>): string {
  const hint = nearest(name, [...known])
  const rest = hint === undefined ? `they are ${[...known].join(', ')}` : `the nearest is ${hint}`
  return `${what} not found: ${name}; correct ${from}, ${rest}`
}
