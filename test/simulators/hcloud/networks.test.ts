import t from 'tap'
import { call, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

t.test('routes of a network', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 0 } })
  t.teardown(() => simulator.close())
  const vswitch = { type: 'vswitch', ip_range: '10.1.0.0/24' }
  t.beforeEach(() => {
    simulator.control.reset()
    simulator.control.seed({
      networks: [{ id: 5, name: 'net', subnets: [{ type: 'cloud', ip_range: '10.0.1.0/24' }, vswitch] }],
      servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.1.11' }] }],
    })
  })
  const act = (command: string, destination: unknown, gateway: unknown) =>
    call(simulator, 'POST', `/networks/5/actions/${command}`, { destination, gateway })
  const read = async () => (await call(simulator, 'GET', '/networks/5')).body.network

  t.test('come and go', async (t) => {
    t.equal((await act('add_route', '10.244.1.0/24', '10.0.1.11')).status, 201)
    t.equal((await act('add_route', '0.0.0.0/0', '10.0.1.11')).status, 201)
    t.equal((await act('add_route', '192.168.7.0/24', '10.0.1.99')).status, 201, 'a gateway that nobody has')
    t.match(await read(), { name: 'net', servers: [1], load_balancers: [], subnets: [{ gateway: '10.0.1.1' }, {}] })
    t.equal((await act('delete_route', '0.0.0.0/0', '10.0.1.11')).status, 201)
    t.strictSame((await read()).routes, [
      { destination: '10.244.1.0/24', gateway: '10.0.1.11' },
      { destination: '192.168.7.0/24', gateway: '10.0.1.99' },
    ])
  })

  t.test('are deleted only with the right gateway', async (t) => {
    await act('add_route', '10.244.1.0/24', '10.0.1.11')
    t.equal(refusal(await act('delete_route', '10.244.1.0/24', '10.0.1.12')), 'not_found')
    t.equal(refusal(await act('delete_route', '10.244.2.0/24', '10.0.1.11')), 'not_found')
    t.equal(refusal(await act('delete_route', '10.244.1.0/24', '<nil>')), 'invalid_input gateway')
  })

  t.test('are refused where they would do harm', async (t) => {
    await act('add_route', '10.244.1.0/24', '10.0.1.11')
    const cases: [destination: unknown, gateway: unknown, refused: string][] = [
      ['10.244.2.5/24', '10.0.1.11', 'invalid_input destination'],
      ['10.244.2.0', '10.0.1.11', 'invalid_input destination'],
      ['fd00::/64', '10.0.1.11', 'invalid_input destination'],
      ['8.8.8.0/24', '10.0.1.11', 'invalid_input destination'],
      ['10.0.1.0/25', '10.0.1.11', 'invalid_input destination'],
      ['10.244.1.0/24', '10.0.1.12', 'invalid_input destination'],
      ['10.244.0.0/16', '10.0.1.11', 'invalid_input destination'],
      ['172.31.1.0/24', '10.0.1.11', 'invalid_input destination'],
      ['10.0.0.0/24', '10.0.1.11', 'invalid_input destination'],
      ['10.244.2.0/24', '10.0.2.11', 'invalid_input gateway'],
      ['10.244.2.0/24', '10.1.0.5', 'invalid_input gateway'],
      ['10.244.2.0/24', '10.0.1.1', 'invalid_input gateway'],
      ['10.244.2.0/24', 'w1', 'invalid_input gateway'],
      ['10.244.2.0/24', undefined, 'invalid_input gateway'],
    ]
    for (const [destination, gateway, refused] of cases) {
      t.equal(refusal(await act('add_route', destination, gateway)), refused, `${destination} via ${gateway}`)
    }
    t.equal((await read()).routes.length, 1)
  })

  t.test('are no more than a hundred', async (t) => {
    const routes = Array.from({ length: 100 }, (_, i) => ({ destination: `10.244.${i}.0/24`, gateway: '10.0.1.11' }))
    simulator.control.mutate({ networks: [{ name: 'net', set: { routes } }] })
    t.equal(refusal(await act('add_route', '10.244.100.0/24', '10.0.1.11')), 'resource_limit_exceeded')
  })

  t.test('belong to a network that exists', async (t) => {
    const body = { destination: '10.244.1.0/24', gateway: '10.0.1.11' }
    t.equal(refusal(await call(simulator, 'POST', '/networks/6/actions/add_route', body)), 'not_found')
    t.equal((await call(simulator, 'GET', '/networks?name=net')).body.networks.length, 1)
    t.equal((await call(simulator, 'GET', '/networks?name=none')).body.networks.length, 0)
  })
})
