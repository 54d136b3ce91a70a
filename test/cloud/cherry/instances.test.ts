import t from 'tap'
import { bench, node, twoServers } from './bench.ts'

t.test('a node is found by provider id in either form, or by the host name of its server', async (t) => {
  const b = await bench(t)
  for (const given of [
    node('any', { providerId: 'cherryservers://383531' }),
    node('any', { providerId: '383531' }),
    node('worker-1'),
  ]) {
    const found = await b.provider.instances.find(given, b.call)
    t.match(found, {
      kind: 'found',
      instance: {
        providerId: 'cherryservers://383531',
        instanceType: 'e5_1620v4',
        region: 'LT-Siauliai',
        off: false,
        addresses: [
          { type: 'Hostname', address: 'worker-1' },
          { type: 'ExternalIP', address: '5.199.160.31' },
          { type: 'InternalIP', address: '10.168.0.31' },
        ],
      },
    })
  }
  t.ok((b.calls()['GET /projects/{id}/servers'] ?? 0) <= 1, 'by one list')
})

t.test('a machine that is gone, while another has its name, was replaced', async (t) => {
  const b = await bench(t)
  const find = (name: string, providerId: string) => b.provider.instances.find(node(name, { providerId }), b.call)
  t.match(await find('worker-1', 'cherryservers://9'), {
    kind: 'not-found',
    notes: [{ reason: 'MachineReplaced', message: /cherryservers:\/\/9 is gone.* is cherryservers:\/\/383531 now/ }],
  })
  t.match(await find('worker-9', 'cherryservers://9'), { kind: 'not-found', notes: { length: 0 } })
  b.simulator.control.fault({ match: 'GET /servers/{id}', kind: 'error', code: '404', times: -1 })
  const listed = await b.provider.instances.find(node('worker-1', { providerId: '383531' }), b.call, { fresh: true })
  t.match(listed, { kind: 'not-found', notes: { length: 0 } }, 'a list that lags behind shows no other')
})

t.test('whose a node is follows from its provider id', async (t) => {
  const { provider, call } = await bench(t)
  for (const [id, ours] of [
    ['cherryservers://1', true],
    ['cherryservers://lt/1', true],
    ['cherryservers://', true],
    ['17', true],
    ['hcloud://1', false],
    ['aws:///eu/i-1', false],
    ['abc', false],
  ] as const)
    t.equal(provider.owns(id), ours, id)
  await t.rejects(provider.instances.find(node('x', { providerId: 'cherryservers://lt/1' }), call), {
    code: 'malformed_provider_id',
  })
})

t.test('either class of address will do, and what is missing is said', async (t) => {
  const [server] = twoServers.servers
  const only = (type: string) => ({ servers: [{ ...server, ip_addresses: [{ address: '10.1.1.1', type }] }] })
  const b = await bench(t, { account: only('private-ip') })
  t.match(await b.provider.instances.find(node('worker-1'), b.call), {
    kind: 'found',
    notes: [{ reason: 'AddressMissing', message: /public/ }],
  })
  const none = await bench(t, { account: { servers: [{ ...server, ip_addresses: [], state: 'inactive' }] } })
  t.match(await none.provider.instances.find(node('worker-1'), b.call), {
    kind: 'found',
    instance: { addresses: [], silentOn: ['ExternalIP', 'InternalIP'], off: true },
  })
})

t.test('what a list leaves out is asked for by id', async (t) => {
  const b = await bench(t)
  for (const field of ['ip_addresses', 'region', 'plan']) {
    b.simulator.control.fault({ match: 'GET /projects/{id}/servers', kind: 'field', field: `*.${field}`, times: -1 })
    for (const given of [node('worker-1'), node('any', { providerId: '383531' })]) {
      t.match(await b.worker().instances.find(given, b.call), {
        kind: 'found',
        instance: { instanceType: 'e5_1620v4', region: 'LT-Siauliai', silentOn: [], addresses: { length: 3 } },
      })
    }
    b.simulator.control.fault('clear')
  }
})

t.test('a name that is nobody’s or two servers’ is never guessed', async (t) => {
  const [server] = twoServers.servers
  const twin = { ...server, id: 383599, ip_addresses: [] }
  const b = await bench(t, { account: { servers: [server, twin] } })
  t.match(await b.provider.instances.find(node('worker-1'), b.call), { kind: 'ambiguous', message: /383531.*383599/ })
  t.match(await b.provider.instances.find(node('worker-2'), b.call), { kind: 'not-found', nearest: 'worker-1' })
})

t.test('a server that joined just now is seen, and an inactive one is off', async (t) => {
  const b = await bench(t)
  await b.provider.instances.listProviderIds(b.call)
  await b.simulator.control.mutate({
    servers: [
      {
        create: {
          id: 383540,
          hostname: 'late',
          region: 'LT-Siauliai',
          plan: 'p',
          ip_addresses: [{ address: '5.1.1.9', type: 'primary-ip' }],
        },
      },
      { hostname: 'worker-1', state: 'inactive' },
    ],
  })
  const found = await b.provider.instances.find(node('late'), b.call)
  t.equal(found.kind, 'found')
  const off = await b.provider.instances.find(node('worker-1', { providerId: '383531' }), b.call, { fresh: true })
  if (off.kind === 'found') t.equal(await b.provider.instances.isOff(off.instance, b.call), true)
})
