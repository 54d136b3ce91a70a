import type { Json } from '../../apiserver/admin.ts'

/** In an expectation, in place of a value: what else is accepted there. */
export type Marker =
  | { $ignore: true }
  /** One of these; null is absent. */
  | { $any: Json[] }
  /** A list of named things: those present must be as wanted (unless loose), those required must be present. */
  | { $subset: Json[]; required: string[]; loose?: string[] }

export function isMarker(value: Json): value is Marker {
  return Boolean(value) && typeof value === 'object' && ('$ignore' in value || '$any' in value || '$subset' in value)
}
