import t from 'tap'
import { call, type Received } from './caller.ts'
import { startCherrySimulator } from './simulator.ts'

t.test('lists', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  const { control } = simulator
  t.beforeEach(async () => {
    await control.reset()
    await control.seed({
      projects: [{ id: 7, name: 'lab' }],
      servers: [1, 2, 3].map((id) => ({ id, hostname: `w${id}` })),
      ips: [{ address: '5.199.171.200', tags: { a: 'b' }, targeted_to: 1 }, { address: '5.199.171.201' }],
    })
  })
  const get = (path: string) => call(simulator, 'GET', path)
  const names = ({ body }: Received) => body.map((server: { hostname: string }) => server.hostname)

  t.test('come in parts, with the size of the whole', async (t) => {
    const all = await get('/projects/7/servers')
    t.strictSame(names(all), ['w1', 'w2', 'w3'])
    t.equal(all.headers.get('x-total-count'), '3')
    const part = await get('/projects/7/servers?limit=1&offset=1')
    t.strictSame(names(part), ['w2'])
    t.equal(part.headers.get('x-total-count'), '3')
    t.strictSame(names(await get('/projects/7/servers?limit=0&offset=2')), ['w3'])
    t.strictSame(names(await get('/projects/7/servers?offset=3')), [])
  })

  t.test('are cut by the server too, if it has a page size', async (t) => {
    await control.mutate({ options: { page_size: 2 } })
    const first = await get('/projects/7/servers')
    t.strictSame(names(first), ['w1', 'w2'])
    t.equal(first.headers.get('x-total-count'), '3')
    t.strictSame(names(await get('/projects/7/servers?limit=100')), ['w1', 'w2'])
    t.strictSame(names(await get('/projects/7/servers?limit=1')), ['w1'])
  })

  t.test('have the addresses of all kinds', async (t) => {
    const { body } = await get('/projects/7/ips')
    t.strictSame(body.map((ip: { type: string }) => ip.type).sort(), [
      'floating-ip',
      'floating-ip',
      ...Array(3).fill('primary-ip'),
      ...Array(3).fill('private-ip'),
    ])
  })

  t.test('show only the fields that are asked for, and power only then', async (t) => {
    t.strictSame((await get('/servers/1?fields=id,power')).body, { id: 1, power: 'on' })
    t.notOk('power' in (await get('/servers/1')).body)
    t.strictSame((await get('/projects/7/servers?fields=state&limit=1')).body, [{ state: 'active' }])
  })

  t.test('have regions with the hosts of their BGP, in no order', async (t) => {
    const { body } = await get('/regions')
    t.match(body[0], { slug: 'LT-Siauliai', bgp: { hosts: ['188.214.132.44', '188.214.132.43'], asn: 16125 } })
  })
})

t.test('what is empty looks as told', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  await simulator.control.seed({ ips: [{ address: '5.199.171.200' }] })
  const shown = async (options: object) => {
    await simulator.control.mutate({ options })
    const { tags, targeted_to } = (await call(simulator, 'GET', '/projects/1/ips')).body[0]
    return { tags, targeted_to }
  }
  t.strictSame(await shown({}), { tags: {}, targeted_to: { id: 0 } })
  t.strictSame(await shown({ ids: 'text' }), { tags: {}, targeted_to: { id: '0' } })
  t.strictSame(await shown({ no_tags: 'array', no_target: 'empty' }), { tags: [], targeted_to: {} })
  t.strictSame(await shown({ no_tags: 'null', no_target: 'null' }), { tags: null, targeted_to: null })
  t.strictSame(await shown({ no_tags: 'absent', no_target: 'absent' }), { tags: undefined, targeted_to: undefined })
})
