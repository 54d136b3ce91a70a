import t from 'tap'
import { call, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const account = {
  networks: [
    {
      id: 500,
      name: 'net',
      subnets: [
        { type: 'cloud', ip_range: '10.0.0.0/24' },
        { type: 'cloud', ip_range: '10.0.5.0/29' },
        { type: 'vswitch', ip_range: '10.1.0.0/24' },
      ],
    },
    { id: 501, name: 'vswitch-only', subnets: [{ type: 'vswitch', ip_range: '10.1.0.0/24' }] },
    { id: 502, name: 'far', subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'us-east' }] },
  ],
  servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.11', alias_ips: ['10.0.0.12'] }] }],
  robot_servers: [{ server_number: 321, server_name: 'r1' }],
  load_balancers: [{ id: 1, name: 'lb' }],
}

t.test('a load balancer in a network', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 0 } })
  t.teardown(() => simulator.close())
  t.beforeEach(() => {
    simulator.control.reset()
    simulator.control.seed(account)
  })
  const act = (command: string, body?: object) => call(simulator, 'POST', `/load_balancers/1/actions/${command}`, body)
  const read = async () => (await call(simulator, 'GET', '/load_balancers/1')).body.load_balancer

  t.test('gets the first free address, or the one it asks for', async (t) => {
    for (const [body, address] of [
      [{ network: 500 }, '10.0.0.2'],
      [{ network: 500, ip_range: '10.0.5.0/29' }, '10.0.5.2'],
      [{ network: 500, ip: '10.0.5.6' }, '10.0.5.6'],
      [{ network: 500, ip: '10.0.0.100', ip_range: '10.0.0.0/24' }, '10.0.0.100'],
    ] as const) {
      const attached = await act('attach_to_network', body)
      t.match(attached.body.action.resources, [{ type: 'load_balancer' }, { id: 500, type: 'network' }])
      t.strictSame((await read()).private_net, [{ network: 500, ip: address }])
      t.strictSame((await call(simulator, 'GET', '/networks/500')).body.network.load_balancers, [1])
      await act('detach_from_network', { network: 500 })
    }
  })

  t.test('is refused an address or subnet that it cannot have', async (t) => {
    const cases: [body: object, refused: string][] = [
      [{ network: 99 }, 'not_found'],
      [{ network: 'net' }, 'invalid_input network'],
      [{ network: 500, ip: '10.0.0' }, 'invalid_input ip'],
      [{ network: 500, ip: '192.168.1.1' }, 'ip_not_available'],
      [{ network: 500, ip: '10.0.0.11' }, 'ip_not_available'],
      [{ network: 500, ip: '10.0.0.12' }, 'ip_not_available'],
      [{ network: 500, ip: '10.0.0.1' }, 'ip_not_available'],
      [{ network: 500, ip: '10.0.5.7' }, 'ip_not_available'],
      [{ network: 500, ip: '10.1.0.9' }, 'ip_not_available'],
      [{ network: 500, ip_range: '10.3.0.0/24' }, 'no_subnet_available'],
      [{ network: 500, ip_range: '10.0.0.5/24' }, 'invalid_input ip_range'],
      [{ network: 500, ip_range: '10.0.0.0/24', ip: '10.0.5.2' }, 'invalid_input ip'],
      [{ network: 501 }, 'no_subnet_available'],
      [{ network: 502 }, 'no_subnet_available'],
    ]
    for (const [body, refused] of cases) t.equal(refusal(await act('attach_to_network', body)), refused)
    t.strictSame((await read()).private_net, [])
  })

  t.test('is in one network only', async (t) => {
    await act('attach_to_network', { network: 500 })
    t.equal(refusal(await act('attach_to_network', { network: 500 })), 'load_balancer_already_attached')
    t.equal(refusal(await act('detach_from_network', { network: 501 })), 'load_balancer_not_attached_to_network')
  })

  t.test('loses its private targets with the network', async (t) => {
    await act('attach_to_network', { network: 500 })
    await act('add_target', { type: 'server', server: { id: 1 }, use_private_ip: true })
    await act('add_target', { type: 'ip', ip: { ip: '10.1.0.5' } })
    await act('add_target', { type: 'ip', ip: { ip: '203.0.113.1' } })
    await act('detach_from_network', { network: 500 })
    t.match((await read()).targets, [{ type: 'ip', ip: { ip: '203.0.113.1' } }])
  })

  t.test('goes private only with a network and without public targets', async (t) => {
    t.equal(refusal(await act('disable_public_interface')), 'load_balancer_not_attached_to_network')
    await act('attach_to_network', { network: 500 })
    await act('add_target', { type: 'server', server: { id: 1 } })
    t.equal(refusal(await act('disable_public_interface')), 'targets_without_use_private_ip')
    await act('remove_target', { type: 'server', server: { id: 1 } })
    t.equal((await act('disable_public_interface', {})).status, 201, 'an empty body is as good as none')
    t.equal((await read()).public_net.enabled, false)
    t.equal((await act('enable_public_interface')).status, 201)
    t.equal((await read()).public_net.enabled, true)
    t.equal(refusal(await act('enable_public_interface', { now: true })), 'invalid_input now')
  })
})
