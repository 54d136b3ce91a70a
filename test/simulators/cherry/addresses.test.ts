import t from 'tap'
import { call, refusal } from './caller.ts'
import { startCherrySimulator } from './simulator.ts'

t.test('addresses', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  const { control } = simulator
  t.beforeEach(async () => {
    await control.reset()
    await control.seed({
      projects: [
        { id: 7, name: 'lab' },
        { id: 8, name: 'other' },
      ],
      servers: [
        { id: 1, hostname: 'w1' },
        { id: 2, hostname: 'w2', region: 'NL-Amsterdam' },
        { id: 3, hostname: 'w3', project: 8 },
      ],
    })
  })
  const create = (body: object = {}) =>
    call(simulator, 'POST', '/projects/7/ips', { region: 'LT-Siauliai', tags: { a: 'b' }, ...body })
  const floating = () => control.state().ips.filter(({ type }) => type === 'floating-ip')

  t.test('are made in a region, the first of a block included', async (t) => {
    const made = await create()
    t.equal(made.status, 201)
    t.match(made.body, {
      id: /^[0-9a-f-]{36}$/,
      address: '5.199.171.0',
      cidr: '5.199.171.0/32',
      address_family: 4,
      type: 'floating-ip',
      region: { slug: 'LT-Siauliai' },
      targeted_to: { id: 0 },
      tags: { a: 'b' },
    })
    t.match((await create({ region: 'NL-Amsterdam' })).body, { address: '46.166.170.0' })
    t.match((await call(simulator, 'GET', `/ips/${made.body.id}`)).body, { address: '5.199.171.0' })
  })

  t.test('are never given twice', async (t) => {
    await control.seed({ ips: [{ address: '5.199.171.0' }] })
    t.equal((await create()).body.address, '5.199.171.1')
    t.equal((await create()).body.address, '5.199.171.2')
  })

  t.test('need a region that exists, by its slug', async (t) => {
    for (const region of ['Lithuania', 'Siauliai', 'lt-siauliai', '1']) {
      t.equal(refusal(await create({ region })), `400 region: there is no region '${region}'`)
    }
    t.strictSame(floating(), [])
  })

  t.test('are limited in number, each project for itself', async (t) => {
    await control.mutate({ settings: { limits: { floating_ips: 1 } } })
    const { id } = (await create()).body
    t.match(refusal(await create()), /^400 the limit .* is reached$/)
    t.equal((await call(simulator, 'POST', '/projects/8/ips', { region: 'LT-Siauliai' })).status, 201)
    await call(simulator, 'DELETE', `/ips/${id}`)
    t.equal((await create()).status, 201)
  })

  t.test('go to a server by its id as a string, and off it with 0', async (t) => {
    const { id } = (await create()).body
    const put = (targeted_to: unknown) => call(simulator, 'PUT', `/ips/${id}`, { targeted_to })
    const moved = await put('1')
    t.equal(moved.status, 200)
    t.match(moved.body, { targeted_to: { id: 1, hostname: 'w1' }, routed_to: { address: '5.199.160.1' } })
    t.match((await call(simulator, 'GET', '/servers/1')).body.ip_addresses[2], { type: 'floating-ip' })
    t.match(refusal(await put(1)), /^400 targeted_to: /, 'a number other than 0')
    t.match(refusal(await put(null)), /^400 targeted_to: /)
    t.match(refusal(await put('w1')), /^400 targeted_to: /)
    t.equal(refusal(await put('99')), '400 targeted_to: there is no server 99')
    t.equal(refusal(await put('3')), '400 targeted_to: there is no server 3', 'of another project')
    t.equal(refusal(await put('2')), '400 targeted_to: the server is in another region')
    t.match(floating(), [{ target_server_id: 1 }], 'refusals change nothing')
    t.match((await put(0)).body, { targeted_to: { id: 0 }, routed_to: null })
    t.match((await create({ targeted_to: '1' })).body, { targeted_to: { id: 1 } })
  })

  t.test('keep what a PUT leaves out, and have their tags replaced', async (t) => {
    const { id } = (await create()).body
    const put = (body: object) => call(simulator, 'PUT', `/ips/${id}`, body)
    t.strictSame((await put({ targeted_to: '1' })).body.tags, { a: 'b' })
    t.strictSame((await put({ tags: { c: 'd' } })).body.tags, { c: 'd' })
    t.match((await put({ ptr_record: 'x.example.org' })).body, { targeted_to: { id: 1 }, tags: { c: 'd' } })
    t.strictSame((await put({ tags: null })).body.tags, {})
    t.equal(refusal(await put({ region: 'NL-Amsterdam' })), '400 region: unknown field')
  })

  t.test('cannot be deleted while they are assigned', async (t) => {
    const { id } = (await create({ targeted_to: '1' })).body
    const remove = () => call(simulator, 'DELETE', `/ips/${id}`)
    t.equal(refusal(await remove()), '400 the IP address is assigned to a server')
    t.equal(floating().length, 1)
    await call(simulator, 'PUT', `/ips/${id}`, { targeted_to: 0 })
    const removed = await remove()
    t.equal(removed.status, 204)
    t.equal(removed.body, undefined)
    t.equal(refusal(await remove()), '404 IP address not found')
  })

  t.test('of a server itself are neither moved nor deleted', async (t) => {
    const own = control.state().ips.find(({ type }) => type === 'primary-ip')
    t.match(refusal(await call(simulator, 'DELETE', `/ips/${own?.id}`)), /^400 only a floating/)
    t.match(refusal(await call(simulator, 'PUT', `/ips/${own?.id}`, { targeted_to: 0 })), /^400 only a floating/)
  })

  t.test('are free again when their server is gone', async (t) => {
    await create({ targeted_to: '1' })
    await control.mutate({ servers: [{ hostname: 'w1', $delete: true }] })
    t.match(floating(), [{ target_server_id: 0, route_ip_id: null }])
    t.notOk(control.state().ips.some(({ owner }) => owner === 1))
  })
})
