import t from 'tap'
import type { Patch } from '../../src/kubernetes/api.ts'
import {
  addFinalizer,
  annotations,
  loadBalancerStatus,
  nodeAddresses,
  nodeCondition,
  nodeInitialised,
  nodeLabels,
  nodeTaints,
  removeFinalizer,
} from '../../src/kubernetes/patches.ts'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { at } from '../simulators/kubernetes/kinds.ts'
import { failure, setUp } from './setting.ts'

const OURS = 'service.kubernetes.io/load-balancer-cleanup'
const NO_SCHEDULE = 'NoSchedule'

t.test('of Services', async (t) => {
  const { api, call, simulator } = await setUp(t)
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] }
  const name = { namespace: 'default', name: 'web' }
  const patch = (one: Patch) => api.patch(SERVICES, name, one, call)
  const finalizers = () => simulator.get('services', 'web')?.metadata.finalizers as string[] | undefined
  const uid = String(
    simulator.create('services', { metadata: { name: 'web', finalizers: ['others/one'] }, spec }).metadata.uid,
  )

  t.test('a finalizer is added to those of others', async (t) => {
    await patch(addFinalizer({ uid }, OURS))
    t.same(new Set(finalizers()), new Set(['others/one', OURS]))
  })
  t.test('a finalizer is removed alone', async (t) => {
    await patch(removeFinalizer({ uid, finalizers: finalizers() ?? [] }, OURS))
    t.same(finalizers(), ['others/one'])
  })
  t.test('the removal of the last finalizer does not wipe one that was added meanwhile', async (t) => {
    simulator.change('services', 'web', ({ metadata }) => {
      metadata.finalizers = [OURS]
    })
    const seen = { uid, finalizers: [OURS] }
    simulator.change('services', 'web', ({ metadata }) => {
      metadata.finalizers = ['others/two', OURS]
    })
    t.match(await failure(patch(removeFinalizer(seen, OURS))), { kind: 'transient', code: 'Conflict' })
    t.same(finalizers(), ['others/two', OURS])
  })
  t.test('nothing happens to a finalizer that is not there', async (t) => {
    const before = simulator.get('services', 'web')
    await patch(removeFinalizer({ uid, finalizers: ['others/two', OURS] }, 'x/y'))
    t.same(simulator.get('services', 'web'), before)
  })
  t.test('the status is written whole, with ipMode said', async (t) => {
    await patch(
      loadBalancerStatus([{ ip: '1.1.1.1' }, { ip: '1.1.1.2', ipMode: 'Proxy' }, { hostname: 'a.example' }], uid),
    )
    await patch(loadBalancerStatus([{ ip: '1.1.1.3' }, { hostname: 'a.example' }], uid))
    t.same(simulator.get('services', 'web')?.status, {
      loadBalancer: { ingress: [{ ip: '1.1.1.3', ipMode: 'VIP' }, { hostname: 'a.example' }] },
    })
    await patch(loadBalancerStatus([], uid))
    t.same(simulator.get('services', 'web')?.status, { loadBalancer: {} })
  })
  t.test('a successor of the same name is not touched', async (t) => {
    simulator.change('services', 'web', ({ metadata }) => {
      delete metadata.finalizers
    })
    simulator.delete('services', 'web')
    const successor = simulator.create('services', { metadata: { name: 'web', finalizers: [OURS] }, spec })
    for (const one of [
      addFinalizer({ uid }, 'x/y'),
      removeFinalizer({ uid, finalizers: [OURS] }, OURS),
      loadBalancerStatus([{ ip: '1.1.1.1' }], uid),
      annotations({ uid, annotations: { a: 'b' } }),
    ])
      t.match(await failure(patch(one)), { kind: 'transient', code: 'Conflict' })
    t.same(simulator.get('services', 'web'), successor)
  })
  t.test('single annotations come and go', async (t) => {
    const present = { uid: String(simulator.get('services', 'web')?.metadata.uid) }
    await patch(annotations({ ...present, annotations: { a: '1', b: '2' } }))
    await patch(annotations({ ...present, annotations: { a: null } }))
    t.same(simulator.get('services', 'web')?.metadata.annotations, { b: '2' })
  })
})

t.test('of Nodes', async (t) => {
  const { api, call, simulator } = await setUp(t)
  const uninitialised = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: NO_SCHEDULE }
  const other = { key: 'other', effect: NO_SCHEDULE }
  simulator.create('nodes', {
    metadata: { name: 'n', labels: { mine: 'x' } },
    spec: { taints: [uninitialised, other] },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  })
  const patch = (one: Patch) => api.patch(NODES, { name: 'n' }, one, call)
  const stored = () => simulator.get('nodes', 'n')
  const present = () => {
    const { uid, resourceVersion } = simulator.get('nodes', 'n')?.metadata ?? {}
    return { uid: String(uid), resourceVersion: String(resourceVersion) }
  }
  const touch = () =>
    simulator.change('nodes', 'n', ({ metadata }) => {
      metadata.annotations = { at: String(simulator.store.version) }
    })

  t.test('initialisation is one write, and none on an outdated decision', async (t) => {
    const change = { labels: { zone: 'z' }, providerId: 'x://1', taints: [other] }
    const late = present()
    touch()
    t.match(await failure(patch(nodeInitialised({ ...late, ...change }))), { code: 'Conflict' })
    const before = simulator.store.version
    await patch(nodeInitialised({ ...present(), ...change }))
    t.equal(simulator.store.version, before + 1)
    t.match(simulator.get('nodes', 'n'), {
      metadata: { labels: { mine: 'x', zone: 'z' } },
      spec: { providerID: 'x://1', taints: [other] },
    })
  })
  t.test('taints are written whole, and none on an outdated decision', async (t) => {
    const late = present()
    touch()
    t.match(await failure(patch(nodeTaints({ ...late, taints: [] }))), { code: 'Conflict' })
    await patch(nodeTaints({ ...present(), taints: [] }))
    t.equal(at(stored(), 'spec', 'taints'), undefined)
    await patch(nodeTaints({ ...present(), taints: [other] }))
    t.same(at(stored(), 'spec', 'taints'), [other])
  })
  t.test('addresses keep their order, two of one type among them, and nothing stale', async (t) => {
    const { uid } = present()
    const addresses = [
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'ExternalIP', address: '1.1.1.1' },
      { type: 'InternalIP', address: 'fd00::1' },
    ]
    for (const list of [addresses, [...addresses].reverse(), addresses.slice(1)]) {
      await patch(nodeAddresses({ uid, addresses: list }))
      t.same(at(stored(), 'status', 'addresses'), list)
    }
  })
  t.test('a condition leaves the others alone', async (t) => {
    await patch(nodeCondition(present(), { type: 'NetworkUnavailable', status: 'False', reason: 'RouteCreated' }))
    const conditions = at(stored(), 'status', 'conditions') as { type: string }[]
    t.same(new Set(conditions.map(({ type }) => type)), new Set(['Ready', 'NetworkUnavailable']))
  })
  t.test('single labels come and go, under a version if one is given', async (t) => {
    const late = present()
    await patch(nodeLabels({ uid: late.uid, labels: { zone: null, region: 'r' } }))
    t.same(simulator.get('nodes', 'n')?.metadata.labels, { mine: 'x', region: 'r' })
    t.match(await failure(patch(nodeLabels({ ...late, labels: { region: 's' } }))), { code: 'Conflict' })
  })
})
