import t from 'tap'
import { call, finished, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const account = {
  networks: [
    { id: 500, name: 'net', subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24' }] },
    { id: 501, name: 'far', subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'us-east' }] },
  ],
  servers: [
    { id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.2' }] },
    { id: 2, name: 'w2', ipv4: null },
  ],
  load_balancer_types: [
    { name: 'tiny', max_targets: 1, max_services: 1 },
    { name: 'old', deprecation: { announced: '2020-01-01T00:00:00Z', unavailable_after: '2021-01-01T00:00:00Z' } },
  ],
}

const minimal = { name: 'web', load_balancer_type: 'lb11', location: 'fsn1' }

t.test('one call makes a load balancer with everything in it', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 1 } })
  t.teardown(() => simulator.close())
  simulator.control.seed(account)
  const created = await call(simulator, 'POST', '/load_balancers', {
    name: 'web',
    load_balancer_type: 1,
    location: 'fsn1',
    algorithm: { type: 'least_connections' },
    labels: { 'hcloud-ccm/service-uid': 'u-1' },
    public_interface: false,
    network: 500,
    services: [
      { protocol: 'tcp', listen_port: 80, destination_port: 30080, health_check: { protocol: 'tcp', port: 30080 } },
    ],
    targets: [{ type: 'server', server: { id: 1 }, use_private_ip: true }],
  })
  t.equal(created.status, 201)
  t.match(created.body.action, { command: 'create_load_balancer' })
  t.match(await finished(simulator, created), { status: 'success' })
  const { load_balancer } = (await call(simulator, 'GET', `/load_balancers/${created.body.load_balancer.id}`)).body
  t.match(load_balancer, {
    name: 'web',
    labels: { 'hcloud-ccm/service-uid': 'u-1' },
    algorithm: { type: 'least_connections' },
    public_net: { enabled: false },
    location: { name: 'fsn1', network_zone: 'eu-central' },
    load_balancer_type: { name: 'lb11', max_targets: 25, deprecation: null },
  })
  t.strictSame(load_balancer.private_net, [{ network: 500, ip: '10.0.0.3' }], 'the first free address')
  t.strictSame(load_balancer.services, [
    {
      protocol: 'tcp',
      listen_port: 80,
      destination_port: 30080,
      proxyprotocol: false,
      health_check: { protocol: 'tcp', port: 30080, interval: 15, timeout: 10, retries: 3 },
    },
  ])
  t.match(load_balancer.targets, [{ type: 'server', server: { id: 1 }, use_private_ip: true }])
  t.strictSame((await call(simulator, 'GET', '/servers/1')).body.server.load_balancers, [load_balancer.id])
  t.match(simulator.control.state().load_balancers, [
    { private_net: [{ network: 500, ip: '10.0.0.3', requested_ip: undefined, subnet: '10.0.0.0/24' }] },
  ])
})

t.test('step by step it comes to the same', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 0 } })
  t.teardown(() => simulator.close())
  simulator.control.seed(account)
  const service = {
    protocol: 'http',
    listen_port: 80,
    destination_port: 30080,
    http: { cookie_lifetime: 600 },
    health_check: { protocol: 'http', port: 9000, interval: 7 },
  }
  const targets = [{ type: 'server', server: { id: 1 }, use_private_ip: true }]
  const rest = { algorithm: { type: 'least_connections' }, public_interface: true }
  await call(simulator, 'POST', '/load_balancers', { ...minimal, ...rest, network: 500, services: [service], targets })
  const { id } = (await call(simulator, 'POST', '/load_balancers', { ...minimal, name: 'steps' })).body.load_balancer
  for (const [command, body] of [
    ['change_algorithm', rest.algorithm],
    ['attach_to_network', { network: 500 }],
    ['add_service', service],
    ['add_target', targets[0]],
  ] as const) {
    t.equal((await call(simulator, 'POST', `/load_balancers/${id}/actions/${command}`, body)).status, 201)
  }
  const [atOnce, steps] = simulator.control.state().load_balancers as Record<string, unknown>[]
  for (const same of ['services', 'targets', 'algorithm', 'labels', 'load_balancer_type', 'location']) {
    t.strictSame(steps?.[same], atOnce?.[same], same)
  }
})

t.test('a network zone in place of a location', async (t) => {
  const simulator = await startHcloudSimulator()
  t.teardown(() => simulator.close())
  const body = { name: 'web', load_balancer_type: '1', network_zone: 'us-east' }
  const { load_balancer } = (await call(simulator, 'POST', '/load_balancers', body)).body
  t.equal(load_balancer.location.name, 'ash')
  t.notOk('by_zone' in load_balancer)
  t.match(simulator.control.state().load_balancers, [{ by_zone: 'us-east' }])
})

