import t, { type Test } from 'tap'
import type { ServiceProjection } from '../../../src/events/projection.ts'
import {
  type Bench,
  type BenchOptions,
  bench,
  callOf,
  lbOf,
  loadBalancersOf,
  node,
  nodes,
  servers,
  service,
  targetsOf,
  UID,
} from './bench.ts'

const NETWORK = {
  id: 500,
  name: 'net',
  ip_range: '10.0.0.0/8',
  subnets: [
    { type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'eu-central' },
    { type: 'vswitch', ip_range: '10.1.0.0/24', network_zone: 'eu-central', vswitch_id: 7 },
  ],
}
const inNetwork = (...ids: number[]) =>
  ids.map((id) => ({ id, name: `w${id}`, private_net: [{ network: 'net', ip: `10.0.0.1${id}` }] }))
const withNetwork = { settings: { network: 'net', networkRoutesEnabled: false } }

async function open(t: Test, options: BenchOptions = {}): Promise<Bench> {
  const opened = await bench({ account: { servers: servers(1, 2, 3) }, ...options })
  t.teardown(() => opened.close())
  return opened
}

const outcome = (of: Bench, wanted: ServiceProjection, on = nodes(1, 2)) => of.run(wanted, on)

t.test('a Service gets its load balancer by one call, with all that belongs to it', async (t) => {
  const of = await open(t, { options: { action_ms: 20 } })
  const { ingress, faults, notes } = await outcome(
    of,
    service(
      {},
      {
        ports: [
          { port: 80, nodePort: 30080 },
          { port: 443, nodePort: 30443 },
        ],
      },
    ),
  )
  t.strictSame([faults, notes], [[], []])
  const { 'GET /load_balancer_types': _, ...calls } = of.calls()
  t.strictSame(calls, { 'GET /load_balancers': 2, 'POST /load_balancers': 1, 'GET /actions': 1 })
  const lb = lbOf(of)
  t.strictSame(lb.labels, { 'hcloud-ccm/service-uid': UID })
  t.equal(lb.name, 'a1111111122223333444455555555555')
  t.strictSame(targetsOf(lb), ['server 1', 'server 2'])
  t.strictSame(
    lb.services.map(({ listen_port }) => listen_port),
    [80, 443],
  )
  t.strictSame(ingress, [
    { ip: lb.public_net.ipv4.ip, ipMode: 'VIP' },
    { ip: lb.public_net.ipv6.ip, ipMode: 'VIP' },
  ])
  t.strictSame(of.writes, ['creating load balancer "a1111111122223333444455555555555"'])
})

t.test('an unchanged Service costs one read and no write', async (t) => {
  const of = await open(t)
  await of.ensure(service(), nodes(1, 2))
  of.calls()
  const { ingress } = await of.ensure(service(), nodes(1, 2))
  t.equal(ingress.length, 2)
  t.strictSame(of.calls(), { 'GET /load_balancers': 1 })
})

t.test('many Services that look at once share their reads', async (t) => {
  const of = await open(t)
  const wanted = Array.from({ length: 40 }, (_, i) =>
    service({}, { name: `s${i}`, uid: `${i}`.padStart(8, '0') + UID.slice(8) }),
  )
  const plans = await Promise.all(wanted.map((one) => of.loadBalancers.plan(one, nodes(1), of.call)))
  t.ok(plans.every(({ changes }) => changes[0]?.kind === 'create-load-balancer'))
  t.ok((of.calls()['GET /load_balancers'] ?? 0) <= 2)
})

t.test('a run that lost its claim writes nothing', async (t) => {
  const of = await open(t)
  const plan = await of.loadBalancers.plan(service(), nodes(1), of.call)
  await t.rejects(of.loadBalancers.apply(plan, callOf({ refuse: new Error('lost') })), /lost/)
  t.strictSame(loadBalancersOf(of), [])
})

t.test('a create whose answer was lost is found again: one load balancer', async (t) => {
  const of = await open(t)
  of.simulator.control.fault({ match: 'POST /load_balancers', kind: 'drop-after-commit' })
  await t.rejects(of.ensure(service(), nodes(1, 2)), { name: 'WindlassError', kind: 'transient' })
  await of.ensure(service(), nodes(1, 2))
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2'])
})

