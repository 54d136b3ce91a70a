import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parse } from 'yaml'
import type { Json, PatchType } from '../apiserver/admin.ts'

/** Seconds. `quiet`: so long nothing may change; `max`: given up after; `first`: wait so long for a first request. */
export interface Settle {
  quiet?: number
  max?: number
  first?: number
  /** A world that never rests is no failure. */
  mayTimeout?: boolean
  /** In place of these for a controller that is not the one that was recorded; so always, here. */
  product?: Settle
}

/** What must come true. Several conditions must hold at once. Seconds, as in `Settle`. */
export interface Until {
  /** So many calls, by method and path. */
  calls?: Record<string, number>
  /** So many requests to the cloud since the controller started. */
  requests?: number
  /** The controller ended by itself. */
  exit?: boolean
  /** `Kind/name` or `Kind/namespace/name`. */
  object?: string
  /** Dotted, into the object. */
  path?: string
  equals?: unknown
  absent?: boolean
  gone?: boolean
  /** Reason of any Event. */
  event?: string
  max?: number
  /** Only a controller with other delays than the recorded one needs this wait; a controller that ended is past it. */
  product?: boolean
  mayTimeout?: boolean
}

export interface ObjectName {
  kind: string
  namespace?: string
  name: string
}

/** One key, which says what to do; `checkpoint`, `restart` and `start` may carry a `settle` beside it. */
export interface Step {
  apply?: Json
  create?: Json
  patch?: ObjectName & { type?: PatchType; subresource?: string; body: unknown }
  delete?: ObjectName & { mayBeGone?: boolean }
  account?: Json
  fault?: Json
  settle?: Settle | null
  until?: Until
  sleep?: number
  checkpoint?: string
  restart?: string
  kill?: string
  stop?: string
  start?: string
}

export interface Change {
  at: (string | number)[]
  value?: unknown
  absent?: boolean
  ignore?: boolean
  any?: unknown[]
  subset?: boolean
  required?: string[]
  loose?: string[]
}

export interface RecordedEvent {
  object: string
  type: string
  reason: string
}

export interface EventChanges {
  add?: RecordedEvent[]
  remove?: RecordedEvent[]
  optional?: OptionalEvent[]
}

/** A reason, or a reason at one object. */
export type OptionalEvent = string | { object: string; reason: string }

/** Where the recorded controller was wrong, and what is right. Either a change of its own (`at`) or `changes`. */
export interface Deviation extends Partial<Change> {
  why?: string
  changes?: Change[]
  events?: EventChanges
  /** One of these must fit as a whole. */
  either?: Deviation[]
}

/** What the world looks like, in the normal form. */
export interface World {
  objects?: Json
  account?: Json
}

export interface Result extends World {
  controller?: { running?: true; exit?: number | string }
  events?: RecordedEvent[]
  checkpoints?: Record<string, World>
}

export interface Case {
  id: string
  cloud: string
  about: string
  source?: string
  env?: Record<string, string | number | boolean | null>
  settings?: Record<string, string | number | boolean>
  controllers?: string[]
  sim?: Json
  account?: Json
  objects?: Json[]
  settle?: Settle
  first_settle?: Settle
  start?: boolean
  steps?: Step[]
  optional_events?: OptionalEvent[]
  ignore?: string[]
  never_settles?: boolean
  deviates?: Deviation[]
  expect?: Result
  /** Of Cherry's cases; see `clouds/cherry.ts`. */
  cloud_config?: unknown
  metallb?: boolean | 'later'
  metallb_namespaces?: string[]
  external?: boolean
}

/** Reads a case; its id has to be the file's name. */
export function loadCase(file: string): Case {
  const loaded: Case = parse(readFileSync(file, 'utf8'), { merge: true, maxAliasCount: -1 })
  const name = basename(file).replace(/\.ya?ml$/, '')
  if (loaded.id !== name) throw new Error(`${file}: its id is ${loaded.id}, not ${name} as the file`)
  if (!loaded.expect) throw new Error(`${file}: it has no expect block`)
  return loaded
}

/** The case files that are meant by files and folders. */
export function caseFiles(paths: string[]): string[] {
  return paths.flatMap((path) => {
    if (!statSync(path).isDirectory()) return [resolve(path)]
    const inside = readdirSync(path, { withFileTypes: true }).filter((x) => x.isDirectory() || /\.ya?ml$/.test(x.name))
    return caseFiles(inside.map((x) => join(path, x.name)).sort())
  })
}
