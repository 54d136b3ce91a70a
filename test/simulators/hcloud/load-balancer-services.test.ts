import t from 'tap'
import { call, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const tcp = { protocol: 'tcp', listen_port: 80, destination_port: 30080 }
const http = { ...tcp, protocol: 'http' }
const https = { ...tcp, protocol: 'https', listen_port: 443 }
const check = (fields: object): object => ({ ...tcp, health_check: { protocol: 'tcp', port: 30080, ...fields } })
const httpCheck = (fields: object): object => check({ protocol: 'http', http: fields })

t.test('listeners', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 0 } })
  t.teardown(() => simulator.close())
  const fresh = (): void => {
    simulator.control.reset()
    simulator.control.seed({ load_balancers: [{ id: 1, name: 'lb' }], certificates: [{ id: 7, name: 'cert' }] })
  }
  const act = (command: string, body: object) => call(simulator, 'POST', `/load_balancers/1/actions/${command}`, body)
  const services = async () => (await call(simulator, 'GET', '/load_balancers/1')).body.load_balancer.services
  t.beforeEach(fresh)

  t.test('get every default', async (t) => {
    await act('add_service', { ...http, health_check: { protocol: 'http', port: 9000 } })
    await act('add_service', { ...https, http: { certificates: [7] } })
    const sticky = { cookie_name: 'HCLBSTICKY', cookie_lifetime: 300, sticky_sessions: false }
    const timing = { interval: 15, timeout: 10, retries: 3 }
    const page = { domain: '', path: '/', response: '', status_codes: ['2??', '3??'], tls: false }
    t.strictSame(await services(), [
      {
        ...http,
        proxyprotocol: false,
        health_check: { protocol: 'http', port: 9000, ...timing, http: page },
        http: { ...sticky, certificates: [], redirect_http: false, timeout_idle: 60 },
      },
      {
        ...https,
        proxyprotocol: false,
        health_check: { protocol: 'tcp', port: 30080, ...timing },
        http: { ...sticky, certificates: [7], redirect_http: false, timeout_idle: 60 },
      },
    ])
  })

  t.test('are refused with the name of the wrong field', async (t) => {
    const cases: [body: object, refused: string][] = [
      [{ ...tcp, destination_port: 0 }, 'invalid_input destination_port'],
      [{ ...tcp, destination_port: 65536 }, 'invalid_input destination_port'],
      [{ ...tcp, listen_port: '80' }, 'invalid_input listen_port'],
      [{ protocol: 'tcp', listen_port: 80 }, 'invalid_input destination_port'],
      [{ ...tcp, protocol: 'udp' }, 'invalid_input protocol'],
      [{ ...tcp, proxyprotocol: null }, 'invalid_input proxyprotocol'],
      [{ ...tcp, health_check: { protocol: 'https', port: 1 } }, 'invalid_input health_check.protocol'],
      [{ ...tcp, health_check: { protocol: 'tcp' } }, 'invalid_input health_check.port'],
      [check({ port: 70_000 }), 'invalid_input health_check.port'],
      [check({ interval: 1 }), 'invalid_input health_check.interval'],
      [check({ interval: 61 }), 'invalid_input health_check.interval'],
      [check({ timeout: 0 }), 'invalid_input health_check.timeout'],
      [check({ retries: 9 }), 'invalid_input health_check.retries'],
      [check({ retries: 2.5 }), 'invalid_input health_check.retries'],
      [check({ pause: 2 }), 'invalid_input health_check.pause'],
      [check({ http: { path: '/' } }), 'invalid_input health_check.http'],
      [httpCheck({ status_codes: ['ok'] }), 'invalid_input health_check.http.status_codes.0'],
      [httpCheck({ status_codes: ['2??', ' 301'] }), 'invalid_input health_check.http.status_codes.1'],
      [httpCheck({ path: '/a b' }), 'invalid_input health_check.http.path'],
      [httpCheck({ path: 'up' }), 'invalid_input health_check.http.path'],
      [httpCheck({ domain: 'a b' }), 'invalid_input health_check.http.domain'],
      [{ ...http, http: { cookie_name: 'a b' } }, 'invalid_input http.cookie_name'],
      [{ ...http, http: { cookie_lifetime: 1 } }, 'invalid_input http.cookie_lifetime'],
      [{ ...http, http: { timeout_idle: 10 } }, 'invalid_input http.timeout_idle'],
      [{ ...http, http: { redirect_http: true } }, 'invalid_input http.redirect_http'],
      [{ ...http, http: { certificates: [7] } }, 'invalid_input http.certificates'],
      [{ ...tcp, http: { sticky_sessions: true } }, 'invalid_input http.sticky_sessions'],
      [{ ...tcp, http: { redirect_http: true } }, 'invalid_input http.redirect_http'],
      [{ ...tcp, http: { certificates: [7] } }, 'invalid_input http.certificates'],
      [https, 'invalid_input http.certificates'],
      [{ ...https, http: { certificates: [999] } }, 'invalid_input http.certificates'],
      [{ ...https, http: { certificates: ['cert'] } }, 'invalid_input http.certificates.0'],
    ]
    for (const [body, refused] of cases) {
      const answer = await act('add_service', body)
      t.equal(answer.status, 422)
      t.equal(refusal(answer), refused, JSON.stringify(body))
    }
    t.strictSame(await services(), [])
  })

  t.test('take what the recorded controller sends', async (t) => {
    const allowed = [
      check({ interval: 9, timeout: 13 }),
      httpCheck({ domain: 'health.example.com', path: '/up', status_codes: ['200', '2?1', '30*'], tls: true }),
      { ...tcp, http: { cookie_name: 'X', cookie_lifetime: 600, timeout_idle: 90 } },
    ]
    for (const body of allowed) {
      t.equal((await act('add_service', body)).status, 201, JSON.stringify(body))
      await act('delete_service', { listen_port: 80 })
    }
  })

  t.test('share no port, and are no more than the type takes', async (t) => {
    await act('add_service', tcp)
    const twice = await act('add_service', tcp)
    t.equal(twice.status, 412)
    t.equal(refusal(twice), 'source_port_already_used')
    for (const listen_port of [81, 82, 83, 84]) await act('add_service', { ...tcp, listen_port })
    t.equal(refusal(await act('add_service', { ...tcp, listen_port: 85 })), 'resource_limit_exceeded')
  })

  t.test('change only in what is sent', async (t) => {
    await act('add_service', { ...http, http: { cookie_name: 'MINE' }, health_check: { protocol: 'http', port: 1 } })
    await act('update_service', { listen_port: 80, destination_port: 31000, proxyprotocol: true })
    t.match(await services(), [
      { destination_port: 31000, proxyprotocol: true, http: { cookie_name: 'MINE' }, health_check: { port: 1 } },
    ])
    await act('update_service', { listen_port: 80, protocol: 'tcp', health_check: { protocol: 'tcp', port: 2 } })
    const [service] = await services()
    t.notOk('http' in service)
    t.notOk('http' in service.health_check)
    t.equal(refusal(await act('update_service', { listen_port: 81 })), 'not_found')
    t.equal(refusal(await act('update_service', { destination_port: 1 })), 'invalid_input listen_port')
    t.equal(
      refusal(await act('update_service', { listen_port: 80, protocol: 'https' })),
      'invalid_input http.certificates',
    )
  })

  t.test('go by their port', async (t) => {
    await act('add_service', tcp)
    t.equal(refusal(await act('delete_service', { listen_port: 81 })), 'not_found')
    t.equal(refusal(await act('delete_service', { port: 80 })), 'invalid_input port,listen_port')
    t.equal((await act('delete_service', { listen_port: 80 })).status, 201)
    t.strictSame(await services(), [])
  })
})
