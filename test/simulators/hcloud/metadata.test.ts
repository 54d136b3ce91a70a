import t from 'tap'
import { parse } from 'yaml'
import { startHcloudSimulator } from './simulator.ts'

t.test('the metadata service', async (t) => {
  const simulator = await startHcloudSimulator()
  t.teardown(() => simulator.close())
  const get = async (path: string) => {
    const response = await fetch(`${simulator.metadataUrl}${path}`)
    return { status: response.status, text: await response.text() }
  }
  simulator.control.seed({
    networks: [{ id: 500, name: 'net', subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24' }] }],
    servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.11', alias_ips: ['10.0.0.12'] }] }],
  })

  t.test('knows nothing about a machine that is none of the servers', async (t) => {
    t.equal((await get('/private-networks')).status, 404)
  })

  t.test('tells the networks of the machine as YAML', async (t) => {
    simulator.control.mutate({ metadata: { server: 'w1' } })
    const { status, text } = await get('/private-networks')
    t.equal(status, 200)
    t.match(parse(text), [{ network_id: 500, network_name: 'net', ip: '10.0.0.11', alias_ips: ['10.0.0.12'] }])
    t.match(text, /\bnetwork_id: 500\n/)
    t.equal((await get('/instance-id')).text, '1')
    t.equal((await get('/hostname')).text, 'w1')
    t.equal((await get('/vendor')).status, 404)
  })

  t.test('tells an empty list for a machine without networks', async (t) => {
    simulator.control.mutate({ servers: [{ name: 'w1', set: { private_net: [] } }] })
    t.strictSame(parse((await get('/private-networks')).text), [])
  })

  t.test('is counted', async (t) => {
    t.equal(simulator.control.counters().calls['METADATA GET /private-networks'], 3)
  })
})
