import { isObject, type Json, type JsonObject } from './json.ts'

/** JSON merge patch (RFC 7386): null takes away, lists are replaced. */
export function mergePatch(original: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch
  const merged: JsonObject = isObject(original) ? { ...original } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key]
    else merged[key] = mergePatch(merged[key], value)
  }
  return merged
}
