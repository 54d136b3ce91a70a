import t, { type Test } from 'tap'
import { type BenchOptions, bench, callOf, node, secret, servers } from './bench.ts'

async function open(t: Test, options: BenchOptions = {}) {
  const opened = await bench(options)
  t.teardown(() => opened.close())
  return { ...opened, find: (...args: Parameters<typeof find>) => find(...args) }

  function find(one: ReturnType<typeof node>, more?: { fresh?: boolean }) {
    return opened.provider.instances.find(one, opened.call, more)
  }
}

const NETWORKS = [500, 501].map((id, i) => ({
  id,
  name: i === 0 ? 'net' : 'second',
  ip_range: `10.${i}.0.0/16`,
  subnets: [{ type: 'cloud', ip_range: `10.${i}.0.0/24`, network_zone: 'eu-central' }],
}))

t.test('a cloud server is found by name, with its labels and addresses in order', async (t) => {
  const of = await open(t, {
    account: {
      networks: NETWORKS,
      servers: [
        {
          id: 1,
          name: 'w1',
          private_net: [
            { network: 'second', ip: '10.1.0.9' },
            { network: 'net', ip: '10.0.0.11', alias_ips: ['10.0.0.12'] },
          ],
        },
      ],
    },
    settings: { network: '500', addressFamily: 'dualstack' },
  })
  const lookup = await of.find(node('w1'))
  t.match(lookup, {
    kind: 'found',
    instance: {
      providerId: 'hcloud://1',
      name: 'w1',
      instanceType: 'cx22',
      region: 'fsn1',
      zone: 'fsn1-dc14',
      additionalLabels: { 'instance.hetzner.cloud/provided-by': 'cloud' },
      off: false,
    },
  })
  t.strictSame(lookup.kind === 'found' && lookup.instance.addresses.map(({ type, address }) => `${type} ${address}`), [
    'Hostname w1',
    'ExternalIP 198.51.100.1',
    'ExternalIP 2001:db8:1::1',
    'InternalIP 10.0.0.11',
  ])
})

t.test('a server with a provider id is found by it, whatever its name', async (t) => {
  const of = await open(t, { account: { servers: [{ id: 42, name: 'real' }] }, settings: { zoneLabelEnabled: false } })
  const lookup = await of.find(node('other', { providerId: 'hcloud://42' }))
  t.match(lookup, { kind: 'found', instance: { name: 'real', region: 'fsn1', zone: undefined } })
  await t.rejects(of.find(node('x', { providerId: 'hcloud://x' })), { kind: 'permanent', message: /has no number/ })
})

t.test('what is not found says where it was looked for, and what is nearest', async (t) => {
  const of = await open(t, {
    account: {
      servers: [
        { id: 1, name: 'worker-1' },
        { id: 2, name: 'db' },
      ],
    },
  })
  t.match(await of.find(node('worker-l')), {
    kind: 'not-found',
    searched: /"worker-l".*\(2 servers\)/,
    nearest: 'worker-1',
  })
  t.match(await of.find(node('zzzzzzzzzz')), { kind: 'not-found', nearest: undefined })
  t.match(await of.find(node('w', { providerId: 'hcloud://99' }), { fresh: true }), {
    kind: 'not-found',
    searched: /server 99/,
  })
})

