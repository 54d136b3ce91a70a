import type { Command, Group, Setting } from './setting.ts'
import { CHERRY } from './table/cherry.ts'
import { FRAMEWORK, IGNORED } from './table/framework.ts'
import { HCLOUD } from './table/hcloud.ts'
import { CLUSTER, PROCESS } from './table/windlass.ts'

/** A part of the table as people see it: in `--help`, in the docs, and as a block in files. */
export interface Section {
  title: string
  about: string
  settings: Group
}

/** Every setting there is. Parsing, faults, `--help` and the docs are made of this. */
export const TABLE = {
  process: {
    title: 'Windlass',
    about: 'Settings of the process, whatever clusters it works for.',
    settings: PROCESS,
  },
  cluster: {
    title: 'Cluster',
    about: 'Which cluster, how to reach it, and which keys sign its events.',
    settings: CLUSTER,
  },
  framework: {
    title: 'Cloud controllers',
    about: 'Flags of every cloud controller manager that change what it does. In files under `framework`.',
    settings: FRAMEWORK,
  },
  hcloud: {
    title: 'Hetzner Cloud and Robot',
    about: 'Variables of the Hetzner cloud controller. In files under `hcloud`, without `HCLOUD_`.',
    settings: HCLOUD,
  },
  cherry: {
    title: 'Cherry Servers',
    about:
      'Variables of the Cherry Servers cloud controller, and the keys of its `--cloud-config` file. In files under `cherry`, without `CHERRY_`.',
    settings: CHERRY,
  },
  ignored: {
    title: 'Accepted without effect',
    about: 'So that a replaced controller’s arguments can stay as they are. Their values are not looked at.',
    settings: IGNORED,
  },
} as const satisfies Record<string, Section>

export const SECTIONS: readonly Section[] = Object.values(TABLE)

export const SETTINGS: readonly Setting[] = SECTIONS.flatMap(({ settings }) => Object.values(settings))

/** Settings by flag, without dashes. */
export const FLAGS: ReadonlyMap<string, Setting> = new Map(
  SETTINGS.flatMap((setting) => (setting.flag === undefined ? [] : [[setting.flag, setting]])),
)

export const appliesTo = (setting: Setting, command: Command) => setting.commands.includes(command)
