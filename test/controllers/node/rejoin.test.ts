import t from 'tap'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from '../../integration/world.ts'

t.test(
  'a node that joins on a new machine of the old name gets the new id, however young the list of servers is',
  async (t) => {
    const world = await startWorld({ kubernetes: 'simulator' })
    t.teardown(() => world.stop())
    const names = ['w0', 'w1', 'w2']
    world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
    for (const name of names) await world.addNode(name)
    world.start('all')
    const idOf = async (name: string) =>
      (await world.nodes()).find(({ metadata }) => metadata.name === name)?.spec?.providerID
    const initialised = async (what: string) =>
      await eventually(async () => {
        const nodes = await world.nodes()
        return nodes.length === names.length && nodes.every(isInitialised)
      }, what)
    await initialised('all nodes are initialised')
    const listed = world.hcloud.control.counters().calls['GET /servers']
    await world.hcloud.control.mutate({ servers: [{ name: 'w1', delete: true }, { create: { id: 17, name: 'w1' } }] })
    for (const name of ['w1', 'w2']) {
      await world.api.delete(NODES, { name }, world.call)
      await world.addNode(name)
    }
    await initialised('both are initialised again')
    t.equal(await idOf('w1'), 'hcloud://17')
    t.equal(await idOf('w2'), 'hcloud://3', 'and one that only joins anew keeps its own')
    const now = world.hcloud.control.counters().calls['GET /servers']
    t.ok(Number(now) - Number(listed) <= 4, 'for a call or two for each, of those who were seen before')
  },
)
