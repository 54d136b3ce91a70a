import t, { type Test } from 'tap'
import { createCherryClient } from '../../../src/cloud/cherry/client.ts'
import type { AddressId, ServerId } from '../../../src/cloud/cherry/model.ts'
import { parseAddress, parseServer } from '../../../src/cloud/cherry/parse.ts'
import { HttpClient } from '../../../src/http/client.ts'
import { type Bench, bench, callOf, KEY, ofKind, PROJECT, twoServers } from './bench.ts'

const id = 383531 as ServerId

function clientOf(t: Test, { simulator }: Bench) {
  const http = new HttpClient()
  t.teardown(() => http.close())
  return createCherryClient({
    http,
    version: '1',
    pace: () => ({ take: async () => {}, block: async () => {} }),
    settings: {
      apiKey: { name: 'CHERRY_API_KEY', read: () => KEY },
      apiUrl: simulator.apiUrl.replace(/\/$/, ''),
      projectId: PROJECT,
    },
  })
}

t.test('nothing but a 404 of the API itself says that something is not there', async (t) => {
  const b = await bench(t)
  const node = {
    name: 'worker-1',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    deleting: false,
    labels: {},
    podCidrs: [],
    taints: [],
    addresses: [],
    ready: 'True' as const,
    providerId: `cherryservers://${id}`,
  }
  const find = () => b.provider.instances.find(node, b.call, { fresh: true })
  for (const fault of [
    { kind: 'html', status: 502 },
    { kind: 'empty' },
    { kind: 'truncated' },
    { kind: 'drop-before' },
    { kind: 'error', code: '500' },
    { kind: 'error', code: '403' },
    { kind: 'error', code: '401' },
    { kind: 'http', status: 200, body: [] },
    { kind: 'http', status: 200, body: null },
    { kind: 'http', status: 301, body: {} },
    { kind: 'html', status: 404 },
    { kind: 'http', status: 404, body: [] },
    { kind: 'http', status: 404, body: null },
  ]) {
    b.simulator.control.fault({ match: 'GET /servers/{id}', times: -1, ...fault })
    await t.rejects(find(), { name: 'WindlassError', kind: 'transient' }, JSON.stringify(fault))
    b.simulator.control.fault('clear')
  }
  b.simulator.control.fault({ match: 'GET /servers/{id}', times: 1, kind: 'rate-limit' })
  await t.rejects(find(), ofKind('throttled'))
  t.match(await find(), { kind: 'found' })
  await b.simulator.control.mutate({ servers: [{ hostname: 'worker-1', $delete: true }] })
  t.match(await find(), { kind: 'not-found' })
})

t.test('lists are read to their end, and are whole or none', async (t) => {
  const servers = Array.from({ length: 7 }, (_, i) => ({
    ...twoServers.servers[0],
    id: 383531 + i,
    hostname: `w${i}`,
    ip_addresses: [{ address: `5.199.160.${31 + i}`, type: 'primary-ip' }],
  }))
  const b = await bench(t, { account: { servers }, options: { page_size: 3 } })
  t.equal((await b.provider.instances.listProviderIds(b.call, { fresh: true })).size, 14, 'in both forms')
  t.ok((b.calls()['GET /projects/{id}/servers'] ?? 0) >= 3)
  b.simulator.control.fault({ match: 'GET /projects/{id}/servers', kind: 'partial-page', times: -1 })
  await t.rejects(b.provider.instances.listProviderIds(b.call, { fresh: true }), ofKind('transient'))
})

t.test('a wrong key or project is told at first contact, trouble in passing is not taken for one', async (t) => {
  const b = await bench(t)
  await b.provider.check(b.call)
  b.simulator.control.fault({ match: 'GET /projects/{id}', kind: 'error', code: '503', times: -1 })
  await t.rejects(b.provider.check(b.call), ofKind('transient'))
  b.simulator.control.fault('clear')
  const wrongKey = await bench(t, { settings: { apiKey: { name: 'CHERRY_API_KEY', read: () => 'wrong' } } })
  await t.rejects(wrongKey.provider.check(b.call), { kind: 'permanent', message: /CHERRY_API_KEY/ })
  const wrongProject = await bench(t, { settings: { projectId: 1 } })
  await t.rejects(wrongProject.provider.check(b.call), { kind: 'permanent', message: /CHERRY_PROJECT_ID/ })
})

