import t from 'tap'
import { call, refusal } from './caller.ts'
import { startCherrySimulator } from './simulator.ts'

t.test('faults', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  const { control } = simulator
  t.beforeEach(async () => {
    await control.reset()
    await control.seed({
      projects: [{ id: 7, name: 'lab' }],
      servers: [
        { id: 1, hostname: 'w1' },
        { id: 2, hostname: 'w2' },
      ],
    })
  })
  const create = () => call(simulator, 'POST', '/projects/7/ips', { region: 'LT-Siauliai' })
  const servers = () => call(simulator, 'GET', '/projects/7/servers')
  const made = () => control.state().ips.filter(({ type }) => type === 'floating-ip').length

  t.test('strike by method and a part of the path, as often and as late as they say', async (t) => {
    control.fault({ match: 'GET /v1/projects/\\d+/servers', kind: 'error', code: 500, after: 1, times: 2 })
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await servers()).status)
    t.strictSame(statuses, [200, 500, 500, 200])
    t.strictSame(control.counters().rejected, { 'GET /projects/{id}/servers 500 (fault)': 2 })
    control.fault({ match: 'GET /ips', kind: 'error', code: 503 })
    t.equal((await create()).status, 201, 'not another method')
    t.equal(refusal(await call(simulator, 'GET', '/projects/7/ips')), '503 simulated 503')
  })

  t.test('strike by label, and then nothing longer', async (t) => {
    control.fault({ match: 'GET /projects/{id}', kind: 'error', code: 403, message: 'no', times: -1 })
    t.equal((await servers()).status, 200)
    t.equal(refusal(await call(simulator, 'GET', '/projects/7')), '403 no')
  })

  t.test('come in lists, and are cleared together', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'error', code: 500, times: -1 },
      { match: 'GET /regions', kind: 'error', code: 500, times: -1 },
    ])
    t.equal((await call(simulator, 'GET', '/servers/1')).status, 500)
    control.fault('clear')
    t.equal((await call(simulator, 'GET', '/servers/1')).status, 200)
    t.equal((await call(simulator, 'GET', '/regions')).status, 200)
  })

  t.test('a dropped connection, before and after', async (t) => {
    control.fault({ match: 'POST /ips', kind: 'drop-before' })
    await t.rejects(create())
    t.equal(made(), 0)
    control.fault({ match: 'POST /ips', kind: 'drop-after-commit' })
    await t.rejects(create())
    t.equal(made(), 1)
  })

  t.test('a request that never gets an answer', async (t) => {
    const impatient = (kind: string) => {
      control.fault({ match: 'POST /ips', kind })
      return fetch(`${simulator.apiUrl}projects/7/ips`, {
        method: 'POST',
        headers: { authorization: 'Bearer cherry-token', 'content-type': 'application/json' },
        body: '{"region":"LT-Siauliai"}',
        signal: AbortSignal.timeout(60),
      })
    }
    await t.rejects(impatient('timeout'), { name: 'TimeoutError' })
    t.equal(made(), 0)
    await t.rejects(impatient('timeout-after-commit'), { name: 'TimeoutError' })
    t.equal(made(), 1)
  })

  t.test('a delayed answer is of what was done at once', async (t) => {
    control.fault({ match: 'POST /ips', kind: 'delay', delay: 50 })
    const late = create()
    while (made() === 0) await new Promise((resolve) => setImmediate(resolve))
    t.match(control.activity(), { inflight: 1 })
    t.equal((await late).status, 201)
    t.match(control.activity(), { inflight: 0 })
    control.fault({ match: 'POST /ips', kind: 'delay-before', delay: 5 })
    t.equal((await create()).status, 201)
  })

  t.test('a rate limit, with and without Retry-After', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'rate-limit' },
      { match: 'GET /servers', kind: 'rate-limit', retry_after_s: 7 },
    ])
    const plain = await servers()
    t.equal(refusal(plain), '429 Too many requests')
    t.equal(plain.headers.get('retry-after'), null)
    t.equal((await servers()).headers.get('retry-after'), '7')
  })

  t.test('answers that are not the API’s', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'html' },
      { match: 'GET /servers', kind: 'empty-body' },
      { match: 'GET /servers', kind: 'empty-body', status: 500 },
      { match: 'GET /servers', kind: 'malformed' },
      { match: 'GET /servers', kind: 'http', status: 200, body: { servers: [] } },
      { match: 'GET /servers', kind: 'cut' },
    ])
    const html = await servers()
    t.equal(html.status, 502)
    t.equal(html.headers.get('content-type'), 'text/html')
    t.match(await servers(), { status: 200, body: undefined })
    t.match(await servers(), { status: 500, body: undefined })
    t.type((await servers()).body, 'string', 'half of a JSON document is none')
    t.strictSame((await servers()).body, { servers: [] })
    await t.rejects(servers())
  })

  t.test('lists that are empty or end early, whatever total they announce', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'empty-list' },
      { match: 'GET /servers', kind: 'truncated-list' },
      { match: 'GET /servers', kind: 'truncated-list', headers: { 'X-Total-Count': '1' } },
      { match: 'GET /servers', kind: 'empty-list', headers: { 'X-Total-Count': null } },
    ])
    const seen: unknown[] = []
    for (let i = 0; i < 5; i++) {
      const { body, headers } = await servers()
      seen.push([body.length, headers.get('x-total-count')])
    }
    t.strictSame(seen, [
      [0, '2'],
      [1, '2'],
      [1, '1'],
      [0, null],
      [2, '2'],
    ])
  })

  t.test('fields that are missing or other', async (t) => {
    control.fault([
      { match: 'GET /servers', kind: 'field', field: '*.ip_addresses' },
      { match: 'GET /servers', kind: 'field', field: '*.tags', value: [] },
    ])
    t.notOk((await servers()).body.some((server: object) => 'ip_addresses' in server))
    t.strictSame((await servers()).body[0].tags, [])
  })

  t.test('what was just made is missing from lists', async (t) => {
    control.fault({ match: 'POST /ips', kind: 'stale', ms: 60_000 })
    const { id } = (await create()).body
    t.notMatch((await call(simulator, 'GET', '/projects/7/ips')).body, [{}, {}, {}, {}, { id }])
    t.equal((await call(simulator, 'GET', '/projects/7/ips')).headers.get('x-total-count'), '4')
    t.equal((await call(simulator, 'GET', `/ips/${id}`)).status, 200)
  })

  t.test('are refused when they make no sense', async (t) => {
    t.throws(() => control.fault({ match: 'GET /servers', kind: 'earthquake' }), /unknown kind/)
    t.throws(() => control.fault({ match: 'GET /servers', kind: 'delay', msec: 1 }), /unknown field/)
    t.throws(() => control.fault({ kind: 'delay' }), /match or path/)
  })
})
