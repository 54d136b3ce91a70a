import { validateBatch } from '../../events/schema.ts'
import type { Fault, WindlassEvent } from '../../events/types.ts'

/** The events in a body whose signature is good, or what is wrong with it. */
export function parseBatch(
  body: Buffer,
  cluster: string,
): { events: WindlassEvent[]; faults?: undefined } | { faults: Fault[]; events?: undefined } {
  let json: unknown
  try {
    json = JSON.parse(body.toString('utf8'))
  } catch {
    return { faults: [{ path: '$', message: 'must be JSON' }] }
  }
  return validateBatch(json, cluster)
}
