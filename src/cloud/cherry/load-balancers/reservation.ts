import type { Address } from '../model.ts'
import { uidOf } from './tags.ts'

export interface ReservationFacts {
  uid: string
  /** All with the tags of the Service's name. */
  reservations: readonly Address[]
  /** Addresses by which the Service is known already, the one in use first: status, our note, our annotation. */
  known: readonly string[]
  /** In the status: that it lives needs no proof. */
  published: readonly string[]
  /** The user brings an address along. */
  wished: boolean
}

export interface ReservationDecision {
  /** The one to serve the Service. */
  keep?: Address
  /**
   * It has to be tagged with the Service's uid first. That is also the proof that it lives: one that was just given back stays listed for
   * some seconds, tags included.
   */
  claim: boolean
  /** Ours, and of no more use. */
  superseded: Address[]
  /** Of the replaced controller, and left alone because the user now brings another address along. */
  leftAlone: Address[]
}

/**
 * Which of several addresses with the Service's tags is its own. There should be one; a lost answer, or a Service that was made again under
 * its name, can leave more. All workers come to the same choice.
 */
export function decideReservation(facts: ReservationFacts): ReservationDecision {
  const { uid, reservations, known, published, wished } = facts
  if (wished) {
    const ours = reservations.filter((one) => uidOf(one) !== undefined)
    return { claim: false, superseded: ours, leftAlone: reservations.filter((one) => !ours.includes(one)) }
  }
  const rank = (one: Address) => {
    const place = known.indexOf(one.address)
    // Of this life, of none in particular, of a former life under the same name.
    const life = uidOf(one) === uid ? 0 : uidOf(one) === undefined ? 1 : 2
    return [life === 2 ? 1 : 0, place === -1 ? known.length : place, life] as const
  }
  const [keep, ...others] = [...reservations].sort((a, b) => {
    const [ra, rb] = [rank(a), rank(b)]
    return ra[0] - rb[0] || ra[1] - rb[1] || ra[2] - rb[2] || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  })
  if (!keep) return { claim: false, superseded: [], leftAlone: [] }
  const claim = uidOf(keep) !== uid || !published.includes(keep.address)
  return { keep, claim, superseded: others, leftAlone: [] }
}

/** What goes with a Service that goes: all that is tagged as this one's, and not what its successor of the same name has by now. */
export function reservationsToRelease(uid: string, reservations: readonly Address[]): Address[] {
  return reservations.filter((one) => uidOf(one) === undefined || uidOf(one) === uid)
}
