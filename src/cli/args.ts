import type { Fault } from '../config/fault.ts'
import { nearest } from '../config/nearest.ts'
import { COMMANDS, type Command, isSwitch, type Setting } from '../config/setting.ts'
import { appliesTo, FLAGS } from '../config/table.ts'

export type Invocation =
  | { kind: 'help'; command?: Command }
  | { kind: 'version' }
  /** Faults are kept until the settings are known too, so that all are told at once. */
  | { kind: 'run'; command: Command; flags: ReadonlyMap<string, string>; subjects: string[]; faults: Fault[] }
  /** No command to run. */
  | { kind: 'wrong'; faults: Fault[] }

/**
 * Reads a command line as Go's pflag does: `--flag=value`, `--flag value`, a switch alone for true, `_` for `-`, `--` before what is
 * no flag. Never repeats what was written but the names of flags and commands: the rest may be secrets in the wrong place.
 */
export function parseArgs(argv: readonly string[]): Invocation {
  const { flags, words, asks } = split(argv)
  const [word, ...subjects] = words
  const asksForHelp = asks.has('help') || word === 'help'
  const named = COMMANDS.find((name) => name === (word === 'help' ? subjects[0] : word))
  if (asksForHelp) return { kind: 'help', command: named }
  if (asks.has('version')) return { kind: 'version' }
  if (word === undefined) return { kind: 'wrong', faults: [{ name: 'a command', message: `is missing, ${RIGHT}` }] }
  if (named === undefined) return { kind: 'wrong', faults: [unknownCommand(word)] }

  const faults: Fault[] = []
  const values = new Map<string, string>()
  for (const { name, value } of flags) {
    const setting = FLAGS.get(name)
    const fault = faultOfFlag(name, value, setting, named)
    if (fault !== undefined) faults.push(fault)
    if (fault !== undefined || setting === undefined || value === undefined) continue
    const before = setting.repeats === true ? values.get(name) : undefined
    values.set(name, before === undefined ? value : `${before},${value}`)
  }
  if (subjects.length > 0 && named !== 'plan') {
    faults.push({
      name: `${subjects.length} of the arguments`,
      message: `belong to no flag, and ${named} takes none of them. A switch has its value behind an equals sign: --leader-elect=false`,
    })
  }
  return { kind: 'run', command: named, flags: values, subjects, faults }
}

const RIGHT = `write one of ${COMMANDS.join(', ')}, or --help`

interface Flag {
  name: string
  value?: string
}

interface Split {
  flags: Flag[]
  words: string[]
  asks: Set<'help' | 'version'>
}

function split(argv: readonly string[]): Split {
  const result: Split = { flags: [], words: [], asks: new Set() }
  const rest = [...argv]
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === '--') {
      result.words.push(...rest.splice(0))
    } else if (arg === '-h' || arg === '--help') {
      result.asks.add('help')
    } else if (arg === '--version') {
      result.asks.add('version')
    } else if (/^-v/.test(arg)) {
      result.flags.push({ name: 'v', value: arg.slice(2).replace(/^=/, '') || rest.shift() })
    } else if (/^--?[^-]/.test(arg)) {
      result.flags.push(flagOf(arg, rest))
    } else {
      result.words.push(arg)
    }
  }
  return result
}

function flagOf(arg: string, rest: string[]): Flag {
  const [, written = '', value] = /^--?([^=]+)(?:=([\s\S]*))?$/.exec(arg) ?? []
  const name = written.replaceAll('_', '-')
  if (value !== undefined) return { name, value }
  const setting = FLAGS.get(name)
  if (setting !== undefined) return { name, value: isSwitch(setting) ? 'true' : rest.shift() }
  // What follows an unknown flag is taken for its value, unless it looks like something else.
  const [next] = rest
  if (next !== undefined && !next.startsWith('-') && !COMMANDS.some((command) => command === next)) rest.shift()
  return { name, value: '' }
}

function faultOfFlag(
  name: string,
  value: string | undefined,
  setting: Setting | undefined,
  command: Command,
): Fault | undefined {
  // Cut where no flag goes on: what follows may be a secret after a slip.
  const flag = `--${/^[A-Za-z0-9.-]*/.exec(name)?.[0] ?? ''}`
  const usable = (candidate: Setting) => appliesTo(candidate, command) || candidate.shared === true
  const inFile = FLAGS.get(`${name}-file`)
  if (inFile?.kind === 'secret' && usable(inFile)) {
    return {
      name: flag,
      message: `is no flag, since arguments can be read by others: set ${inFile.env}, or ${flag}-file`,
    }
  }
  if (setting === undefined || !usable(setting)) {
    const known = [...FLAGS].filter(([, candidate]) => usable(candidate)).map(([candidate]) => candidate)
    const hint = setting === undefined ? nearest(name, known) : undefined
    const users = setting === undefined ? '' : `, only of ${setting.commands.join(', ')}`
    return {
      name: flag,
      message: `is no flag of ${command}${users}${hint === undefined ? '' : `, the nearest is --${hint}`}`,
    }
  }
  return value === undefined
    ? { name: flag, message: `lacks its value: ${setting.form.replaceAll('`', '')}` }
    : undefined
}

function unknownCommand(word: string): Fault {
  const hint = nearest(word, COMMANDS, 2)
  return hint === undefined
    ? { name: 'the first argument', message: `is no command, ${RIGHT}` }
    : { name: JSON.stringify(word), message: `is no command, the nearest is ${hint}` }
}
