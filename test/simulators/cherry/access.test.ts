import t from 'tap'
import { call, refusal } from './caller.ts'
import { startCherrySimulator } from './simulator.ts'

t.test('the front door', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  await simulator.control.seed({ projects: [{ id: 7, name: 'lab' }], servers: [{ id: 1, hostname: 'w1' }] })

  t.test('a missing or wrong token is unauthorized, whatever was asked for', async (t) => {
    for (const authorization of ['', 'Bearer wrong', 'bearer cherry-token', 'cherry-token']) {
      for (const path of ['/projects/7', '/nothing']) {
        t.equal(refusal(await call(simulator, 'GET', path, undefined, { authorization })), '401 Unauthorized')
      }
    }
  })

  t.test('unknown paths and ids are not found, known ones take only their methods', async (t) => {
    for (const path of ['/nothing', '/servers', '/servers/w1', '/servers/1/', '//servers/1', '/projects/7/server']) {
      t.equal(refusal(await call(simulator, 'GET', path)), `404 /v1${path} not found`)
    }
    t.equal(refusal(await call(simulator, 'GET', '/projects/8')), '404 Project not found')
    t.equal(refusal(await call(simulator, 'GET', '/projects/8/ips')), '404 Project not found')
    t.equal(refusal(await call(simulator, 'GET', '/servers/2')), '404 Server not found')
    t.equal(
      refusal(await call(simulator, 'DELETE', '/ips/7b9c0a1e-0000-4000-8000-000000000000')),
      '404 IP address not found',
    )
    t.equal(refusal(await call(simulator, 'DELETE', '/projects/7')), '405 DELETE is not allowed here')
    const outside = await fetch(`${simulator.url}/servers/1`, { headers: { authorization: 'Bearer cherry-token' } })
    t.equal(outside.status, 404, 'without /v1')
  })

  t.test('a body must be announced as JSON, be JSON, and belong there', async (t) => {
    const put = (body: unknown, headers?: Record<string, string>) => call(simulator, 'PUT', '/servers/1', body, headers)
    t.equal(refusal(await put('{}', { 'content-type': 'text/plain' })), '415 the body must be application/json')
    t.equal(refusal(await put('{"bgp":')), '400 the body is not JSON')
    t.equal(refusal(await put('')), '400 the body is not JSON')
    t.equal(refusal(await put([])), '400 body: must be an object')
    t.equal((await put({ bgp: true }, { 'content-type': 'application/json; charset=utf-8' })).status, 200)
    t.match(refusal(await call(simulator, 'DELETE', '/ips/1', {})), '400 there must be no body')
  })

  t.test('unknown fields and wrong types are refused by name, and nothing is changed', async (t) => {
    const before = simulator.control.state()
    const bodies: [string, string, unknown, string][] = [
      ['PUT', '/projects/7', { name: 'lab', asn: 1 }, 'asn: unknown field'],
      ['PUT', '/projects/7', { bgp: true }, 'name: missing required field'],
      ['PUT', '/projects/7', { name: 'lab', bgp: 'true' }, 'bgp: must be a boolean'],
      ['PUT', '/projects/7', { name: '' }, 'name: must be at least 1 characters long'],
      ['PUT', '/servers/1', { bgp: 1, tags: [] }, 'tags: must be an object; bgp: must be a boolean'],
      ['PUT', '/servers/1', { tags: { a: 1 } }, 'tags.a: must be a string'],
      ['PUT', '/servers/1', { state: 'inactive' }, 'state: unknown field'],
      ['POST', '/projects/7/ips', { tags: {} }, 'region: missing required field'],
      ['POST', '/projects/7/ips', { region: 1 }, 'region: must be a string'],
      ['POST', '/projects/7/ips', { region: 'LT-Siauliai', type: 'floating-ip' }, 'type: unknown field'],
    ]
    for (const [method, path, body, message] of bodies) {
      t.equal(refusal(await call(simulator, method, path, body)), `400 ${message}`)
    }
    t.strictSame(simulator.control.state(), before)
  })

  t.test('unknown query parameters are refused by name', async (t) => {
    const get = async (path: string) => refusal(await call(simulator, 'GET', path))
    t.equal(await get('/projects/7/ips?page=1'), "400 unknown query parameter 'page'")
    t.equal(await get('/servers/1?limit=1'), "400 unknown query parameter 'limit'")
    t.equal(await get('/projects/7/ips?limit=1&limit=2'), '400 limit is given more than once')
    t.equal(await get('/projects/7/ips?limit=-1'), '400 limit must be a whole number')
    t.equal(await get('/projects/7/ips?offset=x'), '400 offset must be a whole number')
    t.equal(await get('/projects/7/ips?fields=adress'), "400 fields: there is no field 'adress'")
  })
})

t.test('more requests in a second than the limit are refused', async (t) => {
  const simulator = await startCherrySimulator({ options: { requests_per_second: 4 } })
  t.teardown(() => simulator.close())
  const burst = () => Promise.all(Array.from({ length: 6 }, () => call(simulator, 'GET', '/regions')))
  const answers = await burst()
  t.strictSame(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 429, 429])
  const refused = answers.filter(({ status }) => status === 429)
  t.equal(refusal(refused[0] as (typeof answers)[0]), '429 Too many requests')
  t.equal(refused[0]?.headers.get('retry-after'), null)
  await simulator.control.mutate({ options: { retry_after: true } })
  t.equal((await burst()).find(({ status }) => status === 429)?.headers.get('retry-after'), '1')
})