t.test('a list that lags behind makes no second one', async (t) => {
  const of = await open(t, { options: { stale_ms: 60_000 } })
  await of.ensure(service(), nodes(1))
  await of.ensure(service(), nodes(1, 2))
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2'])
  const other = of.worker().loadBalancers!
  await t.rejects(other.apply(await other.plan(service(), nodes(1), of.call), of.call), {
    kind: 'transient',
    message: /uniqueness_error/,
  })
  await of.remove(service())
  t.strictSame(loadBalancersOf(of), [])
})

t.test('an action that fails is told, and the next run goes on from what is there', async (t) => {
  const of = await open(t)
  await of.ensure(service(), nodes(1))
  of.simulator.control.fault({
    match: 'POST /load_balancers/{id}/actions/add_target',
    kind: 'action-error',
    code: 'timeout',
    message: 'took too long',
  })
  const { faults, ingress } = await outcome(of, service(), nodes(1, 2))
  t.match(faults, [{ kind: 'transient', message: /node w2 is no target/ }])
  t.equal(ingress.length, 2)
  await of.ensure(service(), nodes(1, 2))
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2'])
})

t.test('one bad target stops no other, at creation and later', async (t) => {
  const of = await open(t, { account: { servers: [...servers(1, 2, 3), { id: 4, name: 'w4', ipv4: null }] } })
  const { faults, notes } = await outcome(of, service(), nodes(1, 4, 2))
  t.match(faults, [{ code: 'missing_ipv4' }])
  t.match(notes, [{ reason: 'TargetRefused', node: 'w4' }])
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2'])
  of.calls()
  const again = await outcome(of, service(), nodes(1, 4, 2, 3))
  t.match(again.faults, [{ code: 'missing_ipv4' }])
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2', 'server 3'])
  t.equal(of.calls()['POST /load_balancers/{id}/actions/add_target'], 1, 'what is known to be refused is not tried')
})

t.test('a server that is gone is no target, and the others are', async (t) => {
  const of = await open(t)
  const { faults, notes } = await outcome(of, service(), nodes(1, 99))
  t.match(faults, [{ kind: 'permanent', code: 'not_found' }])
  t.match(notes, [{ node: 'w99' }])
  t.strictSame(targetsOf(lbOf(of)), ['server 1'])
})

t.test('what the API refuses about listeners makes nothing', async (t) => {
  const of = await open(t)
  await t.rejects(of.ensure(service({ 'health-check-interval': '1s' }), nodes(1)), {
    kind: 'permanent',
    message: /invalid fields: services.0.health_check.interval/,
  })
  t.strictSame(loadBalancersOf(of), [])
  t.equal(of.calls()['POST /load_balancers'], 1)
})

t.test('a full type keeps a fixed choice and says who is left out', async (t) => {
  const of = await open(t, {
    account: { servers: servers(1, 2, 3), load_balancer_types: [{ name: 'tiny', max_targets: 2 }] },
    loadBalancers: { type: 'tiny' },
  })
  const { faults, notes } = await outcome(of, service(), nodes(3, 1, 2))
  t.strictSame(faults, [])
  t.match(notes, [{ reason: 'MaxTargetsReached', node: 'w3' }])
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2'])
  t.strictSame(await of.plan(service(), nodes(3, 1, 2)), [])
})

t.test('a load balancer is adopted by name, unless somebody else owns it', async (t) => {
  const of = await open(t, {
    account: {
      servers: servers(1, 2),
      load_balancers: [
        {
          name: 'mine',
          labels: { team: 'a' },
          location: 'hel1',
          algorithm: 'least_connections',
          targets: [{ type: 'server', server: 'w2' }],
        },
        { name: 'theirs', labels: { 'hcloud-ccm/service-uid': 'other' } },
      ],
    },
  })
  await of.ensure(service({ name: 'mine' }), nodes(1))
  const lb = lbOf(of, 'mine')
  t.strictSame(lb.labels, { team: 'a', 'hcloud-ccm/service-uid': UID })
  t.strictSame([lb.location.name, lb.algorithm.type, targetsOf(lb)], ['hel1', 'least_connections', ['server 1']])
  const before = JSON.stringify(lbOf(of, 'theirs'))
  // It comes again: the owner may go without any change here.
  await t.rejects(of.ensure(service({ name: 'theirs' }, { uid: 'second' }), nodes(1)), {
    kind: 'transient',
    message: /belongs to the Service with uid other/,
  })
  t.equal(JSON.stringify(lbOf(of, 'theirs')), before)
})

