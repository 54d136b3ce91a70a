import { isObject, type Json, sameJson } from './json.ts'
import { badRequest, unprocessablePatch } from './refusal.ts'

interface Operation {
  op: string
  path: string
  from?: string
  value?: Json
}

/** JSON patch (RFC 6902). Any operation that can't be carried out, a failed `test` too, refuses the whole with 422. */
export function jsonPatch(original: Json, patch: Json): Json {
  if (!Array.isArray(patch)) throw badRequest('json: cannot unmarshal object into Go value of type jsonpatch.Patch')
  let root = structuredClone(original)
  for (const operation of patch as unknown as Operation[]) root = applyOperation(root, operation)
  return root
}

function applyOperation(root: Json, { op, path, from, value }: Operation): Json {
  switch (op) {
    case 'test':
      if (!sameJson(read(root, path), value ?? null)) throw unprocessablePatch()
      return root
    case 'remove':
      return change(root, path, (parent, key) => take(parent, key))
    case 'add':
      return change(root, path, (parent, key) => put(parent, key, value ?? null))
    case 'replace':
      return change(root, path, (parent, key) => {
        take(parent, key)
        put(parent, key, value ?? null)
      })
    case 'copy':
    case 'move': {
      const moved = structuredClone(read(root, from ?? ''))
      const rest = op === 'move' ? applyOperation(root, { op: 'remove', path: from ?? '' }) : root
      return applyOperation(rest, { op: 'add', path, value: moved })
    }
    default:
      throw unprocessablePatch()
  }
}

function keysOf(path: string): string[] {
  if (!path.startsWith('/')) throw unprocessablePatch()
  return path
    .slice(1)
    .split('/')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function read(root: Json, path: string): Json {
  return keysOf(path).reduce((value: Json, key) => step(value, key), root)
}

function step(value: Json, key: string): Json {
  const next = Array.isArray(value) ? value[Number(key)] : isObject(value) ? value[key] : undefined
  if (next === undefined) throw unprocessablePatch()
  return next
}

function change(root: Json, path: string, act: (parent: Json, key: string) => void): Json {
  const keys = keysOf(path)
  const last = keys.pop() ?? ''
  act(
    keys.reduce((value: Json, key) => step(value, key), root),
    last,
  )
  return root
}

function take(parent: Json, key: string): void {
  step(parent, key)
  if (Array.isArray(parent)) parent.splice(Number(key), 1)
  else if (isObject(parent)) delete parent[key]
}

function put(parent: Json, key: string, value: Json): void {
  if (Array.isArray(parent)) {
    const index = key === '-' ? parent.length : Number(key)
    if (!(index >= 0 && index <= parent.length)) throw unprocessablePatch()
    parent.splice(index, 0, value)
  } else if (isObject(parent)) parent[key] = value
  else throw unprocessablePatch()
}
