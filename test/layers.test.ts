import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import t from 'tap'

const SRC = join(import.meta.dirname, '..', 'src')

/** From the roles down: a file imports from its own folder and from layers below, nothing else. */
const LAYERS: string[][] = [
  ['main.ts'],
  ['cli'],
  ['forwarder', 'server', 'worker'],
  ['controllers'],
  ['cloud', 'kubernetes', 'queue', 'state', 'events'],
  ['config', 'telemetry', 'http'],
  ['errors.ts', 'call.ts', 'version.ts'],
]

/** Imports between neighbours of one layer, each with its reason. */
const NEIGHBOURS: Record<string, string[]> = {
  // what is kept in Redis is written in the contract's types
  state: ['events'],
  // a projection is made of Kubernetes objects
  events: ['kubernetes'],
  cloud: ['events'],
  // every request is a span
  http: ['telemetry'],
  // and the queue's own scripts are defined as the state's are
  queue: ['events', 'state'],
}

interface Import {
  from: string
  to: string
  typeOnly: boolean
}

function imports(): Import[] {
  const found: Import[] = []
  for (const entry of readdirSync(SRC, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.ts')) continue
    const file = join(entry.parentPath, entry.name)
    const text = readFileSync(file, 'utf8')
    for (const match of text.matchAll(/^(?:import|export)\s+(type\s)?[^'"]*?from\s+'([^']+)'|import\('([^']+)'\)/gms)) {
      const target = match[2] ?? match[3] ?? ''
      const to = target.startsWith('.') ? relative(SRC, join(dirname(file), target)) : target
      found.push({ from: relative(SRC, file), to, typeOnly: match[1] !== undefined })
    }
  }
  return found
}

const folder = (path: string) => path.split(sep)[0] ?? ''
const layer = (path: string) => LAYERS.findIndex((names) => names.includes(folder(path)))

const all = imports()
const ours = all.filter(({ to }) => to.endsWith('.ts'))

t.test('every folder has its layer', async (t) => {
  t.ok(ours.length > 0)
  for (const { from } of ours) t.not(layer(from), -1, from)
})

t.test('imports point down', async (t) => {
  for (const { from, to, typeOnly } of ours) {
    const [here, there] = [folder(from), folder(to)]
    if (here === there) continue
    const allowed =
      layer(to) > layer(from) ||
      (layer(to) === layer(from) && (NEIGHBOURS[here]?.includes(there) || (typeOnly && there !== here)))
    t.ok(allowed || (typeOnly && ['call.ts', 'errors.ts'].includes(here)), `${from} imports ${to}`)
  }
})

t.test('controllers know no cloud but its interface', async (t) => {
  for (const { from, to } of ours)
    if (folder(from) === 'controllers' && folder(to) === 'cloud') t.equal(to, join('cloud', 'provider.ts'), from)
})

t.test("clouds know no client of Kubernetes, only its objects' types", async (t) => {
  for (const { from, to, typeOnly } of all) {
    if (folder(from) !== 'cloud') continue
    t.not(to, '@kubernetes/client-node', from)
    if (folder(to) === 'kubernetes') t.ok(typeOnly && to === join('kubernetes', 'objects.ts'), `${from} imports ${to}`)
  }
})

t.test('the forwarder loads nothing heavy', async (t) => {
  const reached = new Set<string>()
  const visit = (file: string) => {
    if (reached.has(file)) return
    reached.add(file)
    for (const { from, to, typeOnly } of all) if (from === file && !typeOnly) visit(to)
  }
  for (const { from } of ours) if (folder(from) === 'forwarder') visit(from)
  for (const heavy of ['bullmq', 'ioredis', 'fastify', 'typebox', 'cloudevents', 'prom-client'])
    t.notOk(reached.has(heavy), heavy)
})

t.test('a module reaches into no folder named for nothing', async (t) => {
  for (const { from } of ours) t.notMatch(from, /(^|\/)(utils|helpers|common|misc)(\/|\.ts)/)
})
