import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Budget, createBudget } from '../../../src/cloud/budget.ts'
import { createActionPoller } from '../../../src/cloud/hcloud/actions.ts'
import { createHcloudClient } from '../../../src/cloud/hcloud/client.ts'
import type { Http, RequestReport } from '../../../src/cloud/requests.ts'
import { HttpClient } from '../../../src/http/client.ts'
import { startHcloudSimulator } from '../../simulators/hcloud/simulator.ts'
import { callOf, servers, TOKEN } from './bench.ts'

/** What the budget says arrives as late as on a busy machine. */
const late = (budget: Budget, ms: number): Budget => ({
  ...budget,
  take: (urgency) => budget.take(urgency).finally(() => delay(ms)),
})

async function open(
  t: Test,
  options: Record<string, unknown> = {},
  limit = 3600,
  http: Http = new HttpClient(),
  budgetIsLateMs = 0,
) {
  const simulator = await startHcloudSimulator({ token: TOKEN, options: { action_ms: 0, ...options } })
  t.teardown(async () => {
    http.close()
    await simulator.close()
  })
  let token = TOKEN
  const reports: RequestReport[] = []
  const budget = createBudget({
    prefix: 'test',
    account: 'Hetzner Cloud',
    credential: TOKEN,
    limit,
    windowMs: 3_600_000,
  })
  const client = createHcloudClient({
    http,
    endpoint: simulator.apiUrl,
    token: { name: 'HCLOUD_TOKEN', read: () => token },
    version: '1.2.3',
    budget: () => (budgetIsLateMs > 0 ? late(budget, budgetIsLateMs) : budget),
    onRequest: (report) => reports.push(report),
  })
  const { control } = simulator
  control.seed({ servers: servers(1), load_balancers: [{ name: 'lb' }] })
  const [{ id }] = control.state().load_balancers as [{ id: number }]
  return { client, control, reports, id, setToken: (next: string) => (token = next), requests: () => control.log() }
}

t.test('each code of the API is of one kind', async (t) => {
  const of = await open(t)
  const cases: [string, string, object?][] = [
    ['unauthorized', 'permanent'],
    ['forbidden', 'permanent'],
    ['token_readonly', 'permanent'],
    ['invalid_input', 'permanent'],
    ['resource_limit_exceeded', 'permanent'],
    ['uniqueness_error', 'permanent'],
    ['protected', 'permanent'],
    ['server_error', 'transient'],
    ['service_error', 'transient'],
    ['unavailable', 'transient'],
    ['maintenance', 'transient'],
    ['not_found', 'transient'],
    ['conflict', 'throttled'],
  ]
  for (const [code, kind] of cases) {
    of.control.fault({ match: 'PUT /load_balancers/{id}', kind: 'error', code, times: 4, message: 'no' })
    await t.rejects(
      of.client.loadBalancers.update(of.id, { name: 'x' }, callOf()),
      { kind, code, message: /updating name and labels/ },
      code,
    )
    of.control.fault({ clear: true })
  }
})

t.test('an answer that says nothing of itself is transient, whatever its status', async (t) => {
  const of = await open(t)
  for (const fault of [
    { kind: 'html' },
    { kind: 'http', status: 502, body: '' },
    { kind: 'empty' },
    { kind: 'truncated' },
    { kind: 'cut' },
    { kind: 'drop-before' },
  ]) {
    of.control.fault({ match: 'GET /servers', times: 2, ...fault })
    await t.rejects(of.client.servers.list(callOf()), { kind: 'transient', message: /listing servers/ }, fault.kind)
    of.control.fault({ clear: true })
  }
})

t.test('a read that a gateway or nobody answered goes once more', async (t) => {
  const of = await open(t)
  of.control.fault({ match: 'GET /servers', kind: 'drop-before' })
  t.equal((await of.client.servers.list(callOf())).length, 1)
})

t.test('an API from which nothing comes holds up its caller for one request, not for two', async (t) => {
  const http = new HttpClient()
  const asked: number[] = []
  // What is waited for is shortened, but longer than a read may fail and go again.
  const hasty: Http = {
    request(request) {
      asked.push(request.timeoutMs)
      return http.request({ ...request, timeoutMs: 2200 })
    },
    close: () => http.close(),
  }
  const of = await open(t, {}, 3600, hasty)
  of.control.fault({ path: '', kind: 'timeout', times: -1 })
  await Promise.all([
    t.rejects(of.client.servers.list(callOf()), { kind: 'transient', message: /no answer/ }),
    t.rejects(of.client.loadBalancers.delete(of.id, callOf()), { kind: 'transient', message: /no answer/ }),
  ])
  t.strictSame(asked, [15_000, 15_000])
})

