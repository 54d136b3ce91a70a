import { readFileSync } from 'node:fs'
import t from 'tap'
import { PAGES } from '../../infra/docs.ts'
import { COMMANDS } from '../../src/config/setting.ts'
import { SECTIONS, SETTINGS } from '../../src/config/table.ts'

t.test('every default is a value of its setting', async (t) => {
  for (const setting of SETTINGS) {
    const defaults = [setting.default, ...Object.values(setting.defaults ?? {})].filter((text) => text !== undefined)
    for (const text of defaults) t.ok('value' in setting.parse(text), `${setting.env ?? setting.flag} ${text}`)
  }
})

t.test('no name stands for two settings', async (t) => {
  for (const names of [
    SETTINGS.flatMap(({ flag }) => flag ?? []),
    SETTINGS.flatMap(({ env, formerEnvs = [] }) => [...(env === undefined ? [] : [env]), ...formerEnvs]),
  ]) {
    t.same([...new Set(names)], names)
  }
  for (const { settings } of SECTIONS) {
    const keys = Object.values(settings).flatMap(({ jsonKey }) => jsonKey?.toLowerCase() ?? [])
    t.same([...new Set(keys)], keys)
  }
})

t.test('every setting can be given, says what it does, and is of use to some command', async (t) => {
  for (const setting of SETTINGS) {
    t.ok(setting.flag !== undefined || setting.env !== undefined)
    t.match(setting.doc, /\.$/)
    t.ok(setting.commands.every((command) => COMMANDS.includes(command)) && setting.commands.length > 0)
    t.ok((setting.required ?? []).every((command) => setting.commands.includes(command)))
  }
})

t.test('a secret has no flag that takes its value, but for an address that may hold one', async (t) => {
  const flags = SETTINGS.flatMap(({ kind, flag }) => (kind === 'secret' && flag !== undefined ? flag : []))
  t.same(
    flags.filter((flag) => !flag.endsWith('-file')),
    ['redis-url'],
  )
})

t.test('the pages in docs are those that the table makes', async (t) => {
  for (const [path, page] of Object.entries(PAGES)) {
    t.equal(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'), page(), `${path}: run node infra/docs.ts`)
  }
})
