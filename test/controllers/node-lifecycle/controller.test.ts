import t from 'tap'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from '../../integration/world.ts'

t.test('many machines that are gone at once: a few Nodes go, the rest waits for a human’s word', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const names = Array.from({ length: 8 }, (_, i) => `w${i}`)
  world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
  for (const name of names) await world.addNode(name)
  const windlass = world.start('all', { args: ['--node-monitor-period=200ms'] })
  const { host, port } = await windlass.logged('the server listens')
  const metric = (line: string) =>
    eventually(async () => (await (await fetch(`http://${host}:${port}/metrics`)).text()).includes(line), line)
  await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')

  const gone = names.slice(0, 5)
  world.hcloud.control.mutate({ servers: gone.map((name) => ({ name, delete: true })) })
  for (const name of gone) {
    const body = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
    await world.api.patch(NODES, { name }, { type: 'strategic', subresource: 'status', body }, world.call)
  }
  const held = await eventually(async () => {
    const kept = (await world.events()).filter(({ reason }) => reason === 'NodeDeletionHeld')
    return kept.length === 3 && kept
  }, 'three of the five are held')
  t.match(held[0]?.message, /2 are the limit.*label windlass.dev\/machine-gone=true/)
  t.equal((await world.nodes()).length, names.length - 2)
  t.ok(await metric('windlass_node_deletions_held{cluster="default"} 1'))
  t.ok(await metric('windlass_node_deletions_total{cluster="default"} 2'))

  const word = { metadata: { labels: { 'windlass.dev/machine-gone': 'true' } } }
  for (const { involvedObject } of held)
    await world.api.patch(NODES, { name: involvedObject.name }, { type: 'merge', body: word }, world.call)
  await eventually(async () => (await world.nodes()).length === names.length - gone.length, 'all five are deleted')
  t.ok(await metric('windlass_node_deletions_held{cluster="default"} 0'))
  t.ok(await metric('running_managed_controllers{name="service-lb-controller",manager="cloud-controller-manager"} 1'))
  t.ok(await metric('node_controller_initial_node_sync_delay_seconds_count 8'))
  t.ok(await metric('change="delete-node"} 5'))
})

t.test(
  'without the node controller machines are seen all the same, so that one that goes is believed to',
  async (t) => {
    const world = await startWorld({ kubernetes: 'simulator' })
    t.teardown(() => world.stop())
    world.hcloud.control.seed({ servers: [1, 2].map((id) => ({ id, name: `w${id}` })) })
    for (const id of [1, 2]) await world.addNode(`w${id}`, { providerID: `hcloud://${id}` })
    for (const { metadata } of await world.nodes())
      await world.api.patch(NODES, metadata, { type: 'merge', body: { spec: { taints: null } } }, world.call)
    world.start('all', { args: ['--node-monitor-period=200ms', '--controllers=cloud-node-lifecycle-controller'] })
    await eventually(async () => world.hcloud.control.counters().calls['GET /servers'], 'the servers were looked at')
    world.hcloud.control.mutate({ servers: [{ name: 'w1', delete: true }] })
    const body = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
    await world.api.patch(NODES, { name: 'w1' }, { type: 'strategic', subresource: 'status', body }, world.call)
    await eventually(async () => (await world.nodes()).length === 1, 'the node is deleted')
    t.same((await world.nodes())[0]?.status?.addresses ?? [], [], 'and nothing else is done to nodes')
  },
)

t.test('a list that still shows a machine does not put off the deletion of its Node', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [1, 2].map((id) => ({ id, name: `w${id}` })) })
  for (const id of [1, 2]) await world.addNode(`w${id}`)
  // The list is believed for longer than the test takes.
  world.start('all', { args: ['--node-monitor-period=200ms'], env: { HCLOUD_SERVER_CACHE_MAX_AGE: '10m' } })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'both nodes are initialised')
  world.hcloud.control.mutate({ servers: [{ name: 'w1', delete: true }] })
  const body = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
  await world.api.patch(NODES, { name: 'w1' }, { type: 'strategic', subresource: 'status', body }, world.call)
  await eventually(async () => (await world.nodes()).length === 1, 'the node is deleted')
})
