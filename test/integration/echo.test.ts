import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, startWorld } from './world.ts'

t.test('a change that comes while a run is at work is not taken for what the run itself writes', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  await world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  const server = world.start('server')
  const { host, port } = await server.logged('the server listens')
  const forwarder = world.start('forwarder', { env: { WINDLASS_SERVER_URL: `http://${host}:${port}` } })
  const worker = world.start('worker')
  await world.addNode('w1')
  await eventually(async () => !(await world.anyNodeWithout('node.kubernetes.io/instance-type')), 'the node is ready')
  await world.hcloud.control.fault([{ match: 'POST /load_balancers', kind: 'delay', ms: 4000, times: 1 }])
  await world.addService('web')
  await eventually(
    async () => (await world.hcloud.control.counters()).calls['POST /load_balancers'],
    'a run is at work',
  )
  const told = () =>
    forwarder
      .lines()
      .filter(({ msg, subject }) => msg === 'The server has a change' && subject === 'Service/default/web')
  await eventually(async () => told().length === 2, 'the server has seen the Service, and its finalizer')
  // The forwarder waits for an answer to what it told of the node: of the Service it can tell only the last state, then.
  server.signal('SIGSTOP')
  const labels = { type: 'merge', body: { metadata: { labels: { team: 'blue' } } } } as const
  await world.api.patch(NODES, { name: 'w1' }, labels, world.call)
  await delay(500)
  const change = { type: 'json', body: [{ op: 'replace', path: '/spec/ports/0/port', value: 8080 }] } as const
  await world.api.patch(SERVICES, { namespace: 'default', name: 'web' }, change, world.call)
  await eventually(
    async () => worker.lines().some(({ msg, kind }) => msg === 'run ended' && kind === 'service'),
    'the run has ended',
  )
  t.ok((await world.services())[0]?.status?.loadBalancer?.ingress?.length, 'and has written the status')
  server.signal('SIGCONT')
  await eventually(
    async () => {
      const [balancer] = (await world.account()).load_balancers
      return balancer?.services.some(({ listen_port }) => listen_port === 8080)
    },
    'the listener follows the change',
    15_000,
  )
})
