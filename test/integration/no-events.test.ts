import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

t.test('without any event everything is found by the look at all of it, and what went is cleaned up', async (t) => {
  const world = await startWorld({ hcloud: { action_ms: 0 } })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [1, 2].map((id) => ({ id, name: `w${id}` })) })
  await world.addNode('w1')
  await world.addService('before')
  // Neither a forwarder nor a server.
  world.start('worker', { env: { WINDLASS_RESYNC_PERIOD: '1s' } })
  const at = (name: string) => ({ namespace: 'default', name })
  const targets = async () =>
    (await world.account()).load_balancers.map((one) => one.targets.map(({ server }) => server?.id).sort())
  const becomes = (wanted: number[][], what: string) =>
    eventually(async () => JSON.stringify(await targets()) === JSON.stringify(wanted), what)
  await becomes([[1]], 'what was there is served')
  await world.addService('after')
  await world.addNode('w2')
  await eventually(async () => (await world.nodes()).every(isInitialised), 'a node that joins is initialised')
  await becomes(
    [
      [1, 2],
      [1, 2],
    ],
    'and is a target',
  )
  const shown = async () => (await world.services()).every(({ status }) => status?.loadBalancer?.ingress?.length)
  await eventually(shown, 'every Service has its address')

  const port = { op: 'replace', path: '/spec/ports/0/port', value: 8080 }
  await world.api.patch(SERVICES, at('after'), { type: 'json', body: [port] }, world.call)
  await eventually(
    async () => (await world.account()).load_balancers.some((one) => one.services.some((s) => s.listen_port === 8080)),
    'a change is seen',
  )
  await world.api.patch(SERVICES, at('before'), { type: 'merge', body: { spec: { type: 'ClusterIP' } } }, world.call)
  await becomes([[1, 2]], 'a Service that stops to want a load balancer loses it')
  await world.api.delete(NODES, { name: 'w1' }, world.call)
  await becomes([[2]], 'a node that goes is no target')
  await world.api.delete(SERVICES, at('after'), world.call)
  await becomes([], 'a Service that goes takes its load balancer along')
  await eventually(async () => (await world.services()).length === 1, 'and is let go')
  t.same(await targets(), [])
})
