import { COMMANDS, type Command, fileEnvOf, purposeOf, type Setting } from '../config/setting.ts'
import { appliesTo, SECTIONS } from '../config/table.ts'

const ABOUT: Record<Command, string> = {
  forwarder: 'Watches a cluster and sends what changes to a server. Needs no cloud credentials.',
  server: 'Takes events, queues them in Redis, serves the queue dashboard, metrics and the backlog.',
  worker: 'Reconciles what is queued: calls clouds, and patches the cluster.',
  all: 'Forwarder, server and worker in one process, for one small cluster.',
  plan: 'Shows what a worker would change, and changes nothing. Arguments are objects, such as Service/default/web.',
  doctor: 'Checks settings, Redis, the cluster and the clouds, and says what is wrong.',
}

const EXIT_CODES: Partial<Record<Command, string>> = {
  plan: '0 everything is as it should be; 1 something could not be planned, or needs a human first; 2 something would change.',
  doctor: '0 no problem; 1 at least one problem, or a setting is wrong.',
}

/** The text of `--help`: what Windlass is, or all settings of a command. */
export function helpOf(command?: Command): string {
  if (command === undefined) {
    return lines([
      'Windlass: a cloud controller manager for Hetzner and Cherry Servers',
      '',
      'Usage: windlass <command> [flags]',
      '',
      ...COMMANDS.map((name) => `  ${name.padEnd(10)} ${ABOUT[name]}`),
      '',
      'windlass <command> --help lists the flags and variables of a command; --version prints the version.',
      'A flag wins over its variable, that over a file (--config), that over the default.',
    ])
  }
  const sections = SECTIONS.flatMap(({ title, settings }) => {
    const rows = Object.values(settings).filter(
      (setting) => appliesTo(setting, command) && setting.ignored === undefined,
    )
    return rows.length === 0 ? [] : [title, ...rows.flatMap((setting) => entryOf(setting, command)), '']
  })
  const ignored = SECTIONS.flatMap(({ settings }) => Object.values(settings)).filter(
    (setting) => setting.ignored !== undefined,
  )
  return lines([
    `windlass ${command}`,
    ABOUT[command],
    '',
    `Usage: windlass ${command} [flags]${command === 'plan' ? ' [object...]' : ''}`,
    ...(EXIT_CODES[command] === undefined ? [] : [`Exit codes: ${EXIT_CODES[command]}`]),
    '',
    ...sections,
    'Accepted without effect',
    ...folded(ignored.map(({ flag, env = '' }) => (flag === undefined ? env : `--${flag}`))),
  ])
}

/** What stands for the default of a setting, for people. */
export function defaultOf(setting: Setting, command?: Command): string | undefined {
  const own = command === undefined ? undefined : setting.defaults?.[command]
  return setting.defaultNote ?? own ?? (setting.default === '' ? undefined : setting.default)
}

function entryOf(setting: Setting, command: Command): string[] {
  const names = [setting.flag === undefined ? undefined : `--${setting.flag}`, setting.env, fileEnvOf(setting)]
  const shownDefault = defaultOf(setting, command)
  const facts = [
    setting.required?.includes(command) === true ? requiredText(setting) : undefined,
    shownDefault === undefined ? undefined : `Default: ${shownDefault}.`,
  ]
  return [
    `  ${names.filter((name) => name !== undefined).join('  ')}  (${setting.form})`,
    `      ${[setting.doc, ...facts].filter((part) => part !== undefined).join(' ')}`,
  ]
}

/** A cloud that is not used needs nothing. */
const requiredText = (setting: Setting) =>
  setting.requiredFor === undefined ? 'Required.' : `Required${purposeOf(setting)}, if used.`

function folded(words: readonly string[]): string[] {
  const rows: string[] = []
  for (const word of words) {
    const row = rows.at(-1)
    if (row === undefined || row.length + word.length > 110) rows.push(`  ${word}`)
    else rows[rows.length - 1] = `${row} ${word}`
  }
  return rows
}

const lines = (texts: readonly string[]) => `${texts.join('\n').replaceAll('`', '')}\n`
