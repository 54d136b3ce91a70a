import { isObject, type Json, type JsonObject } from './json.ts'
import { Refusal } from './refusal.ts'

/** How lists below a type merge. A list that is not named here is atomic. */
export interface MergeSchema {
  [field: string]: { merge?: { key?: string }; fields?: MergeSchema }
}

const ORDER = '$setElementOrder/'
const DELETE_FROM = '$deleteFromPrimitiveList/'
const DIRECTIVE = '$patch'

/** Strategic merge patch, as the API server carries it out on built-in types. */
export function strategicMerge(original: JsonObject, patch: JsonObject, schema: MergeSchema): JsonObject {
  return mergeMap(structuredClone(original), structuredClone(patch), schema)
}

function mergeMap(original: JsonObject, patch: JsonObject, schema: MergeSchema): JsonObject {
  if (DIRECTIVE in patch) {
    const { [DIRECTIVE]: directive, ...rest } = patch
    if (directive === 'replace') return rest
    if (directive === 'delete') return {}
    throw unknownDirective(directive)
  }
  retainKeys(original, patch)
  mergeOrdered(original, patch, schema)
  for (const [name, value] of Object.entries(patch)) {
    const deletes = name.startsWith(DELETE_FROM)
    const key = deletes ? name.slice(DELETE_FROM.length) : name
    if (value === null) {
      delete original[key]
      continue
    }
    const present = original[key]
    const field = schema[key] ?? {}
    if (isObject(present) && isObject(value)) original[key] = mergeMap(present, value, field.fields ?? {})
    else if (Array.isArray(present) && Array.isArray(value))
      original[key] = deletes ? present.filter((item) => !value.includes(item)) : mergeList(present, value, field)
    else if (!deletes) {
      const plain = withoutDirectives(value)
      if (plain === undefined) delete original[key]
      else original[key] = plain
    }
  }
  return original
}

function retainKeys(original: JsonObject, patch: JsonObject): void {
  const retained = patch.$retainKeys
  if (!Array.isArray(retained)) return
  delete patch.$retainKeys
  for (const key of Object.keys(original)) if (!retained.includes(key)) delete original[key]
}

/** Lists for which the patch also says the order of elements. */
function mergeOrdered(original: JsonObject, patch: JsonObject, schema: MergeSchema): void {
  for (const name of Object.keys(patch)) {
    if (!name.startsWith(ORDER)) continue
    const order = patch[name]
    delete patch[name]
    const key = name.slice(ORDER.length)
    const present = original[key]
    const change = patch[key]
    if (!Array.isArray(order)) throw new Refusal(400, 'BadRequest', `${name} is not a list`)
    const field = schema[key] ?? {}
    const identify = identity(field.merge?.key)
    const wanted = order.map(identify)
    if (Array.isArray(change) && change.some((item) => !isDirective(item) && !wanted.includes(identify(item))))
      throw new Refusal(500, 'InternalError', `The order in patch list doesn't match ${name} list`)
    let merged: Json[]
    if (Array.isArray(present)) merged = Array.isArray(change) ? mergeList(present, change, field) : present
    else if (Array.isArray(change)) merged = (withoutDirectives(change) as Json[] | undefined) ?? []
    else continue
    delete patch[key]
    original[key] = arrange(merged, wanted, Array.isArray(present) ? present.map(identify) : [], identify)
  }
}

function mergeList(present: Json[], change: Json[], { merge, fields = {} }: MergeSchema[string]): Json[] {
  if (!merge) return change
  if (present.length === 0 && change.length === 0) return present
  const { key } = merge
  const identify = identity(key)
  if (key === undefined) {
    const merged = [...new Set([...present, ...change])]
    return arrange(merged, change.map(identify), present.map(identify), identify)
  }
  let base = present
  let additions: Json[] = []
  let replaces = false
  for (const item of change) {
    if (!isObject(item)) throw new Refusal(400, 'BadRequest', 'list element types are not identical')
    if (!(DIRECTIVE in item)) additions.push(item)
    else if (item[DIRECTIVE] === 'replace') replaces = true
    else if (item[DIRECTIVE] === 'delete') base = base.filter((one) => identify(one) !== identify(item))
    else throw unknownDirective(item[DIRECTIVE])
  }
  if (replaces) {
    base = additions
    additions = []
  }
  const serverOrder = base.map(identify)
  const merged = [...base]
  for (const item of additions) {
    // Also finds what this very patch added before: two elements of one key become one.
    const at = merged.findIndex((one) => identify(one) === identify(item))
    const found = merged[at]
    if (isObject(found) && isObject(item)) merged[at] = mergeMap(found, item, fields)
    else merged.push(item)
  }
  return arrange(merged, additions.map(identify), serverOrder, identify)
}

/**
 * What the patch names comes in its order, what only the server has in the server's, and the two are interleaved by where the server
 * had them. Elements that share a key count as one place, so that they end up next to each other.
 */
function arrange(merged: Json[], patchOrder: Json[], serverOrder: Json[], identify: (item: Json) => Json): Json[] {
  const place = (order: Json[]) => (a: Json, b: Json) => order.indexOf(identify(a)) - order.indexOf(identify(b))
  const named = merged.filter((item) => patchOrder.includes(identify(item))).sort(place(patchOrder))
  const own = merged.filter((item) => !patchOrder.includes(identify(item))).sort(place(serverOrder))
  const result: Json[] = []
  while (named.length > 0 || own.length > 0) {
    const [left, right] = [own[0], named[0]]
    if (left === undefined || right === undefined) return [...result, ...own, ...named]
    const [l, r] = [serverOrder.indexOf(identify(left)), serverOrder.indexOf(identify(right))]
    result.push((l >= 0 && r >= 0 && l < r ? own.shift() : named.shift()) as Json)
  }
  return result
}

function identity(key: string | undefined): (item: Json) => Json {
  return (item) => {
    if (key === undefined) return item
    const value = isObject(item) ? item[key] : undefined
    if (value === undefined)
      throw new Refusal(400, 'BadRequest', `map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`)
    return value
  }
}

function isDirective(item: Json): boolean {
  return isObject(item) && DIRECTIVE in item
}

function withoutDirectives(value: Json): Json | undefined {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined)
  if (!isObject(value)) return value
  if (DIRECTIVE in value) return undefined
  const plain: JsonObject = {}
  for (const [key, item] of Object.entries(value)) {
    const kept = item === null || key.startsWith(ORDER) ? undefined : withoutDirectives(item)
    if (kept !== undefined) plain[key] = kept
  }
  return plain
}

function unknownDirective(directive: Json | undefined): Refusal {
  return new Refusal(500, 'InternalError', `unknown patch type: ${JSON.stringify(directive)}`)
}
