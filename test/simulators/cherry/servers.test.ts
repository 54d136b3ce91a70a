import t from 'tap'
import { call } from './caller.ts'
import { startCherrySimulator } from './simulator.ts'

t.test('projects and servers', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  const { control } = simulator
  t.beforeEach(async () => {
    await control.reset()
    await control.seed({
      projects: [{ id: 7, name: 'lab' }],
      servers: [{ id: 1, hostname: 'w1', bgp: { enabled: true }, tags: { team: 'a' } }],
    })
  })
  const server = () => control.state().servers[0]
  const put = (body: object) => call(simulator, 'PUT', '/servers/1', body)

  t.test('a project gets an ASN with BGP, and loses it without', async (t) => {
    const bgp = (body: object) => call(simulator, 'PUT', '/projects/7', { name: 'lab', ...body })
    t.match((await call(simulator, 'GET', '/projects/7')).body, { id: 7, bgp: { enabled: false, local_asn: 0 } })
    t.match((await bgp({ bgp: true })).body, { name: 'lab', bgp: { enabled: true, local_asn: 65432 } })
    t.match((await bgp({})).body, { bgp: { enabled: true, local_asn: 65432 } }, 'left out it stays')
    t.match((await bgp({ bgp: false })).body, { bgp: { enabled: false, local_asn: 0 } })
  })

  t.test('enabling BGP again keeps the ASN', async (t) => {
    await control.mutate({ projects: [{ id: 7, bgp: { enabled: true, local_asn: 65099 } }] })
    t.match((await call(simulator, 'PUT', '/projects/7', { name: 'x', bgp: true })).body.bgp, { local_asn: 65099 })
    t.equal(control.state().projects[0]?.name, 'x')
  })

  t.test('a server shows what BGP needs', async (t) => {
    t.match((await call(simulator, 'GET', '/servers/1')).body, {
      id: 1,
      hostname: 'w1',
      state: 'active',
      plan: { slug: 'e5_1620v4' },
      region: { slug: 'LT-Siauliai', bgp: { hosts: ['188.214.132.44', '188.214.132.43'], asn: 16125 } },
      bgp: { enabled: true },
      tags: { team: 'a' },
      ip_addresses: [
        { address: '5.199.160.1', address_family: 4, type: 'primary-ip', cidr: '5.199.160.1/32' },
        { address: '10.168.0.1', type: 'private-ip' },
      ],
    })
  })

  t.test('a PUT without bgp switches it off', async (t) => {
    await put({ tags: { team: 'a' } })
    t.match(server(), { bgp: { enabled: false }, tags: { team: 'a' } })
  })

  t.test('a PUT replaces the tags, and clears them with null or without any', async (t) => {
    await put({ tags: { other: 'b' }, bgp: true })
    t.strictSame(server()?.tags, { other: 'b' })
    await put({ tags: null, bgp: true })
    t.strictSame(server()?.tags, {})
    await put({ tags: { team: 'a' }, bgp: true })
    await put({ bgp: true })
    t.strictSame(server()?.tags, {})
    t.match(server(), { name: 'w1', hostname: 'w1' }, 'names stay')
  })

  t.test('the answer to a PUT has no addresses', async (t) => {
    const { body } = await put({ tags: {}, bgp: true })
    t.match(body, { id: 1, bgp: { enabled: true }, region: { bgp: { asn: 16125 } } })
    t.notOk('ip_addresses' in body)
    t.equal((await call(simulator, 'GET', '/servers/1')).body.ip_addresses.length, 2)
  })

  t.test('state and power change behind the API’s back', async (t) => {
    await control.mutate({ servers: [{ hostname: 'w1', state: 'inactive', power: 'off' }] })
    t.equal((await call(simulator, 'GET', '/servers/1')).body.state, 'inactive')
    t.equal((await call(simulator, 'GET', '/servers/1?fields=power')).body.power, 'off')
  })
})