t.test('a machine that is gone, while another has its name, was replaced', async (t) => {
  const of = await open(t, {
    account: {
      servers: [
        { id: 17, name: 'w1' },
        { id: 2, name: 'w2' },
      ],
      robot_servers: [{ server_number: 321, server_name: 'r1' }],
    },
    robot: {},
  })
  const replaced = (gone: string, now: string) => ({
    kind: 'not-found',
    notes: [
      {
        type: 'Warning',
        reason: 'MachineReplaced',
        message: new RegExp(`^${gone} is gone.* is ${now} now.*delete Node`),
      },
    ],
  })
  for (const serverCacheMode of ['all', 'one', 'off'] as const)
    for (const fresh of [false, true]) {
      const { instances } = of.worker({ settings: of.settings({ serverCacheMode }) })
      const find = (name: string, providerId: string) => instances.find(node(name, { providerId }), of.call, { fresh })
      const what = `${serverCacheMode} ${fresh}`
      t.match(await find('w1', 'hcloud://1'), replaced('hcloud://1', 'hcloud://17'), what)
      t.match(await find('r1', 'hrobot://9'), replaced('hrobot://9', 'hrobot://321'), what)
      t.match(await find('w9', 'hcloud://9'), { kind: 'not-found', notes: { length: 0 } }, what)
      t.match(await find('w1', 'hcloud://2'), { kind: 'found' }, what)
    }
  of.simulator.control.fault({ match: 'GET /servers', kind: 'error', code: 'server_error', times: -1 })
  const { instances } = of.worker({ settings: of.settings({ serverCacheMode: 'off' }) })
  const alone = await instances.find(node('w1', { providerId: 'hcloud://1' }), of.call)
  t.match(alone, { kind: 'not-found', notes: { length: 0 } }, 'that it is gone is an answer without it')
})

t.test('initialising 500 nodes takes ten pages and one more', async (t) => {
  const ids = Array.from({ length: 500 }, (_, i) => i + 1)
  const of = await open(t, {
    account: { servers: ids.map((id) => ({ id, name: `w${id}`, ipv4: `100.64.${id >> 8}.${id & 255}` })) },
  })
  const found = await Promise.all(ids.map((id) => of.find(node(`w${id}`))))
  t.ok(found.every(({ kind }) => kind === 'found'))
  await of.find(node('ghost'))
  t.ok((of.calls()['GET /servers'] ?? 0) <= 11, 'absence in a fresh list is believed')
})

t.test('a list that may be older than a node does not say that it has no server', async (t) => {
  const of = await open(t, { account: { servers: servers(1, 2) } })
  const joined = (agoMs: number) => ({ creationTimestamp: new Date(Date.now() - agoMs).toISOString() })
  t.match(await of.find(node('w1')), { kind: 'found' })
  of.simulator.control.mutate({ servers: [{ create: { id: 3, name: 'w3' } }, { create: { id: 4, name: 'w4' } }] })
  of.calls()
  t.match(await of.find(node('w3', joined(3_600_000))), { kind: 'not-found' })
  t.same(of.calls(), {}, 'a node of long ago is believed to have none')
  t.match(await of.find(node('w3', joined(0))), { kind: 'found' })
  t.match(await of.find(node('any', { providerId: 'hcloud://4', ...joined(0) })), { kind: 'found' })
  t.same(of.calls(), { 'GET /servers': 1 }, 'one list for both')

  of.simulator.control.mutate({ servers: [{ create: { id: 5, name: 'w5' } }] })
  t.match(await of.find(node('w5', { providerId: 'hcloud://5' }), { fresh: true }), { kind: 'found' })
  t.match(await of.find(node('w5')), { kind: 'found' })
  t.same(of.calls(), { 'GET /servers/{id}': 1 }, 'what was asked for by itself is known')

  of.simulator.control.mutate({ servers: [{ name: 'w5', delete: true }, { create: { id: 6, name: 'w5' } }] })
  await of.find(node('w5', { providerId: 'hcloud://6' }), { fresh: true })
  t.match(await of.find(node('w5')), { instance: { providerId: 'hcloud://6' } }, 'and it is alone with its name')
  of.calls()

  const ghosts = Array.from({ length: 20 }, (_, i) => of.find(node(`ghost${i}`, joined(2000))))
  for (const ghost of await Promise.all(ghosts)) t.match(ghost, { kind: 'not-found' })
  t.ok((of.calls()['GET /servers'] ?? 0) <= 1, 'that many have none takes a list at most')
})

