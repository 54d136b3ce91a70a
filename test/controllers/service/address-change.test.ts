import t from 'tap'
import { addressChange } from '../../../src/controllers/service/address-change.ts'
import { SERVICES } from '../../../src/kubernetes/resources.ts'
import { eventually, startWorld } from '../../integration/world.ts'

const ips = (...list: string[]) => list.map((ip) => ({ ip, ipMode: 'VIP' }))
const [FOUR, SIX, OTHER] = ['192.0.2.1', '2001:db8::1', '192.0.2.9'] as const

t.test('what is told of a change of addresses', async (t) => {
  const cases: [string, ...Parameters<typeof addressChange>, object | undefined][] = [
    ['a first address', [], ips(FOUR, SIX), undefined],
    ['one more', ips(FOUR), ips(FOUR, SIX), undefined],
    ['another order', ips(FOUR, SIX), ips(SIX, FOUR), undefined],
    ['another mode', ips(FOUR), [{ ip: FOUR, ipMode: 'Proxy' }], undefined],
    ['one less', ips(FOUR, SIX), ips(FOUR), { type: 'Normal', message: /^2001:db8::1 is no longer/ }],
    ['none any more', ips(FOUR), [], { type: 'Normal' }],
    ['another one', ips(FOUR), ips(OTHER), { type: 'Warning', message: /from 192\.0\.2\.1 to 192\.0\.2\.9/ }],
    ['a name in its place', ips(FOUR), [{ hostname: 'lb.example.com' }], { type: 'Warning', message: /lb\.example/ }],
  ]
  for (const [what, before, after, expected] of cases) {
    const told = addressChange(before, after)
    if (expected === undefined) t.equal(told, undefined, what)
    else t.match(told, expected, what)
  }
})

t.test('a load balancer that somebody deletes is made anew, and its new address is told', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  world.start('all')
  await world.addService('web')
  const addressOf = async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.[0]?.ip
  const first = await eventually(addressOf, 'the Service has an address')
  const [balancer] = (await world.account()).load_balancers
  world.hcloud.control.mutate({ load_balancers: [{ id: balancer?.id, delete: true }] })
  const body = { metadata: { annotations: { looked: 'at' } } }
  await world.api.patch(SERVICES, { namespace: 'default', name: 'web' }, { type: 'merge', body }, world.call)
  const second = await eventually(async () => {
    const now = await addressOf()
    return now !== first && now
  }, 'it has another address')
  const event = await eventually(
    async () => (await world.events()).find(({ reason }) => reason === 'LoadBalancerAddressChanged'),
    'an Event tells of it',
  )
  t.match(event, { type: 'Warning', involvedObject: { kind: 'Service', name: 'web' } })
  t.ok(event.message?.includes(`changed from ${first}`) && event.message.includes(`to ${second}`))
})
