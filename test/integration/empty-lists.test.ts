import t from 'tap'
import { NODES } from '../../src/kubernetes/resources.ts'
import { eventually, HCLOUD_TOKEN, isInitialised, startWorld } from './world.ts'

t.test('lists that come empty by mistake take nothing away and make nothing twice', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const names = ['w1', 'w2', 'w3']
  world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
  for (const name of names) await world.addNode(name)
  const env = { WINDLASS_RESYNC_PERIOD: '1s', HCLOUD_SERVER_CACHE_MAX_AGE: '100ms' }
  const all = world.start('all', { env, args: ['--node-monitor-period=200ms', '--node-status-update-frequency=500ms'] })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
  await world.addService('web')
  const ingress = await eventually(
    async () => (await world.services())[0]?.status?.loadBalancer?.ingress,
    'the Service has its addresses',
  )
  const state = async () => ({
    balancers: (await world.account()).load_balancers,
    nodes: (await world.nodes()).map(({ metadata: { name, labels }, spec, status }) => ({
      ...{ name, labels, providerID: spec?.providerID, taints: spec?.taints, addresses: status?.addresses },
    })),
  })
  const before = await state()

  world.hcloud.control.fault({ path: '^/(servers|load_balancers)(\\?|$)', kind: 'empty-list', times: -1 })
  const listed = await fetch(`${world.hcloud.apiUrl}/servers`, { headers: { authorization: `Bearer ${HCLOUD_TOKEN}` } })
  t.match(await listed.json(), { servers: { length: 0 } })
  const down = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
  await world.api.patch(NODES, { name: 'w3' }, { type: 'strategic', subresource: 'status', body: down }, world.call)
  const looks = () => all.lines().filter(({ msg }) => msg === 'enqueued everything once more').length
  const begun = looks()
  const asked = () => Number(world.hcloud.control.counters().calls['GET /servers/{id}'] ?? 0)
  await eventually(async () => looks() >= begun + 3 && asked() > 5, 'all of it was looked at, again and again')
  t.strictSame(await state(), before)
  t.strictSame((await world.services())[0]?.status?.loadBalancer?.ingress, ingress)
})
