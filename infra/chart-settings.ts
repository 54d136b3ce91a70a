import { stringify } from 'yaml'
import { type Command, fileEnvOf, type Group, type Setting } from '../src/config/setting.ts'
import { CHERRY } from '../src/config/table/cherry.ts'
import { HCLOUD } from '../src/config/table/hcloud.ts'
import { appliesTo, SETTINGS } from '../src/config/table.ts'

const ROLES = ['forwarder', 'server', 'worker', 'all'] as const satisfies readonly Command[]

/** Which role has use for which variable and flag: what the Helm chart hands its values out by. */
export function chartSettings(): string {
  const settings = {
    known: SETTINGS.flatMap(variablesOf),
    credentials: Object.values({ ...HCLOUD, ...CHERRY } as Group).flatMap(({ kind, env }) =>
      kind === 'secret' && env !== undefined ? [env] : [],
    ),
    env: byRole(variablesOf),
    flags: {
      ...byRole(flagsOf),
      // Of a worker's, what a doctor beside it takes.
      doctor: SETTINGS.filter((setting) => isOf(setting, 'worker') && isOf(setting, 'doctor')).flatMap(flagsOf),
    },
  }
  return `# Made by infra/docs.ts from src/config/table.ts: change it there.\n${stringify(settings, { flowCollectionPadding: false })}`
}

const byRole = (namesOf: (setting: Setting) => string[]) =>
  Object.fromEntries(ROLES.map((role) => [role, SETTINGS.filter((setting) => isOf(setting, role)).flatMap(namesOf)]))

/** What has no effect is only taken where it came from, so that arguments may stay as they are. */
const isOf = (setting: Setting, role: Command) =>
  appliesTo(setting, role) && (setting.ignored === undefined || role === 'worker' || role === 'all')

const flagsOf = ({ flag }: Setting): string[] => (flag === undefined ? [] : [flag])

const variablesOf = (setting: Setting): string[] =>
  [setting.env, fileEnvOf(setting), ...(setting.formerEnvs ?? [])].filter((name) => name !== undefined)
