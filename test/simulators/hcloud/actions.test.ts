import t from 'tap'
import { call, finished, type Received, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const service = { protocol: 'tcp', listen_port: 80, destination_port: 30080 }

t.test('actions', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 1 } })
  t.teardown(() => simulator.close())
  simulator.control.seed({
    networks: [{ id: 5, name: 'net', subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24' }] }],
    load_balancers: [
      { id: 1, name: 'one' },
      { id: 2, name: 'two' },
    ],
  })

  const endless = (match: string): void => simulator.control.fault({ match, kind: 'action-hang' })
  const release = (started: Received): void => simulator.control.mutate({ actions: [{ id: started.body.action.id }] })

  t.test('run for a while, and take effect at their end', async (t) => {
    endless('POST /load_balancers/{id}/actions/add_service')
    const started = await call(simulator, 'POST', '/load_balancers/1/actions/add_service', service)
    t.equal(started.status, 201)
    t.match(started.body.action, { command: 'add_service', status: 'running', finished: null, error: null })
    t.strictSame(started.body.action.resources, [{ id: 1, type: 'load_balancer' }])
    t.strictSame((await call(simulator, 'GET', '/load_balancers/1')).body.load_balancer.services, [])
    t.equal(simulator.control.activity().inflight, 0, 'nobody waits for what never ends')
    release(started)
    t.match(await finished(simulator, started), { status: 'success', progress: 100 })
    t.equal((await call(simulator, 'GET', '/load_balancers/1')).body.load_balancer.services.length, 1)
  })

  t.test('lock their load balancer and no other', async (t) => {
    endless('POST /load_balancers/{id}/actions/change_algorithm')
    const started = await call(simulator, 'POST', '/load_balancers/1/actions/change_algorithm', { type: 'round_robin' })
    const second = await call(simulator, 'POST', '/load_balancers/1/actions/delete_service', { listen_port: 80 })
    t.equal(second.status, 423)
    t.equal(refusal(second), 'locked')
    t.equal(refusal(await call(simulator, 'DELETE', '/load_balancers/1')), 'locked')
    const other = await call(simulator, 'POST', '/load_balancers/2/actions/add_service', service)
    t.match(await finished(simulator, other), { status: 'success' })
    release(started)
  })

  t.test('make a second change of their network a conflict', async (t) => {
    endless('POST /networks/{id}/actions/add_route')
    const started = await call(simulator, 'POST', '/networks/5/actions/add_route', {
      destination: '10.244.0.0/24',
      gateway: '10.0.0.9',
    })
    const route = { destination: '10.244.1.0/24', gateway: '10.0.0.9' }
    const second = await call(simulator, 'POST', '/networks/5/actions/add_route', route)
    t.equal(second.status, 409)
    t.equal(refusal(second), 'conflict')
    const attach = await call(simulator, 'POST', '/load_balancers/1/actions/attach_to_network', { network: 5 })
    t.equal(refusal(attach), 'conflict')
    release(started)
    const third = await call(simulator, 'POST', '/networks/5/actions/add_route', route)
    t.match(await finished(simulator, third), { status: 'success' })
  })

  t.test('are asked for by their ids; unknown ids are left out', async (t) => {
    const all = (await call(simulator, 'GET', '/load_balancers/actions')).body.actions
    const ids = all.map((action: { id: number }) => action.id)
    t.ok(ids.every((id: number) => id > 2 ** 32))
    const query = [...ids, 99].map((id) => `id=${id}`).join('&')
    const { body } = await call(simulator, 'GET', `/actions?${query}&sort=status&sort=id:desc&page=1`)
    t.strictSame(new Set(body.actions.map((action: { id: number }) => action.id)), new Set(ids))
    t.equal(refusal(await call(simulator, 'GET', '/actions')), 'deprecated_api_endpoint')
    t.equal(refusal(await call(simulator, 'GET', '/actions?id=x')), 'invalid_input id')
    t.equal(refusal(await call(simulator, 'GET', '/actions/99')), 'not_found')
    t.equal(refusal(await call(simulator, 'GET', '/actions?id=1&sort=colour')), 'invalid_input sort')
    t.equal(refusal(await call(simulator, 'GET', '/actions?id=1&status=done')), 'invalid_input status')
  })

  t.test('of one resource', async (t) => {
    const { body } = await call(simulator, 'GET', '/load_balancers/1/actions?status=success')
    t.strictSame(
      body.actions.map((action: { command: string }) => action.command),
      ['add_service', 'change_algorithm'],
    )
    const id = body.actions[0].id
    t.equal((await call(simulator, 'GET', `/load_balancers/1/actions/${id}`)).body.action.id, id)
    t.equal((await call(simulator, 'GET', `/load_balancers/2/actions/${id}`)).status, 404)
    t.equal((await call(simulator, 'GET', `/load_balancers/actions/${id}`)).status, 200)
    t.equal((await call(simulator, 'GET', `/networks/actions/${id}`)).status, 404)
  })
})

t.test('more than 25 actions in one request', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 0 } })
  t.teardown(() => simulator.close())
  simulator.control.seed({ load_balancers: [{ id: 1, name: 'one' }] })
  const ids: number[] = []
  for (let i = 0; i < 30; i++) {
    const { body } = await call(simulator, 'POST', '/load_balancers/1/actions/change_algorithm', {
      type: 'round_robin',
    })
    t.equal(body.action.status, 'success', 'over at once without a duration')
    ids.push(body.action.id)
  }
  const query = ids.map((id) => `id=${id}`).join('&')
  t.equal((await call(simulator, 'GET', `/actions?${query}`)).body.meta.pagination.next_page, 2)
  t.equal((await call(simulator, 'GET', `/actions?${query}&per_page=50`)).body.actions.length, 30)
})

t.test('effects at the start, if so wished', async (t) => {
  const simulator = await startHcloudSimulator({ options: { apply_at_start: true, action_ms: 10_000 } })
  t.teardown(() => simulator.close())
  simulator.control.seed({ load_balancers: [{ id: 1, name: 'one' }] })
  await call(simulator, 'POST', '/load_balancers/1/actions/add_service', service)
  t.equal((await call(simulator, 'GET', '/load_balancers/1')).body.load_balancer.services.length, 1)
})
