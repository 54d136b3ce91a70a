import t from 'tap'
import { eligibleNodes } from '../../../src/controllers/service/eligible.ts'
import type { NodeProjection } from '../../../src/events/projection.ts'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { node } from '../../cloud/hcloud/bench.ts'
import { eventually, isInitialised, startWorld } from '../../integration/world.ts'

const EXCLUDED = 'node.kubernetes.io/exclude-from-external-load-balancers'
const TO_BE_DELETED = { key: 'ToBeDeletedByClusterAutoscaler', value: '1', effect: 'NoSchedule' }

t.test('which nodes may be targets', async (t) => {
  const cases: [string, Partial<NodeProjection>, boolean][] = [
    ['a node', {}, true],
    ['one that is not ready', { ready: 'False' }, true],
    ['one that is cordoned', { taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] }, true],
    ['one that is being deleted', { deleting: true }, false],
    ['one that the autoscaler will delete', { taints: [TO_BE_DELETED] }, false],
    ...['', 'true', 'no'].map((value): [string, Partial<NodeProjection>, boolean] => [
      `one with the label "${value}"`,
      { labels: { [EXCLUDED]: value } },
      false,
    ]),
    ...['false', 'F', '0'].map((value): [string, Partial<NodeProjection>, boolean] => [
      `one with the label "${value}"`,
      { labels: { [EXCLUDED]: value } },
      true,
    ]),
  ]
  for (const [what, more, is] of cases) t.equal(eligibleNodes([node('w1', more)]).length, is ? 1 : 0, what)
})

t.test('a node that will go is no target any more while its machine still runs', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const names = ['w1', 'w2', 'w3', 'w4']
  world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
  for (const name of names) await world.addNode(name)
  world.start('all')
  await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
  await world.addService('web')
  const targetsAre = (ids: number[], why: string) =>
    eventually(async () => {
      const [balancer] = (await world.account()).load_balancers
      return (
        balancer?.targets
          .flatMap(({ server }) => server?.id ?? [])
          .sort()
          .join() === ids.join()
      )
    }, why)
  await targetsAre([1, 2, 3, 4], 'all are targets')

  const merge = (name: string, body: object) => world.api.patch(NODES, { name }, { type: 'merge', body }, world.call)
  await merge('w2', { spec: { taints: [TO_BE_DELETED] } })
  await targetsAre([1, 3, 4], 'the autoscaler said that it goes')
  await merge('w3', { metadata: { labels: { [EXCLUDED]: '' } } })
  await targetsAre([1, 4], 'its user said so')
  await merge('w4', { metadata: { finalizers: ['example.com/drain'] } })
  await world.api.delete(NODES, { name: 'w4' }, world.call)
  await targetsAre([1], 'its Node is being deleted')
  t.ok(
    (await world.account()).servers.every(({ status }) => status === 'running'),
    'up to here all machines run',
  )
  world.hcloud.control.mutate({ servers: [2, 3, 4].map((id) => ({ id, delete: true })) })
  t.strictSame(world.hcloud.control.trafficGaps(), [])
})
