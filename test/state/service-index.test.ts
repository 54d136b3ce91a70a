import t from 'tap'
import { serviceOf, storesFor } from './stores.ts'

const { stores } = await storesFor(t)
const { services, outbox } = stores
let clusters = 0
const fresh = () => `c${++clusters}`
const drain = async (cluster: string) => {
  const entries = await outbox.read(cluster)
  await outbox.clear(cluster, entries)
  return entries.map(({ key, cause, uid }) => [key, cause, uid])
}

t.test('a Service that goes while nobody watched is noticed with its uid, others are not', async (t) => {
  const c = fresh()
  await services.put(c, [
    { service: serviceOf('ours', 1), concernsUs: true },
    { service: serviceOf('other', 2, { type: 'ClusterIP' }), concernsUs: false },
    { service: serviceOf('stays', 3), concernsUs: true },
  ])
  await drain(c)
  await services.beginSnapshot(c, 's')
  await services.put(c, [{ service: serviceOf('stays', 3), concernsUs: true, snapshot: 's' }])
  const { vanished } = await services.endSnapshot(c, 's', { items: 1, listVersion: '9', epoch: 'e' })
  t.same(vanished.map(({ name }) => name).sort(), ['default/other', 'default/ours'])
  t.same(await drain(c), [['Service/default/ours', 'vanished', 'uid-ours']])
})

t.test('a Service that stops to concern us is noticed', async (t) => {
  const c = fresh()
  await services.put(c, [{ service: serviceOf('a', 1), concernsUs: true }])
  await drain(c)
  await services.put(c, [{ service: serviceOf('a', 2, { type: 'ClusterIP' }), concernsUs: false }])
  t.same(await drain(c), [['Service/default/a', 'changed', 'uid-a']])
})

t.test('a deletion asks for work only if the Service concerned us', async (t) => {
  const c = fresh()
  await services.put(c, [
    { service: serviceOf('a', 1), concernsUs: true },
    { service: serviceOf('b', 2), concernsUs: false },
  ])
  await drain(c)
  t.equal(await services.remove(c, 'default/a', 'uid-a', '5'), 'removed')
  t.equal(await services.remove(c, 'default/b', 'uid-b', '6'), 'removed')
  t.equal(await services.remove(c, 'default/c', 'uid-c', '7'), 'unknown')
  t.same(await drain(c), [['Service/default/a', 'deleted', 'uid-a']])
})

t.test('a Service made anew under the same name is noticed, even when the new one does not concern us', async (t) => {
  const c = fresh()
  await services.put(c, [{ service: serviceOf('a', 1), concernsUs: true }])
  await drain(c)
  await services.put(c, [{ service: serviceOf('a', 2, { uid: 'second' }), concernsUs: true }])
  t.same(await drain(c), [['Service/default/a', 'changed', 'second']])
})

t.test('Services and nodes of one cluster do not mix', async (t) => {
  const c = fresh()
  await services.beginSnapshot(c, 's')
  t.same(await stores.nodes.endSnapshot(c, 's', { items: 0, listVersion: '1', epoch: 'e' }), {
    complete: false,
    vanished: [],
    isBehind: false,
  })
})

t.test('what a worker remembers of a Service is found again', async (t) => {
  const c = fresh()
  const record = { uid: 'u', annotations: { a: 'b' }, cloud: 'hcloud', targetsKey: 'k' }
  t.equal(await stores.serviceRecords.get(c, 'default/a'), undefined)
  await stores.serviceRecords.put(c, 'default/a', record)
  t.same(await stores.serviceRecords.get(c, 'default/a'), record)
  t.same([...(await stores.serviceRecords.all(c))], [['default/a', record]])
  await stores.serviceRecords.remove(c, 'default/a')
  t.equal((await stores.serviceRecords.all(c)).size, 0)
})

t.test('a webhook id is known once it is remembered, for longer than a signature is valid', async (t) => {
  const c = fresh()
  t.equal(await stores.webhookIds.isKnown(c, 'x'), false)
  await stores.webhookIds.remember(c, 'x')
  t.equal(await stores.webhookIds.isKnown(c, 'x'), true)
  t.equal(await stores.webhookIds.isKnown(fresh(), 'x'), false, 'by cluster')
})