t.test('a write goes again only when it was refused for another action', async (t) => {
  const of = await open(t)
  of.control.fault({ match: 'PUT /load_balancers/{id}', kind: 'locked', times: 2 })
  const writes: string[] = []
  await of.client.loadBalancers.update(of.id, { name: 'new' }, callOf({ writes }))
  t.equal(writes.length, 3, 'each attempt passes the gate')
  of.control.fault({ match: 'POST /load_balancers', kind: 'drop-after-commit' })
  const body = { name: 'second', load_balancer_type: 1, location: 'fsn1' }
  await t.rejects(of.client.loadBalancers.create(body, callOf()), {
    kind: 'transient',
    message: /creating load balancer "second"/,
  })
  t.equal(of.reports.filter(({ method, endpoint }) => method === 'POST' && endpoint === '/load_balancers').length, 1)
})

t.test('a rate limit stops everybody until the announced time', async (t) => {
  const of = await open(t)
  of.control.fault({ match: 'GET /servers', kind: 'rate-limit', reset_s: 2 })
  const before = Date.now()
  const error = await of.client.servers.list(callOf()).catch((error) => error)
  t.match(error, { kind: 'throttled', code: 'rate_limit_exceeded' })
  t.ok(error.retryAtMs >= before + 1000 && error.retryAtMs <= before + 4000)
  await t.rejects(of.client.servers.get(1, callOf()), { kind: 'throttled', message: /going on at/ })
  t.equal(of.reports.length, 1)
})

t.test('a reset time that nobody can believe is bounded', async (t) => {
  for (const reset_s of [-600, 10_000_000]) {
    const of = await open(t)
    of.control.fault({ match: 'GET /servers', kind: 'rate-limit', reset_s })
    const { retryAtMs } = await of.client.servers.list(callOf()).catch((error) => error)
    t.ok(retryAtMs > Date.now() && retryAtMs <= Date.now() + 3_600_000, String(reset_s))
  }
})

t.test('an account that has used up its hour is asked again long before it has all of it back', async (t) => {
  const headers = { 'ratelimit-limit': '3600', 'ratelimit-remaining': '0' }
  const inAnHour = String(Math.round(Date.now() / 1000) + 3600)
  const cases: [Record<string, string>, number, number][] = [
    [{ ...headers, 'ratelimit-reset': inAnHour }, 5, 15],
    [{ ...headers, 'ratelimit-limit': '60', 'ratelimit-reset': inAnHour }, 55, 65],
    [{ 'ratelimit-reset': inAnHour }, 3000, 3600],
    [{ 'retry-after': '20' }, 15, 25],
    [{}, 1, 5],
  ]
  for (const [said, least, most] of cases) {
    const of = await open(t)
    const status = 429
    of.control.fault({ match: 'GET /servers', kind: 'http', status, body: 'slow down', headers: said })
    const { kind, retryAtMs } = await of.client.servers.list(callOf()).catch((error) => error)
    const waitS = (retryAtMs - Date.now()) / 1000
    t.equal(kind, 'throttled')
    t.ok(waitS >= least && waitS <= most, `${JSON.stringify(said)}: ${waitS}`)
  }
})

t.test('what a user waits for takes the requests that come back one by one, and nothing else does', async (t) => {
  // Fifteen a second: none is left after the first look, and each of the others is there in a moment.
  const of = await open(t, {}, 54_000)
  const headers = { 'ratelimit-limit': '54000', 'ratelimit-remaining': '0' }
  of.control.fault({ match: 'GET /servers', kind: 'http', status: 200, body: '{"servers":[]}', headers, times: -1 })
  for (let i = 0; i < 4; i++) t.same(await of.client.servers.list(callOf()), [])
  t.equal(of.reports.length, 4)
  await t.rejects(of.client.servers.list(callOf({ urgency: 'background' })), {
    kind: 'throttled',
    message: /going on at/,
  })
  const signal = AbortSignal.timeout(1)
  await t.rejects(of.client.servers.list(callOf({ signal })), { kind: 'aborted', message: /stopped|listing/ })
})

t.test('a request whose time has come before that is known is sent', async (t) => {
  const of = await open(t, {}, 54_000, new HttpClient(), 150)
  const headers = { 'ratelimit-limit': '54000', 'ratelimit-remaining': '0' }
  of.control.fault({ match: 'GET /servers', kind: 'http', status: 200, body: '{"servers":[]}', headers, times: -1 })
  for (let i = 0; i < 3; i++) t.same(await of.client.servers.list(callOf()), [])
})