t.test('two with the label of one Service are for a human to sort out', async (t) => {
  const labels = { 'hcloud-ccm/service-uid': UID }
  const of = await open(t, {
    account: {
      load_balancers: [
        { name: 'one', labels },
        { name: 'two', labels },
      ],
    },
  })
  await t.rejects(of.ensure(service(), []), { kind: 'permanent', message: /"one" .* and "two"/ })
  await t.rejects(of.remove(service()), { name: 'WindlassError', kind: 'permanent' })
  t.equal(loadBalancersOf(of).length, 2)
})

t.test('deletion takes what is provably ours, and nothing else', async (t) => {
  const of = await open(t, { account: { servers: servers(1), load_balancers: [{ name: 'chosen' }] } })
  const plan = await of.loadBalancers.planDeletion(service({ name: 'chosen' }), of.call)
  t.strictSame(plan.changes, [])
  t.match(plan.notes, [{ reason: 'LoadBalancerLeftBehind' }])
  await of.ensure(service(), nodes(1))
  of.simulator.control.mutate({
    load_balancers: [{ name: lbOf(of, 'a1111111122223333444455555555555').name, set: { labels: {} } }],
  })
  await of.remove(service({ protocol: 'nonsense' }))
  t.strictSame(
    loadBalancersOf(of).map(({ name }) => name),
    ['chosen'],
  )
  await of.remove(service())
})

t.test('a lost label and a chosen name: the address in the status proves whose it was', async (t) => {
  const of = await open(t)
  const { ingress } = await of.ensure(service({ name: 'chosen' }), nodes(1))
  of.simulator.control.mutate({ load_balancers: [{ name: 'chosen', set: { labels: {} } }] })
  // Another worker did not make it.
  const other = of.worker().loadBalancers!
  const remove = async (wanted: ServiceProjection) =>
    other.applyDeletion(await other.planDeletion(wanted, of.call), of.call)
  await remove(service({ name: 'chosen' }, { ingress: [{ ip: '192.0.2.99' }] }))
  t.equal(loadBalancersOf(of).length, 1)
  await remove(service({ name: 'chosen' }, { ingress }))
  t.equal(loadBalancersOf(of).length, 0)
})

t.test('a protected load balancer outlives its Service, and can be taken over by name', async (t) => {
  const of = await open(t)
  await of.ensure(service({ name: 'kept' }), nodes(1, 2))
  const { ipv4 } = lbOf(of).public_net
  of.simulator.control.mutate({ load_balancers: [{ name: 'kept', set: { protection: { delete: true } } }] })
  const { notes } = await of.loadBalancers.planDeletion(service({ name: 'kept' }), of.call)
  t.match(notes, [{ type: 'Warning', reason: 'LoadBalancerProtected', message: /"kept" .* takes it over/ }])
  await of.remove(service({ name: 'kept' }))
  t.equal(lbOf(of).labels['hcloud-ccm/service-uid'], UID)
  t.strictSame(targetsOf(lbOf(of)), [], 'its node ports may be those of another Service by tomorrow')
  t.strictSame((await of.loadBalancers.planDeletion(service({ name: 'kept' }), of.call)).changes, [])
  const next = service({ name: 'kept' }, { uid: 'next' })
  await of.ensure(next, nodes(2))
  t.strictSame(
    [lbOf(of).labels, lbOf(of).public_net.ipv4, targetsOf(lbOf(of))],
    [{ 'hcloud-ccm/service-uid': 'next' }, ipv4, ['server 2']],
  )
})