t.test('what is refused leaves nothing behind', async (t) => {
  const simulator = await startHcloudSimulator({ options: { max_load_balancers: 2 } })
  t.teardown(() => simulator.close())
  simulator.control.seed({ ...account, load_balancers: [{ name: 'taken' }] })
  const service = { protocol: 'tcp', listen_port: 80, destination_port: 30080 }
  const target = { type: 'server', server: { id: 1 } }
  const cases: [body: object, refused: string][] = [
    [{ ...minimal, colour: 'red' }, 'invalid_input colour'],
    [{ ...minimal, labels: null }, 'invalid_input labels'],
    [{ ...minimal, labels: { 'a b': 'c' } }, 'invalid_input labels.a b'],
    [{ ...minimal, labels: { a: 'c d' } }, 'invalid_input labels.a'],
    [{ ...minimal, name: '' }, 'invalid_input name'],
    [{ ...minimal, name: ' web' }, 'invalid_input name'],
    [{ load_balancer_type: 'lb11', location: 'fsn1' }, 'invalid_input name'],
    [{ ...minimal, name: 'taken' }, 'uniqueness_error name'],
    [{ ...minimal, location: 'moon1' }, 'invalid_input location'],
    [{ ...minimal, network_zone: 'eu-central' }, 'invalid_input location'],
    [{ name: 'web', load_balancer_type: 'lb11' }, 'invalid_input location'],
    [{ name: 'web', load_balancer_type: 'lb11', network_zone: 'mars' }, 'invalid_input network_zone'],
    [{ ...minimal, load_balancer_type: 'lb99' }, 'invalid_input load_balancer_type'],
    [{ ...minimal, load_balancer_type: 'old' }, 'resource_unavailable'],
    [{ ...minimal, algorithm: 'round_robin' }, 'invalid_input algorithm'],
    [{ ...minimal, algorithm: { type: 'random' } }, 'invalid_input algorithm.type'],
    [{ ...minimal, public_interface: 'no' }, 'invalid_input public_interface'],
    [{ ...minimal, network: 77 }, 'not_found'],
    [{ ...minimal, network: 501 }, 'no_subnet_available'],
    [{ ...minimal, services: [service, service] }, 'source_port_already_used'],
    [{ ...minimal, services: [{ ...service, destination_port: 0 }] }, 'invalid_input services.0.destination_port'],
    [
      { ...minimal, load_balancer_type: 'tiny', services: [service, { ...service, listen_port: 81 }] },
      'resource_limit_exceeded',
    ],
    [{ ...minimal, targets: [target, target] }, 'target_already_defined'],
    [{ ...minimal, targets: [{ ...target, use_private_ip: true }] }, 'load_balancer_not_attached_to_network'],
    [{ ...minimal, targets: [{ type: 'server', server: { id: 2 } }] }, 'missing_ipv4'],
    [{ ...minimal, targets: [{ type: 'server', server: { id: 9 } }] }, 'not_found'],
    [{ ...minimal, public_interface: false, targets: [target] }, 'load_balancer_public_interface_disabled'],
  ]
  for (const [body, refused] of cases) {
    t.equal(refusal(await call(simulator, 'POST', '/load_balancers', body)), refused, JSON.stringify(body))
  }
  t.equal(simulator.control.state().load_balancers?.length, 1)
  t.equal((await call(simulator, 'POST', '/load_balancers', minimal)).status, 201)
  const overQuota = await call(simulator, 'POST', '/load_balancers', { ...minimal, name: 'third' })
  t.equal(overQuota.status, 403)
  t.equal(refusal(overQuota), 'resource_limit_exceeded')
})

t.test('two at once in one network', async (t) => {
  for (const create_network_conflict of [true, false]) {
    const simulator = await startHcloudSimulator({ options: { create_network_conflict, action_ms: 60_000 } })
    t.teardown(() => simulator.close())
    simulator.control.seed(account)
    await call(simulator, 'POST', '/load_balancers', { ...minimal, network: 500 })
    const second = await call(simulator, 'POST', '/load_balancers', { ...minimal, name: 'second', network: 500 })
    t.equal(refusal(second), create_network_conflict ? 'conflict' : '201')
  }
})

t.test('a failed creation takes the load balancer away', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 1 } })
  t.teardown(() => simulator.close())
  simulator.control.fault({ match: 'POST /load_balancers', kind: 'action-error', code: 'server_error' })
  const created = await call(simulator, 'POST', '/load_balancers', minimal)
  t.match(await finished(simulator, created), { status: 'error', error: { code: 'server_error' } })
  t.equal((await call(simulator, 'GET', `/load_balancers/${created.body.load_balancer.id}`)).status, 404)
})
