import t from 'tap'
import type { ServiceProjection } from '../../../src/events/projection.ts'
import { after, type Bench, bench, KUBE_VIP, node, service, tags, twoServers } from './bench.ts'

const METALLB = 'metallb.io/loadBalancerIPs'
const IMPLEMENTATIONS = ['metallb:///', 'kube-vip://', 'empty://', 'empty://?ip-annotation=example.com/ip']
const PAIRS = IMPLEMENTATIONS.flatMap((from) =>
  IMPLEMENTATIONS.filter((to) => to !== from).map((to) => [from, to] as const),
)

/** A worker after CHERRY_LOAD_BALANCER was changed. */
function under(b: Bench, loadBalancer: string) {
  const { loadBalancers } = b.worker({ settings: { ...b.settings, loadBalancer } })
  if (!loadBalancers) throw new Error(`no load balancers under ${loadBalancer}`)
  const nodes = [node('worker-1', { providerId: 'cherryservers://383531' })]
  return {
    async ensure(given: ServiceProjection): Promise<ServiceProjection> {
      const applied = await loadBalancers.apply(await loadBalancers.plan(given, nodes, b.call), b.call)
      const superseded = await applied.superseded?.(b.call)
      if (superseded) await loadBalancers.applyDeletion(superseded, b.call)
      return after(given, applied)
    },
    /** Turned away, as one that becomes ClusterIP. */
    async remove(given: ServiceProjection): Promise<ServiceProjection> {
      const plan = await loadBalancers.planDeletion(given, b.call)
      await loadBalancers.applyDeletion(plan, b.call)
      return after(given, { ingress: [], notes: [], faults: [], announcement: plan.announcement })
    },
  }
}

const addresses = (b: Bench) => b.floating().map(({ address }) => address)
const shown = ({ ingress }: ServiceProjection) => ingress.map(({ ip }) => ip)

/** Another Service gets what became free. */
async function takenByAnother(b: Bench, address: string | undefined) {
  await b.simulator.control.seed({ ips: [{ address, region: 'LT-Siauliai', tags: tags('default/other') }] })
}

for (const [from, to] of PAIRS) {
  t.test(`${from}, then ${to} and back: a Service keeps its address, and no former one counts`, async (t) => {
    const b = await bench(t)
    const first = await under(b, from).ensure(service())
    const moved = await under(b, to).ensure(first)
    t.same(shown(moved), shown(first))
    t.same(shown(await under(b, from).ensure(moved)), shown(first))

    const turnedAway = await under(b, to).remove(moved)
    t.same(turnedAway.annotations, {}, 'with the address goes all that was written')
    await takenByAnother(b, shown(first)[0])
    const again = await under(b, to).ensure(turnedAway)
    t.not(shown(again)[0], shown(first)[0])
    const back = await under(b, from).ensure(again)
    t.same(shown(back), shown(again))
    t.same(addresses(b), [...shown(first), ...shown(again)], "its own, and the other's")
    t.same((await under(b, from).remove(back)).annotations, {})
    t.same(addresses(b), shown(first))
  })

  t.test(
    `${from}, then ${to}: a Service made again from a copy, or whose address is lost, has a new one`,
    async (t) => {
      for (const uid of [service().uid, 'uid-2']) {
        const b = await bench(t)
        const first = await under(b, from).ensure(service())
        const moved = await under(b, to).ensure(first)
        await b.simulator.control.mutate({ ips: [{ address: shown(first)[0], $delete: true }] })
        await takenByAnother(b, shown(first)[0])
        const next = await under(b, to).ensure({ ...moved, uid, ingress: [] })
        t.not(shown(next)[0], shown(first)[0])
        const back = await under(b, from).ensure(next)
        t.same(shown(back), shown(next))
        t.same(addresses(b).sort(), [...shown(first), ...shown(next)].sort())
      }
    },
  )

  t.test(`${from}, then ${to}: workers of both at once undo nothing of each other`, async (t) => {
    const b = await bench(t)
    const moved = await under(b, to).ensure(await under(b, from).ensure(service()))
    for (const one of [from, to, from]) t.same((await under(b, one).ensure(moved)).annotations, moved.annotations)
  })
}

t.test('what the replaced controller wrote for the implementation before goes too', async (t) => {
  const own = '46.166.170.77'
  const ips = [{ address: own, region: 'LT-Siauliai', tags: tags('default/web') }]
  const b = await bench(t, { account: { ...twoServers, ips } })
  const left = service({ [METALLB]: own, [KUBE_VIP]: own })
  t.same((await under(b, 'kube-vip://').remove(left)).annotations, {})
  t.same(addresses(b), [])
})

t.test('what a user wrote for another implementation stays, and counts under that', async (t) => {
  const b = await bench(t)
  const users = { [METALLB]: '145.60.80.60' }
  const served = await under(b, 'kube-vip://').ensure(service(users))
  t.same(shown(served), addresses(b))
  t.same((await under(b, 'kube-vip://').remove(served)).annotations, users)
  const wished = await under(b, 'metallb:///').ensure(service(users))
  t.same(shown(wished), ['145.60.80.60'])
})