t.test('a managed certificate is made once, used, replaced by name, and deleted with its Service', async (t) => {
  const of = await open(t)
  const managed = (more: Record<string, string> = {}) =>
    service({
      protocol: 'https',
      'certificate-type': 'managed',
      'http-managed-certificate-domains': 'a.example.com',
      ...more,
    })
  const names = () => (of.simulator.control.state().certificates as { name: string }[]).map(({ name }) => name)
  await of.ensure(managed(), nodes(1))
  await of.ensure(managed(), nodes(1))
  t.strictSame(names(), [`ccm-managed-certificate-${UID}`])
  t.strictSame(await of.plan(managed(), nodes(1)), [])
  const fixed = await of.loadBalancers.plan(
    managed({ 'http-managed-certificate-domains': 'b.example.com' }),
    nodes(1),
    of.call,
  )
  t.match(fixed.notes, [{ reason: 'CertificateDomainsFixed' }])
  await of.ensure(managed({ 'http-managed-certificate-name': 'second' }), nodes(1))
  t.strictSame(names(), ['second'])
  await of.remove(managed())
  t.strictSame(names(), [])
})

t.test('a managed certificate that can not be issued, or that somebody else uses, is told', async (t) => {
  const of = await open(t)
  const managed = service({
    protocol: 'https',
    'certificate-type': 'managed',
    'http-managed-certificate-domains': 'a.example.com',
  })
  of.simulator.control.fault({ match: 'POST /certificates', kind: 'action-error', code: 'ca_dns_validation_failed' })
  await t.rejects(of.run(managed, nodes(1)), { name: 'WindlassError', kind: 'transient' })
  const { notes } = await of.run(managed, nodes(1))
  t.match(notes, [{ type: 'Warning', reason: 'CertificateIssuanceFailed', message: /could not be issued.*delete it/ }])
  const [certificate] = of.simulator.control.state().certificates as { id: number }[]
  const listener = {
    protocol: 'https',
    listen_port: 8443,
    destination_port: 30443,
    http: { certificates: [certificate?.id] },
  }
  of.simulator.control.mutate({ load_balancers: [{ create: { name: 'by-hand', services: [listener] } }] })
  const deletion = await of.loadBalancers.planDeletion(managed, of.call)
  t.match(deletion.notes, [{ type: 'Warning', reason: 'CertificateLeftBehind', message: /still uses it/ }])
  await of.remove(managed)
  t.strictSame(
    (of.simulator.control.state().certificates as { id: number }[]).map(({ id }) => id),
    [certificate?.id],
  )
})

t.test('a certificate that is missing, or of somebody else, is named before anything is made', async (t) => {
  const of = await open(t, { account: { servers: servers(1), certificates: [{ id: 701, name: 'taken' }] } })
  await t.rejects(of.ensure(service({ protocol: 'https', 'http-certificates': 'nope,999,taken' }), nodes(1)), {
    kind: 'permanent',
    message: /certificate "nope" does not exist.*certificate "999" does not exist/,
  })
  const named = {
    protocol: 'https',
    'certificate-type': 'managed',
    'http-managed-certificate-name': 'taken',
    'http-managed-certificate-domains': 'a.b',
  }
  await t.rejects(of.ensure(service(named), nodes(1)), { kind: 'permanent', message: /is taken by certificate 701/ })
  t.strictSame(loadBalancersOf(of), [])
})

t.test('a word of the API that nobody knows may be about a target, and is not about an account', async (t) => {
  const of = await open(t)
  const refuse = (code: string, status: number) =>
    of.simulator.control.fault({ match: 'POST /load_balancers', kind: 'error', code, status })
  refuse('server_is_elsewhere', 422)
  await of.ensure(service(), nodes(1, 2))
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2'])
  of.calls()
  for (const [code, status] of [
    ['resource_limit_exceeded', 403],
    ['forbidden', 403],
  ] as const) {
    refuse(code, status)
    await t.rejects(of.ensure(service({}, { uid: `of-${code}` }), nodes(1)), { kind: 'permanent', code })
  }
  t.equal(of.calls()['POST /load_balancers'], 2, 'not asked again')
})

t.test('a load balancer that goes while targets are added is made anew, and no target is to blame', async (t) => {
  const of = await open(t)
  await of.ensure(service(), nodes(1))
  const plan = await of.loadBalancers.plan(service(), nodes(1, 2), of.call)
  of.simulator.control.mutate({ load_balancers: [{ id: lbOf(of).id, delete: true }] })
  await t.rejects(of.loadBalancers.apply(plan, of.call), { kind: 'transient', message: /is gone/ })
  await of.ensure(service(), nodes(1, 2))
  t.strictSame(targetsOf(lbOf(of)), ['server 1', 'server 2'])
})

