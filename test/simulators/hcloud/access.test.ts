import t from 'tap'
import { call, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

t.test('the front door of the Cloud API', async (t) => {
  const simulator = await startHcloudSimulator()
  t.teardown(() => simulator.close())
  simulator.control.seed({ tokens: [{ token: 'reader', readonly: true }] })

  t.test('a missing or wrong token is unauthorized', async (t) => {
    for (const authorization of ['', 'Bearer wrong', `Basic ${'k'.repeat(64)}`]) {
      const answer = await call(simulator, 'GET', '/locations', undefined, { authorization })
      t.equal(answer.status, 401)
      t.equal(refusal(answer), 'unauthorized')
    }
  })

  t.test('a read-only token reads and does not write', async (t) => {
    const authorization = 'Bearer reader'
    t.equal((await call(simulator, 'GET', '/servers', undefined, { authorization })).status, 200)
    const write = await call(simulator, 'DELETE', '/load_balancers/1', undefined, { authorization })
    t.equal(refusal(write), 'token_readonly')
  })

  t.test('a revoked token stops working', async (t) => {
    simulator.control.mutate({ tokens: [{ token: 'reader', delete: true }] })
    t.equal(
      refusal(await call(simulator, 'GET', '/servers', undefined, { authorization: 'Bearer reader' })),
      'unauthorized',
    )
  })

  t.test('unknown paths, ids and methods', async (t) => {
    t.equal((await call(simulator, 'GET', '/nothing')).status, 404)
    t.equal((await call(simulator, 'GET', '/load_balancers/mine')).status, 404)
    t.equal(refusal(await call(simulator, 'GET', '/load_balancers/1')), 'not_found')
    t.equal((await call(simulator, 'PUT', '/locations')).status, 405)
    t.equal((await call(simulator, 'GET', '/../outside')).status, 404)
  })

  t.test('a body must be announced as JSON, and be JSON', async (t) => {
    const untyped = await call(simulator, 'POST', '/certificates', '{}', { 'content-type': 'text/plain' })
    t.equal(untyped.status, 415)
    const broken = await call(simulator, 'POST', '/certificates', '{"name":')
    t.equal(broken.status, 400)
    t.equal(refusal(broken), 'json_error')
    t.equal(refusal(await call(simulator, 'POST', '/certificates')), 'json_error')
    t.equal(refusal(await call(simulator, 'DELETE', '/certificates/1', {})), 'invalid_input body')
  })

  t.test('unknown query parameters are refused by name', async (t) => {
    t.equal(refusal(await call(simulator, 'GET', '/servers?label_selektor=a')), 'invalid_input label_selektor')
    t.equal(refusal(await call(simulator, 'GET', '/servers/1?name=a')), 'invalid_input name')
    t.equal(refusal(await call(simulator, 'GET', '/servers?name=a&name=b')), 'invalid_input name')
  })

  t.test('every answer carries a correlation id and the budget', async (t) => {
    const { headers } = await call(simulator, 'GET', '/servers/1')
    t.match(headers.get('x-correlation-id'), /^[0-9a-f]{16}$/)
    t.equal(headers.get('ratelimit-limit'), '3600')
    t.ok(Number(headers.get('ratelimit-remaining')) < 3600)
    t.ok(Number(headers.get('ratelimit-reset')) >= Math.floor(Date.now() / 1000))
  })
})

t.test('requests beyond the budget are answered with 429', async (t) => {
  const simulator = await startHcloudSimulator({ options: { rate_limit: 2 } })
  t.teardown(() => simulator.close())
  await call(simulator, 'GET', '/locations')
  const last = await call(simulator, 'GET', '/locations')
  t.equal(last.headers.get('ratelimit-remaining'), '0')
  const refused = await call(simulator, 'GET', '/locations')
  t.equal(refused.status, 429)
  t.equal(refusal(refused), 'rate_limit_exceeded')
  t.ok(Number(refused.headers.get('ratelimit-reset')) > Date.now() / 1000)
})
