import type { Call } from '../../../call.ts'
import type { ServiceProjection } from '../../../events/projection.ts'
import type { Addresses } from '../addresses.ts'
import type { Address } from '../model.ts'
import { type AddressAnnotations, readNote, type Wish, wishOf } from './own-address.ts'
import { decideReservation, type ReservationDecision } from './reservation.ts'
import { isTagged, type Owner, reservationsOf, tagsOf } from './tags.ts'

export type Judgement = ReservationDecision & { wish: Wish | undefined }

/** Finds out which address is a Service's. */
export function createJudge(addresses: Addresses, keys: AddressAnnotations) {
  function judgeBy(list: readonly Address[], service: ServiceProjection, owner: Owner): Judgement {
    const tagged = reservationsOf(owner, list)
    const reservations = tagged.length > 0 ? tagged : strippedOf(service, list)
    const wish = wishOf(
      service,
      keys,
      reservations.map(({ address }) => address),
    )
    const published = service.ingress.flatMap(({ ip }) => (ip ? [ip] : []))
    const decision = decideReservation({
      uid: service.uid,
      reservations,
      known: knownAddresses(service, keys, published),
      published,
      wished: wish !== undefined,
    })
    return { wish, ...decision }
  }

  /**
   * What a Service publishes was not given back by us, since its status turns away first. If there is no doubt that this is its address, as
   * when only the nodes changed, a recent list will do. Whatever has to be done is told from a list that begins now.
   */
  return async (service: ServiceProjection, owner: Owner, call: Call): Promise<Judgement> => {
    const recent = (await addresses.doubtMs(tagsOf(owner))) > 0 ? undefined : addresses.recent()
    const judged = recent && judgeBy(recent, service, owner)
    const sure = judged?.keep && !judged.claim && judged.superseded.length + judged.leftAlone.length === 0
    return sure ? judged : judgeBy(await addresses.now(call), service, owner)
  }
}

/** The address that we wrote down for this very Service, where its tags are gone: better tagged anew than another one in its place. */
export function strippedOf(
  { uid, annotations }: Pick<ServiceProjection, 'uid' | 'annotations'>,
  list: readonly Address[],
): Address[] {
  const note = readNote(annotations)
  if (note?.uid !== uid) return []
  return list.filter((one) => one.address === note.address && !isTagged(one))
}

/** By what the Service is known already; the first is the one in use. */
function knownAddresses(service: ServiceProjection, keys: AddressAnnotations, published: readonly string[]): string[] {
  const { annotations, loadBalancerIp } = service
  const note = readNote(annotations)
  const said = [note?.address, ...keys.read.map((key) => annotations[key]), loadBalancerIp]
  return [...published, ...said.filter((one) => one !== undefined)]
}