t.test('an answer that got lost is no refusal of a target', async (t) => {
  const of = await open(t)
  await of.ensure(service(), nodes(1))
  const match = 'POST /load_balancers/{id}/actions/add_target'
  for (const kind of ['drop-before', 'drop-after-commit', 'html']) {
    of.simulator.control.fault({ match, kind })
    await t.rejects(of.run(service(), nodes(1, 2)), { kind: 'transient', message: /adding a target/ }, kind)
    await of.ensure(service(), nodes(1))
  }
})

t.test('where detaching fails, nothing is attached', async (t) => {
  const of = await open(t, { account: { networks: [NETWORK], servers: inNetwork(1) }, ...withNetwork })
  await of.ensure(service({ 'private-ipv4': '10.0.0.77' }), nodes(1))
  of.calls()
  of.simulator.control.fault({ match: 'POST /load_balancers/{id}/actions/detach_from_network', kind: 'action-error' })
  const moved = service({ 'private-ipv4': '10.0.0.78' })
  await t.rejects(of.run(moved, nodes(1)), { kind: 'transient', message: /detach_from_network/ })
  t.equal(of.calls()['POST /load_balancers/{id}/actions/attach_to_network'], undefined)
  t.equal(lbOf(of).private_net[0]?.ip, '10.0.0.77')
})

t.test('a load balancer that is protected between look and deletion is left by the next look', async (t) => {
  const of = await open(t)
  await of.ensure(service(), nodes(1))
  const plan = await of.loadBalancers.planDeletion(service(), of.call)
  of.simulator.control.mutate({ load_balancers: [{ id: lbOf(of).id, set: { protection: { delete: true } } }] })
  await t.rejects(of.loadBalancers.applyDeletion(plan, of.call), { kind: 'transient', code: 'protected' })
  await of.remove(service())
  t.equal(lbOf(of).labels['windlass/released'], 'true')
})

t.test(
  'switching between public and private never leaves a load balancer of several nodes without targets',
  async (t) => {
    const of = await open(t, { account: { networks: [NETWORK], servers: inNetwork(1, 2, 3) }, ...withNetwork })
    await of.ensure(service(), nodes(1, 2, 3))
    await of.ensure(service({ 'use-private-ip': 'true', 'disable-public-network': 'true' }), nodes(1, 2, 3))
    t.strictSame(targetsOf(lbOf(of)), ['server 1 private', 'server 2 private', 'server 3 private'])
    t.equal(lbOf(of).public_net.enabled, false)
    await of.ensure(service(), nodes(1, 2))
    t.strictSame([targetsOf(lbOf(of)), lbOf(of).public_net.enabled], [['server 1', 'server 2'], true])
    t.strictSame(of.simulator.control.trafficGaps(), [])
  },
)

t.test('several that want into one network at once wait for their turn', async (t) => {
  const of = await open(t, {
    account: { networks: [NETWORK], servers: inNetwork(1) },
    ...withNetwork,
    options: { action_ms: 30, create_network_conflict: true },
  })
  const uids = [1, 2, 3, 4, 5, 6].map((i) => `${i}`.repeat(8) + UID.slice(8))
  await Promise.all(uids.map((uid) => of.ensure(service({}, { uid }), nodes(1))))
  t.equal(loadBalancersOf(of).length, uids.length)
})

