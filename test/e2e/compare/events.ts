import type { Deviation, OptionalEvent, RecordedEvent } from '../case.ts'

/** The recorded Events with those of the deviations taken away and added. */
export function wantedEvents(recorded: RecordedEvent[] = [], deviations: Deviation[]): RecordedEvent[] {
  const wanted = new Map(recorded.map((event) => [JSON.stringify(event), event]))
  for (const { events } of deviations) {
    for (const event of events?.remove ?? []) wanted.delete(JSON.stringify(event))
    for (const event of events?.add ?? []) wanted.set(JSON.stringify(event), event)
  }
  return [...wanted.values()]
}

/**
 * The Events that count: what the framework and the replaced controllers emit is compared, but a controller may say
 * more, as long as it accuses nobody, and may leave out a step on the way to an outcome (it is then taken from `wanted`).
 */
export function countedEvents(wanted: RecordedEvent[], got: RecordedEvent[]): RecordedEvent[] {
  const kept = got.filter((event) => {
    if (has(wanted, event.object, event.reason)) return true
    if (failures.has(event.reason) || outcomes.has(event.reason) || accusations.has(event.reason)) return true
    const outcome = outcomeOf[event.reason]
    return outcome !== undefined && !has(wanted, event.object, outcome)
  })
  const left = wanted.filter((event) => outcomeOf[event.reason] && !has(got, event.object, event.reason))
  return [...kept, ...left]
}

/** In a form in which a missing and an unexpected Event each are one difference. */
export function eventSet(events: RecordedEvent[], optional: OptionalEvent[]): Record<string, true> {
  const may = (event: RecordedEvent) =>
    optional.some((one) =>
      typeof one === 'string' ? one === event.reason : one.object === event.object && one.reason === event.reason,
    )
  return Object.fromEntries(
    events.filter((event) => !may(event)).map((event) => [`${event.object} ${event.type} ${event.reason}`, true]),
  )
}

/** Steps on the way, and where they lead. */
const outcomeOf: Readonly<Record<string, string>> = {
  EnsuringLoadBalancer: 'EnsuredLoadBalancer',
  UpdatedLoadBalancer: 'EnsuredLoadBalancer',
  DeletingLoadBalancer: 'DeletedLoadBalancer',
}

const failures = new Set([
  'SyncLoadBalancerFailed',
  'UpdateLoadBalancerFailed',
  'DeleteLoadBalancerFailed',
  'DeletingNodeFailed',
  'FailedToCreateRoute',
])

const outcomes = new Set(['EnsuredLoadBalancer', 'DeletedLoadBalancer', 'Synced', 'DeletingNode'])

/** Our own, and a false alarm where the case has nobody else who writes. */
const accusations = new Set(['StatusDisputed', 'AddressesDisputed'])

function has(list: RecordedEvent[], object: string, reason: string): boolean {
  return list.some((event) => event.object === object && event.reason === reason)
}
