import { inWords, type Parsed } from './grammar.ts'
import { nearest } from './nearest.ts'
import type { ControllerName } from './types.ts'

/** The controllers that `--controllers` switches, by canonical name, with the alias that it takes too. */
const CONTROLLER_ALIASES: ReadonlyMap<ControllerName, string> = new Map([
  ['cloud-node-controller', 'cloud-node'],
  ['cloud-node-lifecycle-controller', 'cloud-node-lifecycle'],
  ['service-lb-controller', 'service'],
  ['node-route-controller', 'route'],
])

/** `*` for all, `name` for one, `-name` for all but one: the first word about a controller decides, `*` about those not named. */
export function parseControllers(text: string): Parsed<ReadonlySet<ControllerName>> {
  const items = text.split(',').map((item) => item.trim())
  const unknown = items.map((item) => item.replace(/^-/, '')).filter((item) => item !== '*' && !KNOWN.has(item))
  const [first] = unknown
  if (first !== undefined) {
    const hint = nearest(first, KNOWN.keys())
    const right =
      hint === undefined ? `write * or ${inWords([...CONTROLLER_ALIASES.keys()])}` : `the nearest is ${hint}`
    return {
      fault: `names an unknown controller (item ${items.findIndex((item) => item.endsWith(first)) + 1}), ${right}`,
    }
  }
  const decided = new Map<ControllerName, boolean>()
  for (const item of items) {
    const name = KNOWN.get(item.replace(/^-/, ''))
    if (name !== undefined && !decided.has(name)) decided.set(name, !item.startsWith('-'))
  }
  const others = items.includes('*')
  return { value: new Set([...CONTROLLER_ALIASES.keys()].filter((name) => decided.get(name) ?? others)) }
}

const KNOWN: ReadonlyMap<string, ControllerName> = new Map(
  [...CONTROLLER_ALIASES].flatMap(([name, alias]): [string, ControllerName][] => [
    [name, name],
    [alias, name],
  ]),
)