t.test('an address that somebody has is refused before anything is made or detached', async (t) => {
  const [first, second] = inNetwork(1, 2)
  const gateway = { ...NETWORK, subnets: NETWORK.subnets.map((subnet) => ({ ...subnet, gateway: '10.0.0.1' })) }
  const of = await open(t, {
    account: {
      networks: [gateway],
      servers: [
        { ...first, private_net: [{ network: 'net', ip: '10.0.0.11', alias_ips: ['10.0.0.33'] }] },
        second,
        { id: 9, name: 'elsewhere' },
      ],
      load_balancers: [{ name: 'other', private_net: [{ network: 'net', ip: '10.0.0.90' }] }],
    },
    ...withNetwork,
  })
  const on = nodes(1, 2)
  const at = (ip: string) => service({ name: 'mine', 'private-ipv4': ip, 'use-private-ip': 'true' })
  await t.rejects(of.ensure(at('10.0.0.11'), on), { kind: 'permanent', message: /is that of server "w1"/ })
  t.equal(loadBalancersOf(of).length, 1, 'nothing is made')
  const { ingress } = await of.ensure(at('10.0.0.77'), on)
  t.equal(ingress.at(-1)?.ip, '10.0.0.77')
  const taken: [string, RegExp][] = [
    ['10.0.0.12', /is that of server "w2"/],
    ['10.0.0.33', /is that of server "w1"/],
    ['10.0.0.90', /is that of load balancer "other"/],
    ['10.0.0.1', /is that of the gateway/],
    ['10.9.0.1', /in no subnet/],
  ]
  for (const [ip, message] of taken) {
    await t.rejects(of.ensure(at(ip), on), { kind: 'permanent', message }, ip)
    const lb = lbOf(of, 'mine')
    t.strictSame([lb.private_net[0]?.ip, targetsOf(lb)], ['10.0.0.77', ['server 1 private', 'server 2 private']], ip)
  }
  of.simulator.control.mutate({ servers: [{ name: 'w2', delete: true }] })
  const moved = await of.ensure(at('10.0.0.12'), nodes(1))
  t.equal(moved.ingress.at(-1)?.ip, '10.0.0.12', 'an address that was given up meanwhile')
})

t.test('an address that the API refuses leaves the rest done and the Service without addresses', async (t) => {
  const of = await open(t, { account: { networks: [NETWORK], servers: inNetwork(1) }, ...withNetwork })
  const match = 'POST /load_balancers/{id}/actions/attach_to_network'
  of.simulator.control.fault({ match, kind: 'error', code: 'ip_not_available', status: 422 })
  await t.rejects(of.ensure(service({ 'private-ipv4': '10.0.0.50' }), nodes(1)), {
    kind: 'permanent',
    code: 'ip_not_available',
  })
  t.strictSame(targetsOf(lbOf(of)), ['server 1'])
  const { ingress } = await of.ensure(service({ 'private-ipv4': '10.0.0.77' }), nodes(1))
  t.equal(ingress.at(-1)?.ip, '10.0.0.77')
})

t.test('a Service that asks for what can not be keeps its targets in step with its nodes', async (t) => {
  const of = await open(t, { account: { networks: [NETWORK], servers: inNetwork(1, 2, 3) }, ...withNetwork })
  const wishes: Record<string, string>[] = [
    { protocol: 'quic' },
    { 'health-check-port': '0' },
    { protocol: 'https', 'http-certificates': 'none' },
    { type: 'lb99' },
    { 'private-ipv4': '10.9.9.9' },
  ]
  const { ingress } = await of.ensure(service(), nodes(1, 2))
  const before = lbOf(of)
  for (const [i, wish] of wishes.entries()) {
    const wanted = service({ ...wish, 'algorithm-type': 'least_connections', name: 'another' }, { ingress })
    const second = i % 2 === 0 ? 3 : 2
    const applied = await of.run(wanted, nodes(1, second))
    const what = JSON.stringify(wish)
    t.match(applied.faults, [{ kind: 'permanent', code: 'invalid_service' }], what)
    t.strictSame(applied.ingress, ingress, 'the status stays')
    const after = lbOf(of)
    t.strictSame(targetsOf(after), ['server 1', `server ${second}`], what)
    t.strictSame({ ...after, targets: [] }, { ...before, targets: [] }, 'nothing else is changed')
    await t.rejects(of.run(wanted, nodes(1, second)), { code: 'invalid_service' }, 'nothing to do is just the fault')
  }
})

t.test('what says which nodes are targets must be right for targets to change', async (t) => {
  const of = await open(t, {
    account: {
      networks: [NETWORK],
      servers: inNetwork(1, 2),
      load_balancers: [{ name: 'unowned', targets: [{ type: 'server', server: 'w1' }] }],
    },
  })
  await of.ensure(service(), nodes(1))
  const refused: Record<string, string>[] = [
    { 'node-selector': 'a in' },
    { 'use-private-ip': 'maybe' },
    { 'use-private-ip': 'true' },
    { name: 'unowned', protocol: 'quic' },
  ]
  for (const wish of refused) {
    const uid = wish.name === undefined ? UID : 'another'
    await t.rejects(of.run(service(wish, { uid }), nodes(1, 2)), { code: 'invalid_service' }, JSON.stringify(wish))
    for (const lb of loadBalancersOf(of)) t.strictSame(targetsOf(lb), ['server 1'], JSON.stringify(wish))
  }
})

