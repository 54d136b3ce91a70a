import t from 'tap'
import { call, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

t.test('properties of a load balancer', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 0 } })
  t.teardown(() => simulator.close())
  t.beforeEach(() => {
    simulator.control.reset()
    simulator.control.seed({
      servers: [
        { id: 1, name: 'w1' },
        { id: 2, name: 'w2' },
      ],
      load_balancer_types: [{ name: 'tiny', max_targets: 1 }],
      load_balancers: [
        { id: 1, name: 'lb', targets: [{ server: 'w1' }, { server: 'w2' }] },
        { id: 2, name: 'other' },
      ],
    })
  })
  const act = (command: string, body: object) => call(simulator, 'POST', `/load_balancers/1/actions/${command}`, body)
  const read = async () => (await call(simulator, 'GET', '/load_balancers/1')).body.load_balancer
  const put = (body: object) => call(simulator, 'PUT', '/load_balancers/1', body)

  t.test('name and labels', async (t) => {
    t.match((await put({ labels: { a: '1' } })).body.load_balancer, { name: 'lb', labels: { a: '1' } })
    t.match((await put({ name: 'new', labels: { b: '2' } })).body.load_balancer, { name: 'new', labels: { b: '2' } })
    t.notOk('a' in (await read()).labels, 'labels are replaced as a whole')
    t.equal(refusal(await put({ name: 'other' })), 'uniqueness_error name')
    t.equal(refusal(await put({ name: '' })), 'invalid_input name')
    t.equal(refusal(await put({ type: 'lb21' })), 'invalid_input type')
    t.equal((await put({})).status, 200)
  })

  t.test('reverse DNS', async (t) => {
    const { ipv4, ipv6 } = (await read()).public_net
    t.equal((await act('change_dns_ptr', { ip: ipv4.ip, dns_ptr: 'v4.example.com' })).status, 201)
    await act('change_dns_ptr', { ip: ipv6.ip, dns_ptr: 'v6.example.com' })
    t.match((await read()).public_net, { ipv4: { dns_ptr: 'v4.example.com' }, ipv6: { dns_ptr: 'v6.example.com' } })
    await act('change_dns_ptr', { ip: ipv4.ip, dns_ptr: null })
    t.equal((await read()).public_net.ipv4.dns_ptr, ipv4.dns_ptr, 'null is the default')
    t.equal(refusal(await act('change_dns_ptr', { ip: ipv4.ip, dns_ptr: 'not a name' })), 'invalid_input dns_ptr')
    t.equal(refusal(await act('change_dns_ptr', { ip: ipv4.ip, dns_ptr: '' })), 'invalid_input dns_ptr')
    t.equal(refusal(await act('change_dns_ptr', { ip: ipv4.ip })), 'invalid_input dns_ptr')
    t.equal(refusal(await act('change_dns_ptr', { ip: '1.2.3.4', dns_ptr: 'a.b' })), 'invalid_input ip')
  })

  t.test('algorithm', async (t) => {
    await act('change_algorithm', { type: 'least_connections' })
    t.strictSame((await read()).algorithm, { type: 'least_connections' })
    t.equal(refusal(await act('change_algorithm', { type: 'random' })), 'invalid_input type')
  })

  t.test('type', async (t) => {
    await act('change_type', { load_balancer_type: 2 })
    t.equal((await read()).load_balancer_type.name, 'lb21')
    await act('change_type', { load_balancer_type: 'lb11' })
    t.equal((await read()).load_balancer_type.name, 'lb11')
    t.equal(refusal(await act('change_type', { load_balancer_type: 'tiny' })), 'invalid_load_balancer_type')
    t.equal(refusal(await act('change_type', { load_balancer_type: 'lb99' })), 'invalid_input load_balancer_type')
  })

  t.test('protection', async (t) => {
    await act('change_protection', { delete: true })
    const refused = await call(simulator, 'DELETE', '/load_balancers/1')
    t.equal(refused.status, 423)
    t.equal(refusal(refused), 'protected')
    await act('change_protection', { delete: false })
    const deleted = await call(simulator, 'DELETE', '/load_balancers/1')
    t.equal(deleted.status, 204)
    t.equal(deleted.body, undefined)
    t.equal((await call(simulator, 'DELETE', '/load_balancers/1')).status, 404)
  })

  t.test('types are listed with their limits', async (t) => {
    const { body } = await call(simulator, 'GET', '/load_balancer_types?name=lb31')
    t.match(body.load_balancer_types, [{ id: 3, max_targets: 150, max_services: 30, deprecation: null }])
    t.equal((await call(simulator, 'GET', '/load_balancer_types/3')).body.load_balancer_type.name, 'lb31')
  })
})
