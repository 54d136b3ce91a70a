import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { call } from './caller.ts'
import { startCherrySimulator } from './simulator.ts'

t.test('the control side', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  const { control } = simulator
  t.beforeEach(() => control.reset())
  const post = (name: string, body: object) =>
    fetch(`${simulator.url}/_sim/${name}`, { method: 'POST', body: JSON.stringify(body) })

  t.test('fills in what a seeded account leaves out', async (t) => {
    await control.seed({ servers: [{ id: 5, hostname: 'w1' }, {}], ips: [{ tags: { mine: true } }] })
    t.match(control.state(), {
      projects: [{ id: 1, name: 'default', bgp: { enabled: false, local_asn: 0 } }],
      servers: [
        { id: 5, project: 1, hostname: 'w1', plan: 'e5_1620v4', region: 'LT-Siauliai', state: 'active', power: 'on' },
        { hostname: 'server-2' },
      ],
      ips: [
        { address: '5.199.160.1' },
        { address: '10.168.0.1' },
        {},
        {},
        { type: 'floating-ip', tags: { mine: 'true' } },
      ],
    })
  })

  t.test('refuses an account that it does not understand', async (t) => {
    for (const account of [
      { server: [] },
      { servers: [{ hostname: 'a', colour: 'red' }] },
      { servers: [{ hostname: 'a', region: 'Moon-1' }] },
      { servers: [{ hostname: 'a', apiserver: 'maybe' }] },
      { servers: [{ id: 1 }, { id: 1 }] },
      { servers: [{ ip_addresses: [{ address: '5.199.160.1', type: 'primary-ip', family: 4 }] }] },
      { ips: [{ address: '5.199.171.9' }, { address: '5.199.171.9' }] },
      { ips: [{ targeted_to: 99 }] },
      { settings: { limit: 1 } },
      { options: { lag: 1 } },
    ]) {
      await control.reset()
      await t.rejects(control.seed(account), JSON.stringify(account))
    }
    await t.rejects(control.mutate({ servers: [{ hostname: 'nobody', $delete: true }] }))
    await t.rejects(startCherrySimulator({ options: { lag: 1 } as object }))
    t.equal((await post('seed', { server: [] })).status, 400)
    t.equal((await post('nothing', {})).status, 404)
  })

  t.test('changes the account behind the API’s back', async (t) => {
    await control.seed({ servers: [{ hostname: 'w1' }], ips: [{ address: '5.199.171.9' }] })
    await control.mutate({
      servers: [
        { hostname: 'w1', ip_addresses: [{ address: '5.199.162.9', type: 'primary-ip' }], tags: { a: 'b' } },
        { create: { id: 77, hostname: 'w2', ip_addresses: [] } },
      ],
      ips: [{ address: '5.199.171.9', targeted_to: 77, tags: { c: 'd' } }],
    })
    t.match(control.state(), {
      servers: [{ tags: { a: 'b' } }, { id: 77 }],
      ips: [{ address: '5.199.171.9', target_server_id: 77, tags: { c: 'd' } }, { address: '5.199.162.9' }],
    })
    await control.mutate({ ips: [{ address: '5.199.171.9', $delete: true }] })
    t.equal(control.state().ips.length, 1)
  })

  t.test('says when the cloud rests', async (t) => {
    await control.seed({ projects: [{ id: 1, name: 'lab' }] })
    const before = control.activity()
    await call(simulator, 'GET', '/projects/1/ips')
    t.strictSame(control.activity(), { ...before, requests: before.requests + 1 }, 'reading changes nothing')
    await call(simulator, 'POST', '/projects/1/ips', { region: 'LT-Siauliai' })
    t.ok(control.activity().revision > before.revision)
    await control.reset()
    t.strictSame(control.activity(), { revision: 0, inflight: 0, requests: 0 })
  })

  t.test('counts and logs requests by endpoint', async (t) => {
    await control.seed({ projects: [{ id: 1, name: 'lab' }] })
    await call(simulator, 'GET', '/servers/1')
    await call(simulator, 'POST', '/projects/1/ips', { region: 'Moon-1' })
    t.strictSame(await (await fetch(`${simulator.url}/_sim/counters`)).json(), {
      calls: { 'GET /servers/{id}': 1, 'POST /projects/{id}/ips': 1 },
      rejected: { 'GET /servers/{id} 404': 1, 'POST /projects/{id}/ips 400': 1 },
    })
    t.match(control.log().at(-1), { path: '/v1/projects/1/ips', body: { region: 'Moon-1' }, status: 400 })
  })

  t.test('does by HTTP what it does by call', async (t) => {
    await post('seed', { servers: [{ hostname: 'w1' }] })
    await post('mutate', { servers: [{ hostname: 'w1', state: 'inactive' }] })
    await post('fault', { match: 'GET /regions', kind: 'error', code: 500 })
    const state = await (await fetch(`${simulator.url}/_sim/state`)).json()
    t.match(state, { servers: [{ hostname: 'w1', state: 'inactive' }] })
    await fetch(`${simulator.url}/_sim/fault`, { method: 'DELETE' })
    t.equal((await call(simulator, 'GET', '/regions')).status, 200)
    await post('reset', {})
    t.strictSame(control.state().servers, [])
  })
})

t.test('the program prints its addresses, writes its CA and ends when told', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const file = new URL('./main.ts', import.meta.url).pathname
  const options = ['--token', 'abc', '--options', '{"page_size":1}', '--ca-out', join(dir, 'ca.pem')]
  const child = spawn(process.execPath, [file, '--port', '0', ...options])
  const ended = once(child, 'exit')
  const [line] = await once(createInterface(child.stdout), 'line')
  const { url, apiUrl } = JSON.parse(line)
  t.equal(apiUrl, `${url}/v1/`)
  const answer = await fetch(`${apiUrl}regions`, { headers: { authorization: 'Bearer abc' } })
  t.equal(((await answer.json()) as unknown[]).length, 1)
  t.match(readFileSync(join(dir, 'ca.pem'), 'utf8'), /^-----BEGIN CERTIFICATE-----/)
  child.kill('SIGTERM')
  t.equal((await ended)[0], 0)
})
