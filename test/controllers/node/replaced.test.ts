import t from 'tap'
import { eventually, isInitialised, startWorld } from '../../integration/world.ts'

t.test(
  'a node whose server was made anew under its name is told, at the next look at all nodes, and not deleted',
  async (t) => {
    const world = await startWorld({ kubernetes: 'simulator' })
    t.teardown(() => world.stop())
    world.hcloud.control.seed({ servers: ['w1', 'w2'].map((name, i) => ({ id: i + 1, name })) })
    for (const name of ['w1', 'w2']) await world.addNode(name)
    const args = ['--node-status-update-frequency=500ms']
    world.start('all', { args, env: { HCLOUD_SERVER_CACHE_MAX_AGE: '200ms' } })
    await eventually(async () => (await world.nodes()).every(isInitialised), 'both nodes are initialised')

    world.hcloud.control.mutate({ servers: [{ name: 'w1', delete: true }, { create: { id: 17, name: 'w1' } }] })
    const told = await eventually(
      async () => (await world.events()).find(({ reason }) => reason === 'MachineReplaced'),
      'an Event tells of it, though the node is ready all the time',
    )
    t.match(told, {
      type: 'Warning',
      involvedObject: { kind: 'Node', name: 'w1' },
      message: /^hcloud:\/\/1 is gone.* is hcloud:\/\/17 now.*delete Node w1/,
    })
    t.same(
      (await world.nodes()).map(({ metadata, spec }) => [metadata.name, spec?.providerID]),
      [
        ['w1', 'hcloud://1'],
        ['w2', 'hcloud://2'],
      ],
    )
  },
)
