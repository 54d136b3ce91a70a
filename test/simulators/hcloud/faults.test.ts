import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { call, finished, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const minimal = { name: 'web', load_balancer_type: 'lb11', location: 'fsn1' }
const service = { protocol: 'tcp', listen_port: 80, destination_port: 30080 }

t.test('faults', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 1 } })
  t.teardown(() => simulator.close())
  const { control } = simulator
  t.beforeEach(() => {
    control.reset()
    control.seed({
      servers: [
        { id: 1, name: 'w1' },
        { id: 2, name: 'w2' },
      ],
      load_balancers: [{ id: 1, name: 'lb' }],
    })
  })
  const create = () => call(simulator, 'POST', '/load_balancers', minimal)
  const names = () => control.state().load_balancers?.map((lb) => (lb as { name: string }).name)

  t.test('errors come with the status that belongs to them', async (t) => {
    for (const [code, status] of [
      ['unavailable', 503],
      ['resource_limit_exceeded', 403],
      ['conflict', 409],
      ['server_error', 500],
      ['locked', 423],
    ] as const) {
      control.fault({ match: 'POST /load_balancers', kind: 'error', code })
      const answer = await create()
      t.equal(answer.status, status)
      t.equal(refusal(answer), code)
    }
    t.equal((await create()).status, 201, 'each strikes once')
    t.equal(control.counters().rejected['POST /load_balancers 503 unavailable (fault)'], 1)
  })

  t.test('strike as often, and as late, as they say', async (t) => {
    control.fault({ match: 'GET /servers', kind: 'locked', after: 1, times: 2 })
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await call(simulator, 'GET', '/servers')).status)
    t.strictSame(statuses, [200, 423, 423, 200])
    control.fault({ method: 'GET', path: '^/servers/\\d+$', kind: 'error', code: 'timeout', times: -1 })
    for (let i = 0; i < 3; i++) t.equal((await call(simulator, 'GET', '/servers/1')).status, 504)
    control.fault({ clear: true })
    t.equal((await call(simulator, 'GET', '/servers/1')).status, 200)
  })

  t.test('a dropped connection, before and after', async (t) => {
    control.fault({ match: 'POST /load_balancers', kind: 'drop-before' })
    await t.rejects(create())
    t.strictSame(names(), ['lb'])
    control.fault({ match: 'POST /load_balancers', kind: 'drop-after-commit' })
    await t.rejects(create())
    t.strictSame(names(), ['lb', 'web'])
    t.equal(control.counters().rejected['POST /load_balancers 0 (fault)'], 2)
    t.equal(refusal(await create()), 'uniqueness_error name')
  })

  t.test('a request that never gets an answer', async (t) => {
    const impatient = (kind: string) => {
      control.fault({ match: 'POST /load_balancers', kind })
      return fetch(`${simulator.apiUrl}/load_balancers`, {
        method: 'POST',
        headers: { authorization: `Bearer ${'k'.repeat(64)}`, 'content-type': 'application/json' },
        body: JSON.stringify(minimal),
        signal: AbortSignal.timeout(60),
      })
    }
    await t.rejects(impatient('timeout'), { name: 'TimeoutError' })
    t.strictSame(names(), ['lb'])
    await t.rejects(impatient('timeout-after-commit'), { name: 'TimeoutError' })
    // On a busy machine the client may have left before the request was read.
    while ((names()?.length ?? 0) < 2) await delay(10)
    t.strictSame(names(), ['lb', 'web'])
  })

  t.test('a late answer', async (t) => {
    control.fault({ match: 'GET /servers/{id}', kind: 'delay', ms: 5 })
    t.equal((await call(simulator, 'GET', '/servers/1')).body.server.id, 1)
  })

  t.test('rate limits, with a clock as wrong as wished', async (t) => {
    control.fault({ match: 'GET /servers', kind: 'rate-limit', reset_s: -100 })
    const answer = await call(simulator, 'GET', '/servers')
    t.equal(answer.status, 429)
    t.equal(refusal(answer), 'rate_limit_exceeded')
    t.equal(answer.headers.get('ratelimit-remaining'), '0')
    t.ok(Number(answer.headers.get('ratelimit-reset')) < Date.now() / 1000)
    control.fault({ match: 'GET /servers', kind: 'rate-limit', status: 403 })
    t.equal((await call(simulator, 'GET', '/servers')).status, 403)
  })

  t.test('answers that are not the API’s', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'html' },
      { match: 'GET /servers', kind: 'empty' },
      { match: 'GET /servers', kind: 'truncated' },
      { match: 'GET /servers', kind: 'http', status: 504, headers: { 'Retry-After': '7' } },
      { match: 'GET /servers', kind: 'http', body: { servers: [], meta: null } },
      { match: 'GET /servers', kind: 'slow', ms: 10 },
      { match: 'GET /servers', kind: 'cut' },
    ])
    const html = await call(simulator, 'GET', '/servers')
    t.equal(html.status, 502)
    t.equal(html.headers.get('content-type'), 'text/html')
    t.strictSame((await call(simulator, 'GET', '/servers')).body, undefined)
    t.type((await call(simulator, 'GET', '/servers')).body, 'string', 'half of a JSON document is none')
    t.equal((await call(simulator, 'GET', '/servers')).headers.get('retry-after'), '7')
    t.strictSame((await call(simulator, 'GET', '/servers')).body, { servers: [], meta: null })
    t.equal((await call(simulator, 'GET', '/servers')).body.servers.length, 2, 'slow, but whole')
    await t.rejects(call(simulator, 'GET', '/servers'))
  })

  t.test('lists that are empty or end early', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'empty-list' },
      { match: 'GET /servers', kind: 'partial-page' },
    ])
    t.match((await call(simulator, 'GET', '/servers?per_page=1')).body, {
      servers: [],
      meta: { pagination: { next_page: null } },
    })
    t.match((await call(simulator, 'GET', '/servers')).body.servers, [{ id: 1 }])
    t.equal((await call(simulator, 'GET', '/servers')).body.servers.length, 2)
  })

  t.test('fields that are missing, null or new', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'field', field: 'servers.*.public_net' },
      { match: 'GET /servers', kind: 'field', field: 'servers.*.status', value: 'dreaming' },
      { match: 'GET /servers/{id}', kind: 'field', field: 'server.public_net.ipv4', value: null },
    ])
    const bare = (await call(simulator, 'GET', '/servers')).body.servers
    t.notOk(bare.some((server: object) => 'public_net' in server))
    t.match((await call(simulator, 'GET', '/servers')).body.servers, [{ status: 'dreaming' }, { status: 'dreaming' }])
    t.equal((await call(simulator, 'GET', '/servers/1')).body.server.public_net.ipv4, null)
    t.match((await call(simulator, 'GET', '/servers/1')).body.server.public_net.ipv4, { ip: '198.51.100.1' })
  })

  t.test('what was just made is missing from lists', async (t) => {
    control.fault({ match: 'POST /load_balancers', kind: 'stale', ms: 60_000 })
    const { id } = (await create()).body.load_balancer
    t.strictSame((await call(simulator, 'GET', '/load_balancers?name=web')).body.load_balancers, [])
    t.equal((await call(simulator, 'GET', `/load_balancers/${id}`)).status, 200)
    t.equal(refusal(await create()), 'uniqueness_error name')
  })

  t.test('an action that fails has no effect', async (t) => {
    control.fault({ match: 'POST /load_balancers/{id}/actions/add_service', kind: 'action-error' })
    const started = await call(simulator, 'POST', '/load_balancers/1/actions/add_service', service)
    t.equal(started.status, 201)
    t.match(await finished(simulator, started), { status: 'error', error: { code: 'action_failed' } })
    t.match(control.state().load_balancers, [{ services: [] }])
  })

  t.test('are refused when they make no sense', async (t) => {
    t.throws(() => control.fault({ match: 'GET /servers', kind: 'earthquake' }), /unknown kind/)
    t.throws(() => control.fault({ match: 'GET /servers', kind: 'delay', msec: 1 }), /unknown field/)
    t.throws(() => control.fault({ kind: 'delay' }), /match or path/)
  })
})

t.test('lists that always lag behind', async (t) => {
  const simulator = await startHcloudSimulator({ options: { stale_ms: 60_000 } })
  t.teardown(() => simulator.close())
  const created = await call(simulator, 'POST', '/load_balancers', minimal)
  t.strictSame((await call(simulator, 'GET', '/load_balancers')).body.load_balancers, [])
  t.equal((await call(simulator, 'GET', `/load_balancers/${created.body.load_balancer.id}`)).status, 200)
})
