import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Fault } from './fault.ts'
import { codeOf } from './files.ts'
import { fileEnvOf, type Group, type Setting } from './setting.ts'

/** A text that somebody wrote for a setting. */
export interface Given {
  /** How they know the place where it stands. */
  name: string
  text: string
}

/** All that one place says about a setting: a value, and for a secret also the path of a file. */
export interface Candidates {
  plain?: Given
  file?: Given
}

/** A place where settings stand. Sources are asked in the order of precedence. */
export type Source = (key: string, setting: Setting) => Candidates

export type Env = Readonly<Record<string, string | undefined>>

export const flagSource =
  (flags: ReadonlyMap<string, string>): Source =>
  (_key, { kind, flag = '' }) => {
    const text = flags.get(flag)
    if (text === undefined) return {}
    const given = { name: `--${flag}`, text }
    return kind === 'secret' && flag.endsWith('-file') ? { file: given } : { plain: given }
  }

export const envSource =
  (env: Env): Source =>
  (_key, setting) => ({
    plain: [setting.env, ...(setting.formerEnvs ?? [])]
      .map((name) => fromEnv(env, name))
      .find((given) => given !== undefined),
    file: fromEnv(env, fileEnvOf(setting)),
  })

/** Files in a directory that are called as the variables of a group's secrets. An empty one is what a template leaves of what nobody set. */
export const directorySource =
  (dir: string, group: Group): Source =>
  (key, setting) => {
    const { kind, env } = setting
    if (kind !== 'secret' || env === undefined || group[key] !== setting) return {}
    const path = join(dir, env)
    return isEmpty(path) ? {} : { file: { name: `${env} in ${dir}`, text: path } }
  }

function isEmpty(path: string): boolean {
  try {
    return statSync(path).size === 0
  } catch (error) {
    return codeOf(error) === 'ENOENT'
  }
}

/** A parsed mapping whose keys are those of a group, in `camelCase`, or the names of their variables or flags. */
export function blockSource(block: Readonly<Record<string, unknown>>, group: Group, place: Place): Sourced {
  const known = namesOf(group)
  const found = new Map<string, Candidates>()
  const faults: Fault[] = []
  for (const [name, value] of Object.entries(block)) {
    const target = known.get(plainName(name))
    const given = { name: place(name), text: '' }
    if (target === undefined) {
      faults.push({ name: given.name, message: 'is no setting' })
      continue
    }
    const text = textOf(value, group[target.key]?.separator)
    if (text === undefined) faults.push({ name: given.name, message: 'is neither text, number nor a list of such' })
    if (text === undefined || text === null) continue
    const slot = target.isFile ? 'file' : 'plain'
    const before = found.get(target.key)?.[slot]
    if (before !== undefined) {
      faults.push({ name: given.name, message: `is the same setting as ${before.name}, keep one of them` })
      continue
    }
    found.set(target.key, { ...found.get(target.key), [slot]: { ...given, text } })
  }
  return { source: (key, setting) => (group[key] === setting ? (found.get(key) ?? {}) : {}), faults }
}

/** A Cherry cloud configuration: keys in any case of letters, the last of equal ones counts, unknown ones are told apart. Null is nothing. */
export function jsonSource(
  object: Readonly<Record<string, unknown>>,
  group: Group,
  place: Place,
): Sourced & { unknown: string[] } {
  const known = new Map(
    Object.values(group).flatMap((row) => (row.jsonKey === undefined ? [] : [[row.jsonKey.toLowerCase(), row]])),
  )
  const found = new Map<Setting, Given>()
  const faults: Fault[] = []
  const unknown: string[] = []
  for (const [name, value] of Object.entries(object)) {
    const setting = known.get(name.toLowerCase())
    if (setting === undefined) unknown.push(name)
    else if (value === null) continue
    else if (typeof value === (setting.jsonType ?? 'string'))
      found.set(setting, { name: place(name), text: String(value) })
    else faults.push({ name: place(name), message: WRITTEN[setting.jsonType ?? 'string'] })
  }
  return { source: (_key, setting) => ({ plain: found.get(setting) }), faults, unknown }
}

/** The replaced controller refused what is written otherwise. */
const WRITTEN = {
  string: 'is not text, put it in quotes',
  number: 'is not a number, write it without quotes',
  boolean: 'is neither true nor false, write one of them without quotes',
} as const

export interface Sourced {
  source: Source
  faults: Fault[]
}

/** How people find a key in a file. */
type Place = (key: string) => string

/** Keys of a block as they may be written, without regard to case, dashes and underscores. */
export function namesOf(group: Group): Map<string, { key: string; isFile: boolean }> {
  const names = new Map<string, { key: string; isFile: boolean }>()
  for (const [key, setting] of Object.entries(group)) {
    const forms = [key, setting.env, setting.flag, setting.jsonKey].filter((form) => form !== undefined)
    for (const form of forms) {
      if (setting.kind === 'secret') names.set(plainName(`${form.replace(/-file$/, '')}_FILE`), { key, isFile: true })
      if (!(setting.kind === 'secret' && form.endsWith('-file'))) names.set(plainName(form), { key, isFile: false })
    }
  }
  return names
}

export const plainName = (name: string) => name.toLowerCase().replace(/[-_]/g, '')

function fromEnv(env: Env, name: string | undefined): Given | undefined {
  const text = name === undefined ? undefined : env[name]
  return name === undefined || text === undefined ? undefined : { name, text }
}

/** `null` for nothing, `undefined` for what no setting can be. */
function textOf(value: unknown, separator = ','): string | null | undefined {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (!Array.isArray(value)) return undefined
  const items = value.map((item: unknown) => (Array.isArray(item) ? undefined : textOf(item)))
  return items.every((item) => typeof item === 'string') ? items.join(separator) : undefined
}
