import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { isConflict } from '../../src/kubernetes/answer.ts'
import type { KubeNode, KubeService } from '../../src/kubernetes/objects.ts'
import { NODES, type Resource, SERVICES } from '../../src/kubernetes/resources.ts'
import { type Cloud, isInitialised, startWorld, type World } from '../integration/world.ts'
import { shortLived } from './short-lived.ts'

const ROUNDS = 5

/** Somebody who adds something of his own to an object every few milliseconds, as long as `meanwhile` lasts. Answers what he added. */
async function beside(write: (n: number) => Promise<unknown>, meanwhile: Promise<unknown>): Promise<number> {
  let over = false
  const done = meanwhile.finally(() => {
    over = true
  })
  let n = 0
  while (!over) {
    await write(n++)
    await delay(3)
  }
  await done
  return n
}

/** An annotation, a label and, by a read and a write of the whole, a taint or finalizer. */
async function add<T extends KubeNode | KubeService>(
  world: World,
  kind: Resource<T>,
  at: { namespace?: string; name: string },
  n: number,
) {
  const key = `example.com/other-${n}`
  const metadata = { annotations: { [key]: 'x' }, labels: { [key]: 'x' } }
  await world.api.patch(kind, at, { type: 'merge', body: { metadata } }, world.call)
  for (;;) {
    const present = await world.api.get(kind, at, world.call)
    if (!present) return
    const { resourceVersion, finalizers = [] } = present.metadata
    const taints = (present as KubeNode).spec?.taints ?? []
    const body =
      kind.plural === 'nodes'
        ? { metadata: { resourceVersion }, spec: { taints: [...taints, { key, value: 'x', effect: 'NoSchedule' }] } }
        : { metadata: { resourceVersion, finalizers: [...finalizers, key] } }
    try {
      await world.api.patch(kind, at, { type: 'merge', body }, world.call)
      return
    } catch (error) {
      if (!isConflict(error)) throw error
    }
  }
}

function missingOf(object: KubeNode | KubeService | undefined, count: number): string[] {
  const { annotations = {}, labels = {}, finalizers = [] } = object?.metadata ?? {}
  const lists = [...finalizers, ...((object as KubeNode)?.spec?.taints ?? []).map(({ key }) => key)]
  return Array.from({ length: count }, (_, n) => `example.com/other-${n}`).filter(
    (key) => annotations[key] !== 'x' || labels[key] !== 'x' || !lists.includes(key),
  )
}

async function check(
  t: Test,
  clouds: readonly Cloud[],
  env: Record<string, string>,
  seed: (world: World, name: string, id: number) => unknown,
) {
  const world = await startWorld({ kubernetes: 'simulator', clouds, hcloud: { action_ms: 5 } })
  t.teardown(() => world.stop())
  const workers = await shortLived(world, env)
  t.teardown(() => workers.close())
  let added = 0
  for (let i = 1; i <= ROUNDS; i++) {
    const [node, service] = [{ name: `w${i}` }, { namespace: 'default', name: `s${i}` }]
    await seed(world, node.name, 383530 + i)
    await world.addNode(node.name)
    await world.addService(service.name, { ports: [{ name: 'http', port: 80 }] })
    const [toNode, toService] = await Promise.all([
      beside(
        (n) => add(world, NODES, node, n),
        workers.settle('node', `Node/${node.name}`).then(() => delay(40)),
      ),
      beside(
        (n) => add(world, SERVICES, service, n),
        workers.settle('service', `Service/default/${service.name}`).then(() => delay(40)),
      ),
    ])
    const [nodeNow, serviceNow] = [
      await world.api.get(NODES, node, world.call),
      await world.api.get(SERVICES, service, world.call),
    ]
    t.same([missingOf(nodeNow, toNode), missingOf(serviceNow, toService)], [[], []])
    t.ok(nodeNow && isInitialised(nodeNow))
    t.ok(serviceNow?.status?.loadBalancer?.ingress?.length)
    t.ok(serviceNow?.metadata.finalizers?.includes('service.kubernetes.io/load-balancer-cleanup'))
    added += toNode + toService
  }
  t.comment(`${added} writes of the other`)
  t.ok(added > ROUNDS * 6)
}

t.test('nothing that somebody else writes at the same time is lost', async (t) => {
  await t.test('at Hetzner', (t) =>
    check(t, ['hcloud'], {}, (world, name, id) => world.hcloud.control.seed({ servers: [{ id, name }] })),
  )
  await t.test('at Cherry, with annotations on nodes', (t) =>
    check(t, ['cherry'], { CHERRY_LOAD_BALANCER: 'kube-vip://' }, (world, hostname, id) =>
      world.cherry.control.seed({ servers: [{ id, hostname }] }),
    ),
  )
})
