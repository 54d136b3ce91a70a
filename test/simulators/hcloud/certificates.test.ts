import t from 'tap'
import { call, finished, refusal } from './caller.ts'
import { startHcloudSimulator } from './simulator.ts'

const managed = { name: 'mine', type: 'managed', domain_names: ['a.example.com', '*.b.example.com'] }
const uploaded = {
  name: 'own',
  certificate: '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----',
  private_key: '-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----',
}

t.test('certificates', async (t) => {
  const simulator = await startHcloudSimulator({ options: { action_ms: 1 } })
  t.teardown(() => simulator.close())
  t.beforeEach(() => simulator.control.reset())
  const create = (body: object) => call(simulator, 'POST', '/certificates', body)

  t.test('managed ones are issued by an action', async (t) => {
    simulator.control.fault({ match: 'POST /certificates', kind: 'action-hang' })
    const created = await create({ ...managed, labels: { 'HC-Use-Staging-CA': 'true' } })
    t.equal(created.status, 201)
    t.match(created.body, {
      certificate: { type: 'managed', status: { issuance: 'pending' }, certificate: null, used_by: [] },
      action: { command: 'create_certificate', status: 'running' },
    })
    simulator.control.mutate({ actions: [{ id: created.body.action.id }] })
    const { certificate } = (await call(simulator, 'GET', `/certificates/${created.body.certificate.id}`)).body
    t.match(certificate, { status: { issuance: 'completed', error: null }, domain_names: managed.domain_names })
    const found = await call(simulator, 'GET', '/certificates?label_selector=HC-Use-Staging-CA%3Dtrue&type=managed')
    t.equal(found.body.certificates.length, 1)
  })

  t.test('a failed issuance says why, and can be tried again', async (t) => {
    simulator.control.fault({ match: 'POST /certificates', kind: 'action-error', code: 'ca_dns_validation_failed' })
    const created = await create(managed)
    t.match(await finished(simulator, created), { status: 'error', error: { code: 'ca_dns_validation_failed' } })
    const path = `/certificates/${created.body.certificate.id}`
    t.match((await call(simulator, 'GET', path)).body.certificate.status, {
      issuance: 'failed',
      error: { code: 'ca_dns_validation_failed' },
    })
    t.match(await finished(simulator, await call(simulator, 'POST', `${path}/actions/retry`)), { status: 'success' })
    t.equal(refusal(await call(simulator, 'POST', `${path}/actions/retry`)), 'unsupported_error')
  })

  t.test('uploaded ones are there at once', async (t) => {
    t.match((await create(uploaded)).body, { certificate: { type: 'uploaded', status: null }, action: null })
  })

  t.test('are refused when something is wrong with them', async (t) => {
    await create(uploaded)
    const cases: [body: object, refused: string][] = [
      [{ ...managed, name: 'own' }, 'uniqueness_error name'],
      [{ name: 'x', type: 'managed' }, 'invalid_input domain_names'],
      [{ ...managed, domain_names: [] }, 'invalid_input domain_names'],
      [{ ...managed, domain_names: ['a.b', ' c.de'] }, 'invalid_input domain_names.0,domain_names.1'],
      [{ ...managed, type: 'selfsigned' }, 'invalid_input type'],
      [{ ...managed, certificate: uploaded.certificate }, 'invalid_input certificate'],
      [{ name: 'x' }, 'invalid_input certificate'],
      [{ ...uploaded, name: 'x', private_key: 'secret' }, 'invalid_input private_key'],
    ]
    for (const [body, refused] of cases) t.equal(refusal(await create(body)), refused, JSON.stringify(body))
  })

  t.test('stay while a load balancer uses them', async (t) => {
    simulator.control.seed({
      certificates: [{ id: 7, name: 'cert' }],
      load_balancers: [
        { name: 'lb', services: [{ protocol: 'https', listen_port: 443, http: { certificates: ['cert'] } }] },
      ],
    })
    t.match((await call(simulator, 'GET', '/certificates/7')).body.certificate.used_by, [{ type: 'load_balancer' }])
    t.equal(refusal(await call(simulator, 'DELETE', '/certificates/7')), 'resource_in_use')
    simulator.control.mutate({ load_balancers: [{ name: 'lb', delete: true }] })
    t.equal((await call(simulator, 'DELETE', '/certificates/7')).status, 204)
    t.equal((await call(simulator, 'DELETE', '/certificates/7')).status, 404)
  })

  t.test('are renamed and relabelled', async (t) => {
    simulator.control.seed({
      certificates: [
        { id: 7, name: 'one' },
        { id: 8, name: 'two' },
      ],
    })
    const changed = await call(simulator, 'PUT', '/certificates/7', { name: 'uno', labels: { a: 'b' } })
    t.match(changed.body.certificate, { name: 'uno', labels: { a: 'b' } })
    t.equal(refusal(await call(simulator, 'PUT', '/certificates/7', { name: 'two' })), 'uniqueness_error name')
    t.equal(
      refusal(await call(simulator, 'PUT', '/certificates/7', { domain_names: [] })),
      'invalid_input domain_names',
    )
  })
})
