import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import t from 'tap'
import { call, finished, type Received } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const service = { protocol: 'tcp', listen_port: 80, destination_port: 30080 }

t.test('the control side', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 1 } })
  t.teardown(() => simulator.close())
  const { control } = simulator
  t.beforeEach(() => control.reset())
  const post = (name: string, body: object) =>
    fetch(`${simulator.url}/_sim/${name}`, { method: 'POST', body: JSON.stringify(body) })
  const get = async (name: string): Promise<Received['body']> => (await fetch(`${simulator.url}/_sim/${name}`)).json()

  t.test('fills in what a seeded account leaves out', async (t) => {
    control.seed({
      servers: [{ name: 'a' }, { id: 9, name: 'b', ipv4: null, ipv6: null, location: 'ash', server_type: 'cax11' }],
      locations: [{ name: 'zrh2' }],
      robot_servers: [{ server_name: 'r' }],
    })
    const state = control.state()
    t.match(state.servers, [
      {
        status: 'running',
        location: { name: 'fsn1' },
        server_type: { name: 'cx22' },
        public_net: { ipv4: { ip: '198.51.100.1' }, ipv6: { ip: '2001:db8:1::/64' } },
      },
      { id: 9, location: { name: 'ash', network_zone: 'us-east' }, public_net: { ipv4: null, ipv6: null } },
    ])
    t.notOk(
      state.servers?.some((server) => 'datacenter' in (server as object)),
      'which the API no longer has',
    )
    t.match(state.locations?.at(-1), { name: 'zrh2', network_zone: 'eu-central' })
    t.match(state.robot_servers, [{ server_ip: '203.0.113.1', product: 'AX41-NVMe', dc: 'FSN1-DC14' }])
  })

  t.test('refuses an account that it does not understand', async (t) => {
    for (const account of [
      { server: [] },
      { servers: [{ name: 'a', colour: 'red' }] },
      { servers: [{ name: 'a', location: 'moon1' }] },
      {
        servers: [
          { id: 1, name: 'a' },
          { id: 1, name: 'b' },
        ],
      },
      { load_balancers: [{ name: 'lb', targets: [{ server: 'nobody' }] }] },
    ]) {
      t.throws(() => control.seed(account), JSON.stringify(account))
    }
    t.throws(() => control.mutate({ servers: [{ name: 'nobody', delete: true }] }))
    t.equal((await post('seed', { server: [] })).status, 400)
    t.equal((await post('nothing', {})).status, 404)
  })

  t.test('changes the account behind the API’s back', async (t) => {
    control.seed({ servers: [{ name: 'w1' }, { name: 'w2' }], load_balancers: [{ name: 'mine' }] })
    control.mutate({
      servers: [
        {
          name: 'w1',
          set: { public_net: { ipv4: { ip: '198.51.100.77' } }, location: { name: 'hel1' }, status: 'off' },
        },
        { create: { id: 77, name: 'ghost' } },
      ],
      load_balancers: [
        {
          name: 'mine',
          set: {
            algorithm: { type: 'least_connections' },
            services: [{ ...service, health_check: { protocol: 'tcp', port: 1, interval: 5 } }],
            targets: [{ type: 'server', server: 'w2' }],
            protection: { delete: true },
          },
        },
      ],
    })
    const state = control.state()
    t.match(state.servers, [
      { status: 'off', location: { name: 'hel1' }, public_net: { ipv4: { ip: '198.51.100.77' }, ipv6: {} } },
      {},
      { id: 77, public_net: { ipv4: { ip: '198.51.100.3' } } },
    ])
    t.match(state.load_balancers, [
      {
        algorithm: { type: 'least_connections' },
        services: [{ health_check: { interval: 5, timeout: 10, retries: 3 } }],
        targets: [{ type: 'server', use_private_ip: false }],
        protection: { delete: true },
      },
    ])
  })

  t.test('says when the cloud rests', async (t) => {
    control.seed({ load_balancers: [{ id: 1, name: 'lb' }] })
    const before = control.activity()
    await call(simulator, 'GET', '/load_balancers')
    t.strictSame(control.activity(), { ...before, requests: before.requests + 1 }, 'reading changes nothing')
    control.mutate({ options: { action_ms: 60_000 } })
    const { revision } = control.activity()
    await call(simulator, 'POST', '/load_balancers/1/actions/add_service', service)
    t.match(control.activity(), { inflight: 1 })
    t.ok(control.activity().revision > revision)
    control.reset()
    t.strictSame(control.activity(), { revision: 0, inflight: 0, requests: 0 })
  })

  t.test('counts and logs requests by endpoint', async (t) => {
    control.seed({ load_balancers: [{ id: 1, name: 'lb' }] })
    await call(simulator, 'GET', '/load_balancers/1')
    await call(simulator, 'GET', '/load_balancers/2')
    await call(simulator, 'POST', '/load_balancers/1/actions/add_service', { protocol: 'udp' })
    t.strictSame(await get('counters'), {
      calls: { 'GET /load_balancers/{id}': 2, 'POST /load_balancers/{id}/actions/add_service': 1 },
      rejected: {
        'GET /load_balancers/{id} 404 not_found': 1,
        'POST /load_balancers/{id}/actions/add_service 422 invalid_input': 1,
      },
    })
    t.match((await get('log')).at(-1), {
      method: 'POST',
      path: '/load_balancers/1/actions/add_service',
      body: { protocol: 'udp' },
      status: 422,
      code: 'invalid_input',
    })
  })

  t.test('sees when a listener had nobody to send traffic to', async (t) => {
    control.seed({
      servers: [{ id: 1, name: 'w1' }],
      load_balancers: [{ id: 1, name: 'lb', services: [service], targets: [{ server: 'w1' }] }],
    })
    t.strictSame(await get('traffic-gaps'), [])
    const act = async (command: string, body: object): Promise<void> => {
      await finished(simulator, await call(simulator, 'POST', `/load_balancers/1/actions/${command}`, body))
    }
    await act('update_service', { listen_port: 80, destination_port: 31000 })
    t.strictSame(control.trafficGaps(), [])
    await act('remove_target', { type: 'server', server: { id: 1 } })
    t.match(control.trafficGaps(), [{ load_balancer: 'lb', listen_port: 80, until: null }])
    await act('add_target', { type: 'server', server: { id: 1 } })
    t.match(control.trafficGaps(), [{ until: Number }])
    control.mutate({ servers: [{ name: 'w1', set: { status: 'off' } }] })
    t.equal(control.trafficGaps().length, 2, 'a target that is off is none')
  })

  t.test('is there by HTTP as well', async (t) => {
    t.equal((await post('seed', { servers: [{ name: 'w1' }] })).status, 200)
    t.equal((await post('mutate', { servers: [{ name: 'w1', set: { status: 'off' } }] })).status, 200)
    t.equal((await post('fault', [{ match: 'GET /servers', kind: 'locked' }])).status, 200)
    t.match(await get('state'), { servers: [{ name: 'w1', status: 'off' }] })
    t.equal((await call(simulator, 'GET', '/servers')).status, 423)
    t.match(await get('activity'), { inflight: 0, requests: 1 })
    t.equal((await post('reset', {})).status, 200)
    t.match(await get('state'), { servers: [] })
  })
})

t.test('the command prints its addresses and ends when told', async (t) => {
  const file = new URL('./main.ts', import.meta.url).pathname
  const options = ['--token', 'abc', '--robot-user', 'u', '--robot-password', 'p', '--options', '{"action_ms":7}']
  const child = spawn(process.execPath, [file, '--port', '0', '--robot-port', '0', ...options])
  const ended = once(child, 'exit')
  const [line] = await once(createInterface(child.stdout), 'line')
  const { apiUrl, robotUrl, metadataUrl } = JSON.parse(line)
  t.equal((await fetch(`${apiUrl}/locations`, { headers: { authorization: 'Bearer abc' } })).status, 200)
  const authorization = `Basic ${Buffer.from('u:p').toString('base64')}`
  t.equal((await fetch(`${robotUrl}/server`, { headers: { authorization } })).status, 404)
  t.equal((await fetch(`${metadataUrl}/private-networks`)).status, 404)
  child.kill('SIGTERM')
  t.equal((await ended)[0], 0)
})
