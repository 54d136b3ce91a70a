import t from 'tap'
import { bench, lbOf, loadBalancersOf, nodes, servers, service, targetsOf, UID } from './bench.ts'

const LABEL = 'hcloud-ccm/service-uid'

t.test('a rename keeps the load balancer and its addresses, and one that is adopted is labelled at once', async (t) => {
  const of = await bench({
    account: { servers: servers(1), load_balancers: [{ name: 'by-hand', labels: { team: 'a' } }] },
  })
  t.teardown(() => of.close())
  const { ingress } = await of.ensure(service({ name: 'one' }), nodes(1))
  const { id } = lbOf(of, 'one')
  for (const name of ['two', 'three', 'one']) {
    t.strictSame((await of.ensure(service({ name }), nodes(1))).ingress, ingress)
    t.equal(lbOf(of, name).id, id)
  }
  const adopted = await of.run(service({ name: 'by-hand' }, { uid: 'another' }), nodes(1))
  t.strictSame(adopted.faults, [])
  t.strictSame(lbOf(of, 'by-hand').labels, { team: 'a', [LABEL]: 'another' })
  t.equal(loadBalancersOf(of).length, 2)
})

t.test(
  'where label and name tell of two, the labelled one serves on, the other stays as it is, and that is said',
  async (t) => {
    for (const labels of [{}, { [LABEL]: 'somebody-else' }, { team: 'a' }]) {
      const of = await bench({
        account: {
          servers: servers(1, 2),
          load_balancers: [{ name: 'taken', labels, targets: [{ type: 'server', server: 'w2' }] }],
        },
      })
      t.teardown(() => of.close())
      const { ingress } = await of.ensure(service({ name: 'mine' }), nodes(1))
      const before = JSON.stringify(lbOf(of, 'taken'))
      const applied = await of.run(service({ name: 'taken' }, { ingress }), nodes(1, 2))
      t.match(applied.faults, [{ kind: 'permanent', message: /updating name and labels.*uniqueness_error/ }])
      t.strictSame(applied.ingress, ingress)
      t.strictSame(targetsOf(lbOf(of, 'mine')), ['server 1', 'server 2'], 'all else is done')
      t.equal(JSON.stringify(lbOf(of, 'taken')), before)
      t.strictSame(
        loadBalancersOf(of)
          .filter((one) => one.labels[LABEL] === UID)
          .map(({ name }) => name),
        ['mine'],
      )
    }
  },
)