t.test('cache modes ask for what they say', async (t) => {
  const of = await open(t, { account: { servers: servers(1, 2) } })
  for (const [mode, expected] of [
    ['all', { 'GET /servers': 1 }],
    ['one', { 'GET /servers': 1 }],
    ['off', { 'GET /servers': 1, 'GET /servers/{id}': 1 }],
  ] as const) {
    const { instances } = of.worker({ settings: of.settings({ serverCacheMode: mode }) })
    of.calls()
    t.match(await instances.find(node('w1'), of.call), { kind: 'found' })
    t.match(await instances.find(node('w1', { providerId: 'hcloud://1' }), of.call), { kind: 'found' })
    t.strictSame(of.calls(), expected, mode)
    t.equal((await instances.listProviderIds(of.call)).size, 2, `${mode}: lists are complete`)
  }
})

t.test('an error is never "not found"', async (t) => {
  const of = await open(t, { account: { servers: servers(1, 2, 3) }, settings: { serverCacheMaxAgeMs: 0 } })
  const one = node('w1', { providerId: 'hcloud://1' })
  for (const fault of [
    { kind: 'error', code: 'server_error' },
    { kind: 'html', status: 200 },
    { kind: 'http', status: 404, body: '<html>' },
    { kind: 'error', code: 'unauthorized' },
    { kind: 'error', code: 'forbidden' },
    { kind: 'rate-limit', reset_s: 1 },
    { kind: 'field', field: 'server' },
    { kind: 'truncated' },
  ]) {
    const { instances } = of.worker()
    of.simulator.control.fault({ match: 'GET /servers/{id}', times: 2, ...fault })
    await t.rejects(instances.find(one, of.call, { fresh: true }), { name: 'WindlassError' }, JSON.stringify(fault))
    of.simulator.control.fault({ clear: true })
  }
  for (const fault of [
    { kind: 'partial-page' },
    { kind: 'field', field: 'servers' },
    { kind: 'field', field: 'servers.*.id' },
  ]) {
    const { instances } = of.worker()
    of.simulator.control.fault({ match: 'GET /servers', times: 2, ...fault })
    await t.rejects(
      instances.find(node('w9'), of.call),
      { kind: 'transient', message: /listing servers/ },
      JSON.stringify(fault),
    )
    of.simulator.control.fault({ clear: true })
  }
})

t.test('fields that are missing, null or new break nothing', async (t) => {
  const of = await open(t, { account: { servers: servers(1) }, settings: { serverCacheMaxAgeMs: 0 } })
  for (const field of [
    'servers.*.public_net',
    'servers.*.private_net',
    'servers.*.location',
    'servers.*.server_type',
    'servers.*.status',
    'meta',
  ])
    for (const value of [undefined, null, 7, 'new']) {
      of.simulator.control.fault({
        match: 'GET /servers',
        kind: 'field',
        field,
        ...(value === undefined ? {} : { value }),
      })
      t.match(await of.find(node('w1')), { kind: 'found' }, `${field} ${value}`)
    }
})

t.test('power is asked of the cloud now', async (t) => {
  const of = await open(t, {
    account: {
      servers: servers(1),
      robot_servers: [
        { server_number: 321, server_name: 'r1', operating_status: 'shut off' },
        { server_number: 322, server_name: 'r2', operating_status: 'not supported' },
      ],
    },
    robot: {},
  })
  const off = async (one: ReturnType<typeof node>) => {
    const lookup = await of.find(one)
    return lookup.kind === 'found' && of.provider.instances.isOff(lookup.instance, of.call)
  }
  t.equal(await off(node('w1')), false)
  of.simulator.control.mutate({ servers: [{ name: 'w1', set: { status: 'off' } }] })
  t.equal(await off(node('w1')), true)
  t.equal(await off(node('r1')), true)
  t.equal(await off(node('r2')), false)
})

