import { messageOf } from '../errors.ts'
import { type Fault, type Notice, quoted } from './fault.ts'
import { FileSecret, FixedSecret } from './secret.ts'
import {
  type Command,
  fileEnvOf,
  type Group,
  purposeOf,
  type SecretSetting,
  type Setting,
  type ValueSetting,
  type Values,
} from './setting.ts'
import type { Given, Source } from './source.ts'
import type { Secret } from './types.ts'

export interface Resolution {
  command: Command
  sources: readonly Source[]
  /** Where a missing setting would stand, if not in the environment. */
  place?: (key: string) => string
  /** A file that may have what is missing could not be read. */
  unread?: boolean
  faults: Fault[]
  notices: Notice[]
}

/** What counts of all that was written for a setting. */
export type Found = { kind: 'plain' | 'file' | 'empty'; given: Given } | { kind: 'none' }

/** The values of a group. All faults go to `faults`, and a setting that has one gets its default, so that the rest can be looked at too. */
export function resolve<G extends Group>(group: G, resolution: Resolution): Values<G> {
  const values: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries(group)) {
    const looked = setting.onlyWith === undefined || isSet(values[setting.onlyWith])
    const found: Found =
      looked && setting.commands.includes(resolution.command) ? find(key, setting, resolution) : { kind: 'none' }
    values[key] =
      setting.kind === 'secret'
        ? secretOf(key, setting, found, resolution)
        : textValueOf(key, setting, found, resolution)
  }
  return values as Values<G>
}

/** The first source that says something about a setting. */
export function find(
  key: string,
  setting: Setting,
  { sources, faults }: Pick<Resolution, 'sources' | 'faults'>,
): Found {
  for (const source of sources) {
    const { plain, file } = source(key, setting)
    const path = file?.text === '' ? undefined : file
    if (plain !== undefined && plain.text !== '') return { kind: 'plain', given: plain }
    if (plain !== undefined && path !== undefined) {
      addOnce(faults, {
        name: plain.name,
        message: `is empty and wins over ${path.name}, take one of them away`,
      })
      return { kind: 'file', given: path }
    }
    if (plain !== undefined && setting.emptyIsValue === true) return { kind: 'empty', given: plain }
    if (path !== undefined) return { kind: 'file', given: path }
  }
  return { kind: 'none' }
}

/** What to set when a setting is missing. */
export function missing(
  key: string,
  setting: Setting,
  { place, command }: Pick<Resolution, 'place' | 'command'>,
): Fault {
  const names =
    place === undefined
      ? [setting.env, fileEnvOf(setting), setting.flag === undefined ? undefined : `--${setting.flag}`]
      : [place(key), setting.kind === 'secret' ? place(`${key}File`) : undefined]
  const [name = key, ...others] = names.filter((candidate) => candidate !== undefined)
  const or = others.length === 0 ? '' : ` (or ${others.join(', ')})`
  return {
    name,
    message: `is missing${or}: ${command} needs it${purposeOf(setting)}. ${setting.doc.replaceAll('`', '')}`,
  }
}

function textValueOf(key: string, setting: ValueSetting, found: Found, resolution: Resolution): unknown {
  const { command, faults, notices } = resolution
  if (found.kind !== 'none') {
    const { name, text } = found.given
    const parsed = setting.parse(text)
    if (setting.formerEnvs?.includes(name) === true) notices.push({ name, message: `is now called ${setting.env}` })
    if ('value' in parsed) return parsed.value
    faults.push({ name, message: `${quoted(text)} ${parsed.fault}` })
  } else if (setting.required?.includes(command) === true && !resolution.unread) {
    faults.push(missing(key, setting, resolution))
  }
  return defaultOf(key, setting, command)
}

function defaultOf(key: string, setting: ValueSetting, command: Command): unknown {
  const text = setting.defaults?.[command] ?? setting.default
  if (text === undefined) return undefined
  const parsed = setting.parse(text)
  if ('fault' in parsed) throw new Error(`default of ${key} ${parsed.fault}`)
  return parsed.value
}

function secretOf(key: string, setting: SecretSetting, found: Found, resolution: Resolution): Secret | undefined {
  const { command, faults } = resolution
  if (found.kind === 'none' || found.kind === 'empty') {
    if (setting.required?.includes(command) !== true || resolution.unread) return undefined
    const fault = missing(key, setting, resolution)
    faults.push(
      found.kind === 'none'
        ? fault
        : { name: found.given.name, message: fault.message.replace(/^is missing/, 'is empty') },
    )
    return undefined
  }
  const { name, text } = found.given
  const checked = (content: string) => {
    const parsed = setting.parse(content)
    return 'fault' in parsed ? parsed : { value: content }
  }
  try {
    if (found.kind === 'file') return new FileSecret({ name, path: text, check: checked })
  } catch (error) {
    faults.push({ name, message: `${text.includes('/') ? quoted(text) : '(not shown)'} ${messageOf(error)}` })
    return undefined
  }
  const parsed = checked(text)
  if ('value' in parsed) return new FixedSecret(name, text)
  faults.push({ name, message: `(not shown) ${parsed.fault}` })
  return undefined
}

const isSet = (value: unknown) => value !== undefined && value !== false && value !== ''

function addOnce(faults: Fault[], fault: Fault): void {
  if (!faults.some(({ name, message }) => name === fault.name && message === fault.message)) faults.push(fault)
}
