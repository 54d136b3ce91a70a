import t, { type Test } from 'tap'
import { bench, lbOf, nodes, servers, service, targetsOf } from './bench.ts'

/** A load balancer of a type that takes two targets, in an account with these servers. */
async function open(t: Test, ...ids: number[]) {
  const opened = await bench({
    account: { servers: servers(...ids), load_balancer_types: [{ name: 'tiny', max_targets: 2 }] },
    loadBalancers: { type: 'tiny' },
    settings: { serverCacheMaxAgeMs: 0 },
  })
  t.teardown(() => opened.close())
  return opened
}

const reasons = (notes: { reason: string; node?: string }[]) => notes.map(({ reason, node }) => `${node} ${reason}`)

t.test('a server that is gone takes no room from others', async (t) => {
  const of = await open(t, 2, 3)
  const made = await of.run(service(), nodes(1, 2, 3))
  t.strictSame(targetsOf(lbOf(of)), ['server 2', 'server 3'], 'when it is made')
  t.strictSame([reasons(made.notes), made.faults], [['w1 MaxTargetsReached'], []])

  of.simulator.control.mutate({ servers: [{ name: 'w2', delete: true }, { create: { id: 4, name: 'w4' } }] })
  const later = await of.run(service(), nodes(1, 2, 3, 4))
  t.strictSame(targetsOf(lbOf(of)), ['server 3', 'server 4'], 'and later')
  t.strictSame(reasons(later.notes), ['w1 MaxTargetsReached', 'w2 MaxTargetsReached'])

  of.calls()
  const roomy = await of.run(service(), nodes(1, 3))
  t.match(roomy.faults, [{ code: 'not_found' }], 'where there is room, the API decides')
  t.strictSame(targetsOf(lbOf(of)), ['server 3'])
})

t.test('it takes one call to make one of all that are there', async (t) => {
  const of = await open(t, 2)
  await of.run(service(), nodes(1, 2))
  const { 'POST /load_balancers': made, 'POST /load_balancers/{id}/actions/add_target': added } = of.calls()
  t.strictSame([made, added], [2, 1], 'once refused with the one that is gone, which is then tried by itself')
  t.strictSame(targetsOf(lbOf(of)), ['server 2'])
})

t.test('what the API refuses for reasons of its own leaves its room in the same run', async (t) => {
  const of = await open(t, 1, 2, 3, 4)
  await of.ensure(service(), nodes(1))
  const match = 'POST /load_balancers/{id}/actions/add_target'
  of.simulator.control.fault({ match, kind: 'error', code: 'server_is_elsewhere', status: 422, times: 2 })
  const { faults, notes } = await of.run(service(), nodes(1, 2, 3, 4))
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 4'])
  t.equal(faults.length, 2)
  t.strictSame(reasons(notes).slice(-2), ['w2 TargetRefused', 'w3 TargetRefused'])
})
