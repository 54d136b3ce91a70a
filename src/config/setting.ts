import { type Parser, parseBool } from './grammar.ts'
import type { Secret } from './types.ts'

export const COMMANDS = ['forwarder', 'server', 'worker', 'all', 'plan', 'doctor'] as const
export type Command = (typeof COMMANDS)[number]

/** What the table says of every setting. */
interface Facts {
  /** Environment variable. For a secret there is a second one, with `_FILE` behind it. */
  env?: string
  /** Names that the variable had in former versions of what is replaced. */
  formerEnvs?: readonly string[]
  /** Flag without its dashes. Made of the variable's name if absent; a secret's flag takes the file. */
  flag?: string
  /** Key in a Cherry cloud configuration file, in any case of letters. */
  jsonKey?: string
  /** What stands there, if not text. */
  jsonType?: 'number' | 'boolean'
  /** What may be written, for people. */
  form: string
  /** As it would be written. */
  default?: string
  /** Defaults of single commands. */
  defaults?: Partial<Record<Command, string>>
  /** What the default comes to where it can't be written down. */
  defaultNote?: string
  /** An empty text counts as not set unless this says that it is looked at. */
  emptyIsValue?: boolean
  /** Key of another setting of the same group without which this one is not looked at. */
  onlyWith?: string
  /** Tells clusters apart: refused as variable or flag beside a file of clusters. */
  ofOneCluster?: boolean
  /** What joins the items of a list in a file. A comma if absent. */
  separator?: string
  /** A flag given several times adds up; else the last counts. */
  repeats?: boolean
  /** A flag of the framework: accepted by commands that have no use for it too, so that arguments can be shared. */
  shared?: boolean
  /** Other programs set and read this variable too: no fault if it is there for nothing. */
  ambient?: boolean
  commands: readonly Command[]
  /** Commands that can't do without. */
  required?: readonly Command[]
  /** The cloud, for people, for which alone it is required: a cluster may have another. */
  requiredFor?: string
  doc: string
  /** Why a setting of the replaced controllers has no effect. */
  ignored?: string
}

export interface ValueSetting<T = unknown> extends Facts {
  kind: 'value'
  parse: Parser<T>
}

export interface SecretSetting extends Facts {
  kind: 'secret'
  /** Only tells good from bad. */
  parse: Parser<unknown>
}

export type Setting = ValueSetting | SecretSetting

/** Settings of a group by their key in files, `camelCase`. */
export type Group = Readonly<Record<string, Setting>>

export type Values<G extends Group> = {
  [K in keyof G]: G[K] extends ValueSetting<infer T> ? T : Secret | undefined
}

type Row<T> = Omit<ValueSetting<T>, 'kind'>

/** A setting that always has a value. */
export const setting = <T>(row: Row<T> & { default: string }): ValueSetting<T> => complete({ ...row, kind: 'value' })

/** A setting that may be absent. */
export const optional = <T>(row: Row<T>): ValueSetting<T | undefined> => complete({ ...row, kind: 'value' })

/** A setting that nothing prints, given as value or in a file. */
export const secret = (row: Omit<SecretSetting, 'kind' | 'form'>): SecretSetting =>
  complete({ ...row, form: 'secret, or a file that holds it', kind: 'secret' })

/** A flag or variable of the replaced controllers that is taken and has no effect. */
export const ignored = (row: {
  flag?: string
  env?: string
  isSwitch?: boolean
  why: string
}): ValueSetting<undefined> => ({
  kind: 'value',
  flag: row.flag,
  env: row.env,
  parse: row.isSwitch === true ? ANY_SWITCH : ANYTHING,
  form: 'anything',
  commands: COMMANDS,
  doc: 'Accepted, without effect.',
  ignored: row.why,
})

/** A flag that may stand alone for true. */
export const isSwitch = ({ parse }: Setting) => parse === parseBool || parse === ANY_SWITCH

/** What a command that needs a setting needs it for, for people: ` for Hetzner`, or nothing. */
export const purposeOf = ({ requiredFor }: Setting) => (requiredFor === undefined ? '' : ` for ${requiredFor}`)

export const fileEnvOf = ({ kind, env }: Setting) =>
  kind === 'secret' && env !== undefined ? `${env}_FILE` : undefined

const ANYTHING: Parser<undefined> = () => ({ value: undefined })
const ANY_SWITCH: Parser<undefined> = () => ({ value: undefined })

function complete<S extends Setting>(row: S): S {
  if (row.flag !== undefined || row.env === undefined) return row
  const name = row.env
    .replace(/^WINDLASS_/, '')
    .toLowerCase()
    .replaceAll('_', '-')
  return { ...row, flag: row.kind === 'secret' ? `${name}-file` : name }
}