t.test('the token is read for each request', async (t) => {
  const of = await open(t)
  const account = of.client.account()
  of.setToken('z'.repeat(64))
  t.not(of.client.account(), account)
  await t.rejects(of.client.servers.list(callOf()), { kind: 'permanent', message: /check HCLOUD_TOKEN/ })
  of.control.seed({ tokens: [{ token: 'z'.repeat(64), readonly: true }] })
  t.equal((await of.client.servers.list(callOf())).length, 1)
  await t.rejects(of.client.loadBalancers.delete(of.id, callOf()), { kind: 'permanent', message: /read and write/ })
})

t.test('a stopped run sends nothing more', async (t) => {
  const of = await open(t)
  await t.rejects(of.client.servers.list(callOf({ signal: AbortSignal.abort() })), {
    kind: 'aborted',
    message: /listing servers/,
  })
  t.equal(of.requests().length, 0)
})

t.test('requests are reported by endpoint, without ids', async (t) => {
  const of = await open(t)
  await of.client.loadBalancers.changeAlgorithm(of.id, 'least_connections', callOf())
  t.match(of.reports, [
    { api: 'hcloud', method: 'POST', endpoint: '/load_balancers/-/actions/change_algorithm', status: 201 },
  ])
})

t.test('actions of many runs are polled together, and each run gets its own outcome', async (t) => {
  const of = await open(t, { action_ms: 60 })
  of.control.seed({ load_balancers: [{ name: 'b' }, { name: 'c' }] })
  const ids = (of.control.state().load_balancers as { id: number }[]).map(({ id }) => id)
  const poller = createActionPoller({ get: of.client.actions.get, patienceMs: 500 })
  t.teardown(() => poller.close())
  const change = (id: number | undefined) =>
    of.client.loadBalancers.changeAlgorithm(id ?? 0, 'least_connections', callOf())
  const good = await change(ids[0])
  of.control.fault({
    match: 'POST /load_balancers/{id}/actions/change_algorithm',
    kind: 'action-error',
    code: 'failed',
    message: 'no luck',
  })
  const bad = await change(ids[1])
  of.control.fault({ match: 'POST /load_balancers/{id}/actions/change_algorithm', kind: 'action-hang' })
  const endless = await change(ids[2])
  const before = of.reports.length
  const gone = new AbortController()
  const stopped = poller.wait(endless.actions, callOf({ signal: gone.signal }))
  gone.abort()
  const [first, second, third, fourth] = await Promise.allSettled([
    poller.wait(good.actions, callOf()),
    poller.wait(bad.actions, callOf()),
    poller.wait(endless.actions, callOf()),
    stopped,
  ])
  t.match(first, { status: 'fulfilled' })
  t.match(second, { reason: { kind: 'transient', code: 'failed', message: /no luck/ } })
  t.match(third, { reason: { kind: 'throttled', code: 'action_running' } })
  t.match(fourth, { reason: { kind: 'aborted' } })
  t.ok(of.reports.length - before <= 4, 'polled in batches')
})

t.test('an action in a state that nobody knows yet goes on, until its end is known', async (t) => {
  const of = await open(t, { action_ms: 60 })
  const poller = createActionPoller({ get: of.client.actions.get })
  t.teardown(() => poller.close())
  const { actions } = await of.client.loadBalancers.changeAlgorithm(of.id, 'least_connections', callOf())
  of.control.fault({ match: 'GET /actions', kind: 'field', field: 'actions.*.status', value: 'paused', times: 2 })
  await poller.wait(actions, callOf())
  t.equal(of.control.counters().calls['GET /actions'], 3)
})

t.test('what the API always says, but did not say this time, is no "none"', async (t) => {
  const of = await open(t)
  const [server] = (of.control.state().servers ?? []) as { id: number }[]
  const ask: Record<string, () => Promise<unknown>> = {
    server: () => of.client.servers.get(server?.id ?? 0, callOf()),
    servers: () => of.client.servers.list(callOf()),
    load_balancer: () => of.client.loadBalancers.get(of.id, callOf()),
    load_balancers: () => of.client.loadBalancers.list(callOf()),
  }
  const fields = {
    server: ['public_net', 'private_net'],
    load_balancer: ['public_net', 'private_net', 'labels', 'services', 'targets'],
  }
  for (const [kind, names] of Object.entries(fields))
    for (const name of names)
      for (const [list, field] of [
        [kind, `${kind}.${name}`],
        [`${kind}s`, `${kind}s.*.${name}`],
      ] as const) {
        of.control.fault({ method: 'GET', path: `^/${kind}s`, kind: 'field', field, value: null, times: 2 })
        await t.rejects(
          ask[list]?.() ?? Promise.resolve(),
          { kind: 'transient', message: new RegExp(`without ${name}`) },
          field,
        )
        of.control.fault({ clear: true })
        t.ok(await ask[list]?.(), `${field} is there again`)
      }
})