t.test('a Robot server has its own id, labels, and the addresses that kubelet knows', async (t) => {
  const of = await open(t, {
    account: {
      robot_servers: [
        {
          server_number: 323,
          server_name: 'r3',
          product: 'EX44 (Ü) #2',
          dc: 'NBG1-DC3',
          server_ip: '203.0.113.9',
          server_ipv6_net: '2001:db8:b0b::',
        },
      ],
    },
    settings: { addressFamily: 'dualstack' },
    robot: {},
  })
  const addresses = ['10.1.0.5', '203.0.113.9', 'fd00::5'].map((address) => ({ type: 'InternalIP', address }))
  const lookup = await of.find(node('r3', { addresses }))
  t.match(lookup, {
    kind: 'found',
    instance: {
      providerId: 'hrobot://323',
      instanceType: 'EX44 (Ü) #2',
      region: 'nbg1',
      zone: 'nbg1-dc3',
      additionalLabels: { 'instance.hetzner.cloud/provided-by': 'robot' },
    },
    notes: [{ reason: 'MisconfiguredInternalIP', message: /203.0.113.9/ }],
  })
  t.strictSame(lookup.kind === 'found' && lookup.instance.addresses.map(({ address }) => address), [
    'r3',
    '2001:db8:b0b::1',
    '203.0.113.9',
    '10.1.0.5',
    'fd00::5',
  ])
})

t.test(
  'the IPv6 address that a node names goes before the first of the subnet, and is the only one of a Robot server without',
  async (t) => {
    const account = {
      servers: [{ id: 1, name: 'w1' }],
      robot_servers: [{ server_number: 323, server_name: 'r3', server_ip: '203.0.113.9', server_ipv6_net: '' }],
    }
    const named = (name: string, text: string) =>
      node(name, { annotations: { 'instance.hetzner.cloud/external-ipv6': text } })
    const of = await open(t, { account, settings: { addressFamily: 'dualstack' }, robot: {} })
    const externals = (lookup: Awaited<ReturnType<typeof of.find>>) =>
      lookup.kind === 'found' &&
      lookup.instance.addresses.flatMap(({ type, address }) => (type === 'ExternalIP' ? [address] : []))
    t.same(externals(await of.find(named('w1', '2001:DB8:1:0::5'))), ['198.51.100.1', '2001:db8:1::5'])
    t.same(externals(await of.find(named('w1', 'fd00::5'))), ['198.51.100.1', 'fd00::5'], 'private ones are global too')
    t.same(externals(await of.find(named('r3', '2001:db8:b0b::7'))), ['2001:db8:b0b::7', '203.0.113.9'])
    for (const text of [
      '',
      '2001:db8::/64',
      '198.51.100.1',
      '::ffff:1.2.3.4',
      'fe80::1',
      'fe80::1%eth0',
      'ff02::1',
      '::1',
      '::',
      'x',
    ])
      for (const name of ['w1', 'r3'])
        t.match(
          await of.find(named(name, text)),
          {
            kind: 'found',
            instance: { fault: { reason: 'InvalidExternalIPv6', message: /external-ipv6 ".*" is no global/ } },
          },
          `${name} ${text}`,
        )

    const without = await open(t, { account, settings: { addressFamily: 'ipv4' }, robot: {} })
    for (const name of ['w1', 'r3']) {
      const lookup = await without.find(named(name, 'x'))
      t.match(lookup, { kind: 'found', notes: [{ reason: 'IgnoredExternalIPv6', message: /ADDRESS_FAMILY/ }] })
      t.notOk(lookup.kind === 'found' && lookup.instance.fault)
    }
  },
)

t.test('numbers of cloud and Robot are never mixed up', async (t) => {
  const of = await open(t, {
    account: { servers: [{ id: 7, name: 'cloud' }], robot_servers: [{ server_number: 7, server_name: 'metal' }] },
    robot: {},
  })
  t.match(await of.find(node('cloud', { providerId: 'hcloud://7' })), { instance: { name: 'cloud' } })
  t.match(await of.find(node('metal', { providerId: 'hrobot://7' })), { instance: { name: 'metal' } })
  t.match(await of.find(node('metal', { providerId: 'hcloud://bm-7' })), { instance: { name: 'metal' } })
  t.strictSame([...(await of.provider.instances.listProviderIds(of.call))].sort(), [
    'hcloud://7',
    'hcloud://bm-7',
    'hrobot://7',
  ])
  t.not(of.provider.credentialId('hcloud://7'), of.provider.credentialId('hrobot://7'))
})