t.test('a fault that only matters for what has to be made does not trouble what is there', async (t) => {
  const of = await open(t, { account: { networks: [NETWORK], servers: inNetwork(1) }, ...withNetwork })
  await t.rejects(of.ensure(service({ name: ' ' }), nodes(1)), { message: /name: " " is empty/ })
  await t.rejects(of.ensure(service({ 'private-subnet-ip-range': 'x' }), nodes(1)), { message: /is not a CIDR/ })
  t.strictSame(loadBalancersOf(of), [])
  await of.ensure(service({ name: 'mine', 'private-ipv4': '10.0.0.77' }), nodes(1))
  const idle = { name: '', 'private-subnet-ip-range': 'x', 'private-ipv4': '10.0.0.77' }
  const { notes } = await of.ensure(service(idle), nodes(1))
  t.match(notes, [
    { reason: 'AnnotationIgnored', message: /name: "" is empty/ },
    { reason: 'AnnotationIgnored', message: /private-subnet-ip-range/ },
  ])
  t.equal(lbOf(of).name, 'mine')
  // Another address is another attachment, for which the subnet counts.
  await t.rejects(of.ensure(service({ ...idle, 'private-ipv4': '10.0.0.78' }), nodes(1)), { message: /is not a CIDR/ })
  t.equal(lbOf(of).private_net[0]?.ip, '10.0.0.77')
})

t.test('a server joins as soon as it is in the network', async (t) => {
  const of = await open(t, {
    account: { networks: [NETWORK], servers: [...inNetwork(1), { id: 2, name: 'w2' }] },
    settings: { ...withNetwork.settings, serverCacheMaxAgeMs: 0 },
  })
  const wanted = service({ 'use-private-ip': 'true' })
  const { faults } = await outcome(of, wanted)
  t.match(faults, [{ kind: 'transient', code: 'server_not_attached_to_network' }])
  of.simulator.control.mutate({
    servers: [{ name: 'w2', set: { private_net: [{ network: 'net', ip: '10.0.0.12' }] } }],
  })
  await of.ensure(wanted, nodes(1, 2))
  t.strictSame(targetsOf(lbOf(of)), ['server 1 private', 'server 2 private'])
})

t.test('Robot servers are ip targets; equal numbers of cloud servers do not disturb', async (t) => {
  const of = await open(t, {
    account: {
      networks: [NETWORK],
      servers: inNetwork(1),
      robot_servers: [
        { server_number: 1, server_name: 'r1', server_ip: '203.0.113.9' },
        { server_number: 322, server_name: 'r2', server_ip: '203.0.113.10' },
      ],
    },
    ...withNetwork,
    robot: {},
  })
  const all = [
    ...nodes(1),
    node('r1', { providerId: 'hrobot://1', addresses: [{ type: 'InternalIP', address: '10.1.0.5' }] }),
    node('r2', { providerId: 'hcloud://bm-322' }),
  ]
  await of.ensure(service(), all)
  t.strictSame(targetsOf(lbOf(of)), ['ip 203.0.113.10', 'ip 203.0.113.9', 'server 1'])
  const { notes } = await of.ensure(service({ 'use-private-ip': 'true' }), all)
  t.strictSame(targetsOf(lbOf(of)), ['ip 10.1.0.5', 'ip 203.0.113.10', 'server 1 private'])
  t.match(notes, [{ reason: 'InternalIPNotConfigured', node: undefined }])
  t.equal(of.calls()['ROBOT GET /server'], 1)
})

