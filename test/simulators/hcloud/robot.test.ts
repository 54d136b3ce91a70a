import t, { type Test } from 'tap'
import type { Options } from './model.ts'
import { type HcloudSimulator, startHcloudSimulator } from './simulator.ts'

const servers = [
  { server_number: 321, server_name: 'r1' },
  { server_number: 322, server_name: 'r2', operating_status: 'shut off', product: 'EX44', dc: 'HEL1-DC5' },
  { server_number: 323, server_name: 'r3', server_ip: null, server_ipv6_net: '2001:db8:b0b::', reset: false },
]

async function start(t: Test, options: Partial<Options> = {}): Promise<HcloudSimulator> {
  const simulator = await startHcloudSimulator({ options })
  t.teardown(() => simulator.close())
  return simulator
}

async function get(simulator: HcloudSimulator, path: string, login = 'robot:secret') {
  const authorization = `Basic ${Buffer.from(login).toString('base64')}`
  const response = await fetch(`${simulator.robotUrl}${path}`, { headers: { authorization } })
  const text = await response.text()
  const json = response.headers.get('content-type') === 'application/json'
  return { status: response.status, body: json ? JSON.parse(text) : text }
}

t.test('the Robot web service', async (t) => {
  t.test('lists servers whole, without pages', async (t) => {
    const simulator = await start(t)
    simulator.control.seed({ robot_servers: servers })
    const { status, body } = await get(simulator, '/server')
    t.equal(status, 200)
    t.match(body, [
      {
        server: {
          server_number: 321,
          server_name: 'r1',
          server_ip: '203.0.113.1',
          product: 'AX41-NVMe',
          dc: 'FSN1-DC14',
        },
      },
      { server: { server_number: 322, product: 'EX44', dc: 'HEL1-DC5' } },
      { server: { server_number: 323, server_ip: null, server_ipv6_net: '2001:db8:b0b::', ip: null } },
    ])
    t.match((await get(simulator, '/server/322')).body, { server: { server_name: 'r2', reset: true } })
  })

  t.test('tells the operating status with the reset function', async (t) => {
    const simulator = await start(t)
    simulator.control.seed({ robot_servers: servers })
    t.match((await get(simulator, '/reset/321')).body, { reset: { operating_status: 'running' } })
    t.match((await get(simulator, '/reset/322')).body, { reset: { operating_status: 'shut off' } })
    const without = await get(simulator, '/reset/323')
    t.equal(without.status, 404)
    t.equal(without.body.error.code, 'RESET_NOT_AVAILABLE')
  })

  t.test('answers 404 for what is not there, an empty account included', async (t) => {
    const simulator = await start(t)
    for (const path of ['/server', '/server/1', '/reset/1']) {
      const { status, body } = await get(simulator, path)
      t.equal(status, 404)
      t.match(body, { error: { status: 404, code: 'SERVER_NOT_FOUND' } })
    }
    t.match((await get(simulator, '/rescue/1')).body, { error: { code: 'NOT_FOUND' } })
  })

  t.test('refuses wrong credentials, and after some the address', async (t) => {
    const simulator = await start(t, { robot_lockout_after: 3 })
    simulator.control.seed({ robot_servers: servers })
    t.equal((await get(simulator, '/server', 'robot:guess')).body.error.code, 'UNAUTHORIZED')
    t.equal((await get(simulator, '/server', 'robot:guess')).status, 401)
    t.equal((await get(simulator, '/server')).status, 200, 'a good login starts the count anew')
    for (let i = 0; i < 3; i++) t.equal((await get(simulator, '/server', 'robot:guess')).status, 401)
    const shut = await get(simulator, '/server')
    t.equal(shut.status, 403)
    t.type(shut.body, 'string', 'not JSON')
    simulator.control.reset()
    t.equal((await get(simulator, '/server')).status, 404)
  })

  t.test('limits requests with 403', async (t) => {
    const simulator = await start(t, { robot_max_request: 1 })
    simulator.control.seed({ robot_servers: servers })
    t.equal((await get(simulator, '/server')).status, 200)
    const { status, body } = await get(simulator, '/server')
    t.equal(status, 403)
    t.match(body, { error: { code: 'RATE_LIMIT_EXCEEDED', max_request: 1, interval: 3600 } })
    t.equal((await get(simulator, '/reset/321')).status, 200, 'resets are counted by themselves')
  })

  t.test('has faults and counters like the rest', async (t) => {
    const simulator = await start(t)
    simulator.control.seed({ robot_servers: servers })
    simulator.control.fault([
      { match: 'ROBOT GET /server', kind: 'rate-limit' },
      { match: 'ROBOT GET /reset/{number}', kind: 'error', code: 'INTERNAL_ERROR', status: 500 },
    ])
    t.equal((await get(simulator, '/server')).body.error.code, 'RATE_LIMIT_EXCEEDED')
    t.equal((await get(simulator, '/server')).status, 200)
    t.match((await get(simulator, '/reset/321')).body, { error: { status: 500, code: 'INTERNAL_ERROR' } })
    t.strictSame(simulator.control.counters(), {
      calls: { 'ROBOT GET /server': 2, 'ROBOT GET /reset/{number}': 1 },
      rejected: {
        'ROBOT GET /server 403 RATE_LIMIT_EXCEEDED (fault)': 1,
        'ROBOT GET /reset/{number} 500 INTERNAL_ERROR (fault)': 1,
      },
    })
  })

  t.test('shows changes made elsewhere', async (t) => {
    const simulator = await start(t)
    simulator.control.seed({ robot_servers: servers })
    simulator.control.mutate({
      robot_servers: [
        { server_number: 321, set: { server_name: 'elsewhere' } },
        { server_number: 322, delete: true },
      ],
    })
    const { body } = await get(simulator, '/server')
    t.strictSame(
      body.map(({ server }: { server: { server_name: string } }) => server.server_name),
      ['elsewhere', 'r3'],
    )
  })
})
