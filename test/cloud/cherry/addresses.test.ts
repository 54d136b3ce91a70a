import t from 'tap'
import { after, bench, KUBE_VIP, service, workers } from './bench.ts'

const lists = (calls: Record<string, number>) => calls['GET /projects/{id}/ips'] ?? 0

t.test('a Service that shows its address needs no look at the addresses when only nodes change', async (t) => {
  const b = await bench(t)
  const applied = await b.ensure(service(), workers(1))
  await applied.superseded?.(b.call)
  const done = after(service(), applied)
  b.calls()
  t.same(await b.summaries(done, workers(1, 2)), ['switch BGP on for the server of node worker-2'])
  t.equal(lists(b.calls()), 0)
})

t.test('before anything is made or given back, the addresses are looked at', async (t) => {
  const b = await bench(t)
  const applied = await b.ensure(service())
  await applied.superseded?.(b.call)
  const done = after(service(), applied)
  const looks = async (given: Parameters<typeof b.summaries>[0]) => {
    b.calls()
    const summaries = await b.summaries(given)
    return { lists: lists(b.calls()), summaries }
  }
  t.match(await looks(service({}, { name: 'new', uid: 'uid-new' })), { lists: 1, summaries: [/^reserve/] }, 'a new one')
  t.match(await looks({ ...done, ingress: [] }), { lists: 1, summaries: [/^take/] }, 'one that shows no address')
  t.match(await looks({ ...done, uid: 'uid-2' }), { lists: 1 }, 'one that was made again')
  const wish = { ...done, annotations: { [KUBE_VIP]: '192.0.2.9' } }
  t.equal((await looks(wish)).lists, 1, 'one that names another address')
  b.calls()
  await b.loadBalancers.planDeletion(done, b.call)
  t.equal(lists(b.calls()), 1, 'one that goes')
})

t.test('what was made after the last look, or changed since, is not told from that look', async (t) => {
  const b = await bench(t)
  const applied = await b.ensure(service())
  b.calls()
  await b.summaries(after(service(), applied))
  t.equal(lists(b.calls()), 1, 'the look before the address was made does not count')
  const done = after(service(), applied)
  await b.summaries(done)
  t.equal(lists(b.calls()), 0)
  await b.remove(done)
  b.calls()
  t.match(await b.summaries(done), [/^reserve/], 'an address that was given back is none')
  t.equal(lists(b.calls()), 1)
})

t.test('when the answer to a release is lost, the address counts as unknown', async (t) => {
  const b = await bench(t)
  const applied = await b.ensure(service())
  const done = after(service(), applied)
  await b.summaries(done)
  b.simulator.control.fault({ match: 'DELETE /ips/{id}', kind: 'drop-after-commit', times: 1 })
  await t.rejects(b.remove(done))
  b.calls()
  t.match(await b.summaries(done), [/^reserve/])
  t.equal(lists(b.calls()), 1)
})

t.test('servers on which BGP was just switched on are not read again to know that', async (t) => {
  const b = await bench(t)
  const first = await b.ensure(service())
  b.calls()
  await b.ensure(after(service(), first))
  t.equal(b.calls()['GET /projects/{id}/servers'] ?? 0, 0)
})