t.test("Robot's trouble leaves its targets alone, and the cloud's are brought to their state", async (t) => {
  const of = await open(t, {
    account: {
      servers: servers(1, 2),
      robot_servers: [{ server_number: 321, server_name: 'r1', server_ip: '203.0.113.9' }],
    },
    robot: { cacheTimeoutMs: -1 },
  })
  const robot = node('r1', { providerId: 'hrobot://321' })
  await of.ensure(service(), [...nodes(1), robot])
  of.simulator.control.fault({
    match: 'ROBOT GET /server',
    kind: 'error',
    code: 'INTERNAL_ERROR',
    status: 500,
    times: -1,
  })
  const { faults } = await outcome(of, service(), [...nodes(2), robot])
  t.match(faults, [{ kind: 'transient', message: /Robot/ }])
  t.strictSame(targetsOf(lbOf(of)), ['ip 203.0.113.9', 'server 2'])
})

t.test('twenty nodes that join take one look and one change each', async (t) => {
  const ids = Array.from({ length: 20 }, (_, i) => i + 1)
  const of = await open(t, { account: { servers: servers(...ids) }, options: { action_ms: 0 } })
  await of.ensure(service(), nodes(1))
  of.calls()
  await of.ensure(service(), nodes(...ids))
  t.strictSame(of.calls(), {
    'GET /load_balancers': 1,
    'GET /servers': 1,
    'POST /load_balancers/{id}/actions/add_target': 19,
  })
})

t.test('what stays as it is gives the same key, and a node that matters another', async (t) => {
  const of = await open(t, { robot: {} })
  const key = (annotations: Record<string, string>, on: ReturnType<typeof nodes>) =>
    of.loadBalancers.targetsKey(service(annotations), on)
  t.equal(key({}, nodes(1, 2)), key({}, nodes(2, 1)))
  t.equal(key({}, nodes(1)), key({}, [...nodes(1), node('joining')]))
  t.not(key({}, nodes(1)), key({}, nodes(1, 2)))
  t.not(key({}, nodes(1)), key({}, [...nodes(1), node('r', { providerId: 'hrobot://1' })]))
  t.not(key({}, nodes(1)), key({ 'use-private-ip': 'true' }, nodes(1)))
  // The address is the target.
  const robot = (type: string, address: string) => [
    node('r', { providerId: 'hrobot://1', addresses: [{ type, address }] }),
  ]
  t.not(key({}, robot('ExternalIP', '203.0.113.1')), key({}, robot('ExternalIP', '203.0.113.2')))
  t.equal(key({}, robot('InternalIP', '10.0.0.1')), key({}, robot('InternalIP', '10.0.0.2')))
  const isPrivate = { 'use-private-ip': 'true' }
  t.not(key(isPrivate, robot('InternalIP', '10.0.0.1')), key(isPrivate, robot('InternalIP', '10.0.0.2')))
  t.equal(key({ 'node-selector': 'pool=a' }, nodes(1, 2)), key({ 'node-selector': 'pool=a' }, []))
  t.throws(() => key({ 'node-selector': 'a in' }, nodes(1)), { name: 'WindlassError', kind: 'permanent' })
})

t.test(
  'a type that is deprecated is noted, and one that can not be had any more is refused when it is needed',
  async (t) => {
    const deprecation = (unavailable_after: string) => ({
      deprecation: { announced: '2020-01-01T00:00:00Z', unavailable_after },
    })
    const of = await open(t, {
      account: {
        servers: servers(1),
        load_balancer_types: [
          { name: 'aging', ...deprecation('2999-05-06T00:00:00Z') },
          { name: 'gone', ...deprecation('2020-05-06T00:00:00Z') },
        ],
        load_balancers: [{ name: 'old', load_balancer_type: 'gone' }],
      },
      loadBalancers: { type: undefined },
    })
    const notes = async (annotations: Record<string, string>) =>
      (await of.loadBalancers.plan(service(annotations), nodes(1), of.call)).notes
    t.match(await notes({}), [{ reason: 'LoadBalancerTypeUnconfigured' }])
    t.match(await notes({ type: 'aging' }), [{ reason: 'LoadBalancerTypeDeprecated', message: /2999-05-06/ }])
    await t.rejects(notes({ type: 'gone' }), { kind: 'permanent', message: /can no longer be ordered/ })
    await of.ensure(service({ name: 'old', type: 'gone' }), nodes(1))
    await t.rejects(notes({ type: 'lb99' }), { kind: 'permanent', message: /type not found: lb99/ })
  },
)
