import t from 'tap'
import { call, refusal } from './caller.ts'
import { type CherrySimulator, startCherrySimulator } from './simulator.ts'

const create = (simulator: CherrySimulator) =>
  call(simulator, 'POST', '/projects/1/ips', { region: 'LT-Siauliai', tags: { a: 'b' } })

const addresses = async (simulator: CherrySimulator): Promise<string[]> =>
  (await call(simulator, 'GET', '/projects/1/ips')).body.map((ip: { address: string }) => ip.address)

t.test('a deleted address stays in the list for a while, tags included', async (t) => {
  const simulator = await startCherrySimulator({ options: { deleted_stays_ms: 60_000 } })
  t.teardown(() => simulator.close())
  await simulator.control.seed({ projects: [{ id: 1, name: 'lab' }], settings: { limits: { floating_ips: 1 } } })
  const { id } = (await create(simulator)).body
  t.equal((await call(simulator, 'DELETE', `/ips/${id}`)).status, 204)
  t.match((await call(simulator, 'GET', '/projects/1/ips')).body, [{ id, tags: { a: 'b' } }])
  t.equal(refusal(await call(simulator, 'GET', `/ips/${id}`)), '404 IP address not found')
  t.equal(refusal(await call(simulator, 'PUT', `/ips/${id}`, { tags: {} })), '404 IP address not found')
  t.equal(refusal(await call(simulator, 'DELETE', `/ips/${id}`)), '404 IP address not found')
  t.strictSame(simulator.control.state().ips, [])
  t.equal((await create(simulator)).status, 201, 'it does not count for the limit')
})

t.test('a deleted address leaves the list in the end', async (t) => {
  const simulator = await startCherrySimulator({ options: { deleted_stays_ms: 5 } })
  t.teardown(() => simulator.close())
  await simulator.control.seed({ projects: [{ id: 1, name: 'lab' }] })
  await call(simulator, 'DELETE', `/ips/${(await create(simulator)).body.id}`)
  while ((await addresses(simulator)).length > 0);
  t.pass()
})

t.test('reads lag behind writes, and behind nothing that was there before', async (t) => {
  const simulator = await startCherrySimulator({ options: { lag_ms: 60_000 } })
  t.teardown(() => simulator.close())
  const { control } = simulator
  await control.seed({
    projects: [{ id: 1, name: 'lab' }],
    servers: [{ id: 1, hostname: 'w1', ip_addresses: [{ address: '5.199.160.1', type: 'primary-ip' }] }],
  })
  const { id } = (await create(simulator)).body
  await call(simulator, 'PUT', '/servers/1', { tags: { a: 'b' }, bgp: true })
  t.strictSame(await addresses(simulator), ['5.199.160.1'])
  t.equal((await call(simulator, 'GET', `/ips/${id}`)).status, 404)
  t.match((await call(simulator, 'GET', '/servers/1')).body, { bgp: { enabled: false }, tags: {} })
  t.equal((await call(simulator, 'PUT', `/ips/${id}`, { tags: {} })).status, 200, 'writes know all')
  await control.mutate({ options: { lag_ms: 0 } })
  t.strictSame(await addresses(simulator), ['5.199.160.1', '5.199.171.0'])
})

t.test('a lag ends', async (t) => {
  const simulator = await startCherrySimulator({ options: { lag_ms: 5 } })
  t.teardown(() => simulator.close())
  await simulator.control.seed({ projects: [{ id: 1, name: 'lab' }] })
  await create(simulator)
  while ((await addresses(simulator)).length === 0);
  t.strictSame(await addresses(simulator), ['5.199.171.0'])
})