t.test('a Robot server of another name is another machine, and a name in both is nobody’s', async (t) => {
  const of = await open(t, {
    account: {
      servers: servers(1),
      robot_servers: [
        { server_number: 321, server_name: 'elsewhere' },
        { server_number: 322, server_name: 'w1' },
      ],
    },
    robot: {},
  })
  t.match(await of.find(node('r1', { providerId: 'hrobot://321' })), {
    kind: 'not-found',
    nearest: 'elsewhere',
    notes: [{ reason: 'PossibleNodeDeletion', node: 'r1' }],
  })
  t.match(await of.find(node('w1')), { kind: 'ambiguous', notes: [{ reason: 'InstanceLookupFailed' }] })
})

t.test("Robot's trouble stops no cloud node", async (t) => {
  const of = await open(t, { account: { servers: servers(1) }, robot: { password: secret('ROBOT_PASSWORD', 'wrong') } })
  t.match(await of.find(node('w1')), { kind: 'found', instance: { providerId: 'hcloud://1' } })
  await t.rejects(of.find(node('r1')), { kind: 'permanent', message: /ROBOT_USER and ROBOT_PASSWORD/ })
  for (let i = 0; i < 5; i++)
    await t.rejects(of.find(node('r1', { providerId: 'hrobot://1' })), { kind: 'permanent', message: /refused/ })
  t.match(await of.find(node('w1')), { kind: 'found' })
  t.equal(of.calls()['ROBOT GET /server'], 1, 'a refused login is never tried again')
})

t.test('a Robot node without a Robot client is an error, not a loss', async (t) => {
  const of = await open(t, { account: { servers: servers(1) } })
  await t.rejects(of.find(node('r1', { providerId: 'hrobot://1' })), {
    kind: 'permanent',
    message: /no Robot client is configured/,
  })
})

t.test('a used-up Robot limit pauses Robot, and what is known serves meanwhile', async (t) => {
  const of = await open(t, {
    account: { robot_servers: [{ server_number: 321, server_name: 'r1' }] },
    robot: { cacheTimeoutMs: 0, rateLimitWaitTimeMs: 60_000 },
  })
  t.match(await of.find(node('r1')), { kind: 'found' })
  of.simulator.control.fault({ match: 'ROBOT GET /server', kind: 'rate-limit', times: -1 })
  t.match(await of.find(node('r1', { providerId: 'hrobot://321' })), { kind: 'found' })
  await t.rejects(of.find(node('r9', { providerId: 'hrobot://9' })), { kind: 'throttled', message: /Robot/ })
  t.equal(of.calls()['ROBOT GET /server'], 2)
})

t.test('an empty Robot account is empty', async (t) => {
  const of = await open(t, { account: { servers: servers(1) }, robot: {} })
  t.match(await of.find(node('w1')), { kind: 'found' })
  t.match(await of.find(node('r1')), { kind: 'not-found', searched: /Robot account \(0 servers\)/ })
})

t.test('first contact checks the token, the network and the attachment', async (t) => {
  const account = {
    networks: NETWORKS,
    servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.11' }] }],
    metadata: { server: 'w1' },
  }
  const of = await open(t, { account, settings: { networkDisableAttachedCheck: false } })
  const check = (more: Parameters<typeof of.settings>[0]) => of.worker({ settings: of.settings(more) }).check(callOf())
  await check({})
  await check({ network: 'net' })
  await t.rejects(check({ network: 'second' }), { kind: 'permanent', message: /not attached to network "second"/ })
  await t.rejects(check({ network: 'nope' }), { kind: 'permanent', message: /no network "nope"/ })
  await t.rejects(check({ token: secret('HCLOUD_TOKEN', 'x'.repeat(64)) }), {
    kind: 'permanent',
    message: /HCLOUD_TOKEN/,
  })
  await t.rejects(check({ endpoint: 'http://127.0.0.1:1/v1' }), { kind: 'transient', message: /no answer/ })
})