t.test('what is asked wrongly waits for a human, what can’t be given back is tried again', async (t) => {
  const b = await bench(t)
  const { after, service } = await import('./bench.ts')
  b.simulator.control.fault({ match: 'POST /projects/{id}/ips', kind: 'error', code: '403', times: 1 })
  await t.rejects(b.ensure(service()), ofKind('permanent'))
  const done = after(service(), await b.ensure(service()))
  b.simulator.control.fault({ match: 'DELETE /ips/{id}', kind: 'error', code: '403', times: 1 })
  await t.rejects(b.remove(done), ofKind('transient'))
  b.simulator.control.fault({ match: 'DELETE /ips/{id}', kind: 'html', status: 404, times: 1 })
  await t.rejects(b.remove(done), ofKind('transient'))
  t.equal(b.floating().length, 1)
  await b.remove(done)
  t.same(b.floating(), [])
})

t.test('an update counts as done when its answer shows what was updated', async (t) => {
  const b = await bench(t)
  const client = clientOf(t, b)
  await b.simulator.control.mutate({ ips: [{ create: { region: 'LT-Siauliai' } }] })
  const address = b.floating()[0]?.id as AddressId
  const updates: Record<string, () => Promise<unknown>> = {
    'PUT /servers/{id}': () => client.servers.enableBgp(id, {}, b.call),
    'PUT /projects/{id}': () => client.project.enableBgp('lab', b.call),
    'PUT /ips/{id} (tags)': () => client.addresses.tag(address, {}, b.call),
    'PUT /ips/{id} (to)': () => client.addresses.assign(address, id, b.call),
    'PUT /ips/{id} (off)': () => client.addresses.unassign(address, b.call),
  }
  for (const [what, update] of Object.entries(updates)) {
    for (const body of [null, [], 'fine']) {
      const match = what.replace(/ \(.*/, '')
      b.simulator.control.fault({ match, kind: 'http', status: 200, body, times: 1 })
      await t.rejects(update(), ofKind('transient'), `${what} answered with ${JSON.stringify(body)}`)
    }
    await t.resolves(update(), what)
  }
  const still = (body: object, match: string) => b.simulator.control.fault({ match, kind: 'http', status: 200, body })
  still({ id, bgp: { enabled: false } }, 'PUT /servers/{id}')
  await t.rejects(client.servers.enableBgp(id, {}, b.call), ofKind('transient'))
  still({ id: address, targeted_to: { id: 7 } }, 'PUT /ips/{id}')
  await t.rejects(client.addresses.assign(address, id, b.call), ofKind('transient'))
})

t.test('nothing is written before the run has said that it still may', async (t) => {
  const b = await bench(t)
  const client = clientOf(t, b)
  const refusing = {
    ...callOf(),
    async beforeWrite() {
      throw new Error('lost its claim')
    },
  }
  await t.rejects(client.servers.enableBgp(id, {}, refusing), /lost its claim/)
  await t.rejects(client.project.enableBgp('lab', refusing), /lost its claim/)
  await t.rejects(client.addresses.reserve('LT-Siauliai', {}, refusing), /lost its claim/)
  t.same(b.calls(), {})
})

t.test('answers are read in all forms that the API is known to give', async (t) => {
  const forms = [{ tags: [] }, { tags: null }, { tags: {} }, {}]
  for (const form of forms) t.same(parseAddress({ id: 'a', address: '5.1.1.1', ...form }).tags, {})
  for (const targeted_to of [null, [], {}, { id: 0 }, undefined, 0])
    t.equal(parseAddress({ id: 'a', address: '5.1.1.1', targeted_to }).target, undefined)
  t.equal(parseAddress({ id: 7, cidr: '5.1.1.1/32', targeted_to: { id: '383531' } }).target, 383531)
  t.equal(parseAddress({ id: 7, cidr: '5.1.1.1/32' }).address, '5.1.1.1')
  const nothing = parseServer({ id: '12', ip_addresses: null, region: null, plan: null, bgp: null })
  t.match(nothing, { id: 12, plan: '', region: '' })
  t.equal(nothing.addresses, undefined, 'which is not the same as none')
  t.same(parseServer({ id: 12, ip_addresses: [] }).addresses, [])
  t.throws(() => parseServer({ hostname: 'x' }), /without id/)
})

for (const options of [
  { no_tags: 'array', no_target: 'null', ids: 'text' },
  { no_tags: 'null', no_target: 'absent', ids: 'number' },
  { no_tags: 'absent', no_target: 'empty', ids: 'text' },
])
  t.test(`a Service comes and goes where the API answers with ${JSON.stringify(options)}`, async (t) => {
    const b = await bench(t, { options })
    const { after, service } = await import('./bench.ts')
    const done = after(service(), await b.ensure(service()))
    t.same(await b.summaries(done), [])
    await b.remove(done)
    t.same(b.floating(), [])
  })
