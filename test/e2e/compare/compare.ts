import type { Json } from '../../apiserver/admin.ts'
import type { Case, Deviation, RecordedEvent, Result } from '../case.ts'
import { deviate, variants } from './deviate.ts'
import { differences } from './difference.ts'
import { countedEvents, eventSet, wantedEvents } from './events.ts'
import { isMarker } from './marker.ts'

/** Where the result is not what the case expects once its deviations are applied; of several accepted results, the nearest. */
export function compare(definition: Case, result: Result): string[] {
  const got = withoutOwnNotes(result)
  const tried = variants(definition.deviates)
    .map((deviations) => compareWith(definition, deviations, got))
    .sort((a, b) => a.length - b.length)
  const nearest = tried[0] ?? []
  return nearest.length > 0 && tried.length > 1
    ? [`(nearest of ${tried.length} accepted results)`, ...nearest]
    : nearest
}

const compared = ['controller', 'objects', 'account', 'checkpoints'] as const

function compareWith(definition: Case, deviations: Deviation[], got: Result): string[] {
  const want = deviate(definition.expect ?? {}, deviations)
  const wanted = wantedEvents(want.events, deviations)
  const optional = [
    ...(definition.optional_events ?? []),
    ...deviations.flatMap((deviation) => deviation.events?.optional ?? []),
  ]
  const side = (from: Result, events: RecordedEvent[]): Json => {
    const blocks: Json = Object.fromEntries(compared.map((block) => [block, from[block]]))
    blocks.events = eventSet(events, optional)
    blocks.controller = withoutExitCode(blocks.controller)
    for (const block of definition.ignore ?? []) delete blocks[block]
    return dropEmpty(blocks)
  }
  return differences(side(want, wanted), side(got, countedEvents(wanted, got.events ?? [])))
}

/** Any non-zero exit code is the same refusal. */
function withoutExitCode(controller: Json): Json {
  if (controller?.exit === undefined) return controller
  return { exit: controller.exit === 0 ? 0 : 'non-zero' }
}

/** Like `tidy`, but for an expectation, whose markers stay as they are. */
function dropEmpty(value: Json): Json {
  if (Array.isArray(value)) return value.map(dropEmpty)
  if (!value || typeof value !== 'object' || isMarker(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, dropEmpty(inner)] as const)
      .filter(([, x]) => x !== undefined && x !== null && (typeof x !== 'object' || Object.keys(x).length > 0)),
  )
}

const ownKey = /windlass/i

/** A controller's own notes are its own: annotations, labels and tags with its name in the key. */
function withoutOwnNotes(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutOwnNotes)
  if (!value || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries<Json>(value).map(([key, inner]) => {
      const notes = ['labels', 'annotations', 'tags'].includes(key) && inner && typeof inner === 'object'
      if (!notes) return [key, withoutOwnNotes(inner)]
      return [key, Object.fromEntries(Object.entries(inner).filter(([name]) => !ownKey.test(name)))]
    }),
  )
}
