import t from 'tap'
import { call, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const vswitch = { type: 'vswitch', ip_range: '10.1.0.0/24', vswitch_id: 7 }
const account = {
  networks: [
    { id: 500, name: 'net', subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24' }, vswitch] },
    { id: 501, name: 'plain', subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24' }] },
  ],
  servers: [
    { id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.11' }], labels: { role: 'worker' } },
    { id: 2, name: 'w2' },
    { id: 3, name: 'w3', ipv4: null, private_net: [{ network: 'net', ip: '10.0.0.13' }] },
  ],
  robot_servers: [{ server_number: 321, server_name: 'r1' }],
  load_balancers: [
    { id: 1, name: 'joined', private_net: [{ network: 'net' }] },
    { id: 2, name: 'alone' },
    { id: 3, name: 'plain', private_net: [{ network: 'plain' }] },
    { id: 4, name: 'private', private_net: [{ network: 'net' }], public_net: { enabled: false } },
  ],
}

const server = (id: number, use_private_ip?: boolean): object => ({
  type: 'server',
  server: { id },
  ...(use_private_ip === undefined ? {} : { use_private_ip }),
})
const ip = (address: string): object => ({ type: 'ip', ip: { ip: address } })
const selector = (source: string): object => ({ type: 'label_selector', label_selector: { selector: source } })

t.test('targets', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 0 } })
  t.teardown(() => simulator.close())
  t.beforeEach(() => {
    simulator.control.reset()
    simulator.control.seed(account)
  })
  const add = (lb: number, body: object) => call(simulator, 'POST', `/load_balancers/${lb}/actions/add_target`, body)
  const remove = (lb: number, body: object) =>
    call(simulator, 'POST', `/load_balancers/${lb}/actions/remove_target`, body)
  const targets = async (lb: number) =>
    (await call(simulator, 'GET', `/load_balancers/${lb}`)).body.load_balancer.targets

  t.test('of all three kinds come and go', async (t) => {
    const all = [server(1, true), ip('203.0.113.1'), ip('10.1.0.5'), selector('role=worker')]
    for (const body of all) t.equal((await add(1, body)).status, 201, JSON.stringify(body))
    t.match(await targets(1), [
      { type: 'server', server: { id: 1 }, use_private_ip: true },
      { type: 'ip', ip: { ip: '203.0.113.1' } },
      { type: 'ip', ip: { ip: '10.1.0.5' } },
      { type: 'label_selector', targets: [{ server: { id: 1 } }] },
    ])
    for (const body of [server(1), ip('203.0.113.1'), ip('10.1.0.5'), selector('role=worker')]) {
      t.equal((await remove(1, body)).status, 201)
    }
    t.strictSame(await targets(1), [])
    t.equal(refusal(await remove(1, server(1))), 'not_found')
    t.equal(refusal(await remove(1, server(1, true))), 'invalid_input use_private_ip')
  })

  t.test('that cannot be reached are refused', async (t) => {
    const cases: [lb: number, body: object, refused: string][] = [
      [2, server(1, true), 'load_balancer_not_attached_to_network'],
      [1, server(2, true), 'server_not_attached_to_network'],
      [1, server(3), 'missing_ipv4'],
      [4, server(1), 'load_balancer_public_interface_disabled'],
      [4, ip('203.0.113.1'), 'load_balancer_public_interface_disabled'],
      [1, server(99), 'not_found'],
      [1, ip('203.0.113.99'), 'ip_not_owned'],
      [1, ip('198.51.100.2'), 'cloud_resource_ip_not_allowed'],
      [2, ip('10.1.0.5'), 'load_balancer_not_attached_to_network'],
      [3, ip('10.1.0.5'), 'network_has_no_vswitch_subnet'],
      [1, ip('10.0.0.11'), 'ip_not_in_vswitch_subnet'],
      [2, { ...selector('a'), use_private_ip: true }, 'load_balancer_not_attached_to_network'],
      [1, selector('a b'), 'invalid_input label_selector.selector'],
      [1, { ...ip('203.0.113.1'), use_private_ip: false }, 'invalid_input use_private_ip'],
      [1, { type: 'server' }, 'invalid_input server'],
      [1, { ...server(1), ip: { ip: '203.0.113.1' } }, 'invalid_input ip'],
      [1, { type: 'node', server: { id: 1 } }, 'invalid_input type'],
      [1, { type: 'server', server: 1 }, 'invalid_input server'],
      [1, { type: 'server', server: { id: 1, name: 'w1' } }, 'invalid_input server.name'],
    ]
    for (const [lb, body, refused] of cases) t.equal(refusal(await add(lb, body)), refused, JSON.stringify(body))
  })

  t.test('are defined once, public or private', async (t) => {
    await add(1, server(1))
    t.equal(refusal(await add(1, server(1, true))), 'target_already_defined')
  })

  t.test('are no more than the type takes', async (t) => {
    simulator.control.mutate({ load_balancer_types: [{ name: 'lb11', set: { max_targets: 1 } }] })
    await add(1, server(1))
    const second = await add(1, server(2))
    t.equal(second.status, 403)
    t.equal(refusal(second), 'resource_limit_exceeded')
  })

  t.test('go with their server', async (t) => {
    await add(1, server(1))
    simulator.control.mutate({ servers: [{ name: 'w1', delete: true }] })
    t.strictSame(await targets(1), [])
  })
})
