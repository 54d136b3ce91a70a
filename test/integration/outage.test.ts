import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

const FAULTS: Record<string, object> = {
  'answers with errors': { kind: 'http', status: 503 },
  'answers with the page of a proxy': { kind: 'html', status: 200 },
  'cuts every connection': { kind: 'drop-before' },
  'cuts every answer in the middle': { kind: 'cut' },
  'refuses the credential': { kind: 'error', code: 'unauthorized' },
  'says that all is too much': { kind: 'rate-limit', reset_s: 1 },
  'says of everything that it is not there, by a page of its own': { kind: 'http', status: 404, body: '<html>' },
}

t.test('a cloud that is out of order, in whatever way, changes no Node, no status and no target', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const names = ['w1', 'w2', 'w3']
  world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
  for (const name of names) await world.addNode(name)
  const env = { WINDLASS_RESYNC_PERIOD: '1s', HCLOUD_SERVER_CACHE_MAX_AGE: '100ms' }
  const all = world.start('all', { env, args: ['--node-monitor-period=200ms', '--node-status-update-frequency=500ms'] })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
  await world.addService('web', { ports: [{ name: 'a', port: 80 }] })
  await eventually(
    async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length,
    'the Service has its addresses',
  )
  const down = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
  await world.api.patch(NODES, { name: 'w3' }, { type: 'strategic', subresource: 'status', body: down }, world.call)

  const state = async () => ({
    balancers: (await world.account()).load_balancers,
    status: (await world.services())[0]?.status,
    nodes: (await world.nodes()).map(({ metadata: { name, labels }, spec, status }) => ({
      ...{ name, labels, providerID: spec?.providerID, taints: spec?.taints, addresses: status?.addresses },
    })),
  })
  const ended = (key: string, kind: string) =>
    all.lines().filter((line) => line.msg === 'run ended' && line.key === key && line.kind === kind).length
  let port = 8000
  for (const [what, fault] of Object.entries(FAULTS))
    await t.test(what, async (t) => {
      const before = await state()
      world.hcloud.control.fault({ path: '.*', times: -1, ...fault })
      const marks = [ended('Service/default/web', 'service'), ended('Node/w3', 'node')] as const
      port++
      await world.api.patch(
        SERVICES,
        { namespace: 'default', name: 'web' },
        { type: 'json', body: [{ op: 'replace', path: '/spec/ports/0/port', value: port }] },
        world.call,
      )
      await eventually(
        async () => ended('Service/default/web', 'service') > marks[0] && ended('Node/w3', 'node') > marks[1] + 1,
        'both were tried',
      )
      t.strictSame(await state(), before)
      world.hcloud.control.fault({ clear: true })
      await eventually(
        async () => (await world.account()).load_balancers[0]?.services[0]?.listen_port === port,
        'what was asked for meanwhile is done',
      )
      await eventually(
        async () =>
          all.lines().findLast(({ msg, kind }) => msg === 'run ended' && kind === 'service')?.outcome === 'done',
        'and the run is over',
      )
      t.strictSame((await state()).nodes, before.nodes)
    })
  world.hcloud.control.mutate({ servers: [{ name: 'w3', delete: true }] })
  await eventually(async () => (await world.nodes()).length === 2, 'and a machine that is gone is seen to be')
})
