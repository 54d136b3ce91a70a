import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import t from 'tap'
import type { Call } from '../../../src/call.ts'
import type { CloudProvider, InstanceLookup } from '../../../src/cloud/provider.ts'
import { findMachine } from '../../../src/controllers/node/lookup.ts'
import { transient } from '../../../src/errors.ts'
import type { NodeProjection } from '../../../src/events/projection.ts'

const call: Call = {
  signal: new AbortController().signal,
  urgency: 'user',
  log: pino({ level: 'silent' }),
  beforeWrite: async () => {},
}

const cloud = (name: string, find: () => Promise<InstanceLookup>): CloudProvider =>
  ({ name, owns: (id: string) => id.startsWith(`${name}:`), instances: { find } }) as unknown as CloudProvider

const found = (providerId: string): InstanceLookup => ({
  kind: 'found',
  notes: [],
  instance: { providerId, name: 'w1', addresses: [], additionalLabels: {} },
})
const missing: InstanceLookup = { kind: 'not-found', searched: 'server "w1" at b', notes: [] }
const silent = () => new Promise<InstanceLookup>(() => {})
const broken = async (): Promise<InstanceLookup> => {
  throw transient('b: status 503')
}
const node = { name: 'w1' } as NodeProjection
const has = async () => found('a:1')

t.test('the machine is at the cloud that has it, whatever is wrong with another', async (t) => {
  for (const other of [async () => missing, broken, silent]) {
    const lookup = await findMachine([cloud('a', has), cloud('b', other)], node, call)
    t.match(lookup, { kind: 'found', cloud: { name: 'a' }, instance: { providerId: 'a:1' } })
  }
})

t.test('two machines of one name are two, also when one is told of a little later', async (t) => {
  const late = async () => {
    await delay(200)
    return found('b:1')
  }
  for (const other of [async () => found('b:1'), late])
    t.match(await findMachine([cloud('a', has), cloud('b', other)], node, call), {
      kind: 'ambiguous',
      message: /at a and b/,
    })
})

t.test('while one cloud can not tell, a machine that the other does not have is not missing', async (t) => {
  const clouds = [cloud('a', async () => missing), cloud('b', broken)]
  await t.rejects(findMachine(clouds, node, call), { message: 'b: status 503' })
  const both = [cloud('a', async () => ({ ...missing, searched: 'server "w1" at a' })), cloud('b', async () => missing)]
  t.match(await findMachine(both, node, call), {
    kind: 'not-found',
    searched: 'server "w1" at a; server "w1" at b',
  })
})

t.test('a provider id says whose the node is, and no other cloud is asked', async (t) => {
  const clouds = [cloud('a', has), cloud('b', silent)]
  t.match(await findMachine(clouds, { ...node, providerId: 'a:1' }, call), { kind: 'found' })
  t.same(await findMachine(clouds, { ...node, providerId: 'c:1' }, call), { kind: 'foreign' })
})
