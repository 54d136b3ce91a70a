import t from 'tap'
import type { Announcement, LoadBalancers } from '../../../src/cloud/provider.ts'
import { after, bench, CLUSTER_UID, KUBE_VIP, node, ofKind, service, tags, twoServers, UID, workers } from './bench.ts'
import { Objects } from './objects.ts'

t.test('a Service gets one floating IP with the tags that the replaced controller looks for', async (t) => {
  const b = await bench(t)
  const applied = await b.ensure(service())
  const [address, ...others] = b.floating()
  t.same(others, [])
  t.match(address?.tags, tags('default/web', { 'windlass-uid': UID }))
  t.same(address?.tags.service, 'grOt6dAM0WQqTUIOZw1s2Y60hJou4P9m1mieZFyOsz8=')
  t.same(applied.ingress, [{ ip: address?.address, ipMode: 'VIP' }])
  t.same(applied.announcement?.serviceAnnotations, {
    [KUBE_VIP]: address?.address,
    'windlass.dev/cherry-address': `${UID} ${address?.address}`,
  })
  t.same(applied.faults, [])
  const done = after(service(), applied)
  t.same(await b.summaries(done), [], 'then there is nothing left to do')
  b.calls()
  t.same((await b.ensure(done)).superseded, undefined)
  t.same(
    Object.keys(b.calls()).filter((key) => !key.startsWith('GET')),
    [],
    'and nothing is written',
  )
})

t.test('BGP goes on for project and servers, with the tags that the servers have by then', async (t) => {
  const b = await bench(t)
  await b.provider.instances.listProviderIds(b.call)
  await b.simulator.control.mutate({ servers: [{ hostname: 'worker-1', tags: { team: 'blue' } }] })
  await b.ensure(service())
  const { servers, projects } = b.simulator.control.state() as unknown as {
    servers: { hostname: string; bgp: { enabled: boolean }; tags: Record<string, string> }[]
    projects: { bgp: { enabled: boolean } }[]
  }
  t.same(projects[0]?.bgp.enabled, true)
  t.same(
    servers.map(({ bgp }) => bgp.enabled),
    [true, true],
  )
  t.same(servers.find(({ hostname }) => hostname === 'worker-1')?.tags, { team: 'blue' })
})

t.test('a project that comes without its name is not given another with its BGP', async (t) => {
  const b = await bench(t)
  b.simulator.control.fault({ match: 'GET /projects/{id}', kind: 'field', field: 'name', value: null, times: -1 })
  await t.rejects(b.ensure(service()), /tells no name/)
  const named = (b.simulator.control.state().projects as { name: string }[]).map(({ name }) => name)
  b.simulator.control.fault('clear')
  await b.ensure(service())
  t.same(
    (b.simulator.control.state().projects as { name: string }[]).map(({ name }) => name),
    named,
  )
})

t.test('ten nodes and five Services need few calls', async (t) => {
  const servers = Array.from({ length: 10 }, (_, i) => ({
    ...twoServers.servers[0],
    id: 383531 + i,
    hostname: `worker-${i + 1}`,
    ip_addresses: [{ address: `5.199.160.${31 + i}`, type: 'primary-ip' }],
  }))
  const b = await bench(t, { account: { servers } })
  const nodes = servers.map(({ id, hostname }) => node(hostname, { providerId: `cherryservers://${id}` }))
  const services = ['a', 'b', 'c', 'd', 'e'].map((name) => service({}, { name, uid: `uid-${name}` }))
  await b.ensure(services[0] ?? service(), nodes)
  await Promise.all(services.slice(1).map((one) => b.ensure(one, nodes)))
  const calls = Object.values(b.calls()).reduce((sum, count) => sum + count, 0)
  t.comment(`${calls} calls`)
  t.ok(calls <= 25, `${calls} calls`)
  t.equal(b.floating().length, 5)
})

t.test('a lost answer makes no second address', async (t) => {
  const b = await bench(t)
  b.simulator.control.fault({ match: 'POST /projects/{id}/ips', kind: 'drop-after-commit', times: 1 })
  const applied = await b.ensure(service())
  t.equal(b.floating().length, 1)
  t.same(applied.ingress[0]?.ip, b.floating()[0]?.address)
})

t.test('an address is made once, however late lists show it', async (t) => {
  const b = await bench(t, { options: { lag_ms: 60_000 } })
  const first = await b.ensure(service())
  t.same((await b.ensure(service())).ingress, first.ingress, 'after a run that wrote no status')
  const done = after(service(), first)
  t.same((await b.ensure(done)).ingress, first.ingress)
  t.equal(b.floating().length, 1)
  await b.remove(done)
  t.same(b.floating(), [], 'and is given back, though no list ever showed it')
  t.match(await b.summaries(service()), [/^reserve/])
})

t.test('an address that somebody deletes is missed as soon as a list has shown it once', async (t) => {
  const b = await bench(t)
  const done = after(service(), await b.ensure(service()))
  await b.loadBalancers.plan({ ...done, ingress: [] }, workers(1), b.call)
  await b.simulator.control.mutate({ ips: [{ address: done.ingress[0]?.ip, $delete: true }] })
  const next = await b.ensure({ ...done, ingress: [] })
  t.equal(b.floating().length, 1)
  t.same(next.ingress[0]?.ip, b.floating()[0]?.address)
})

t.test('an address whose tags are gone is tagged anew, and none is made in its place', async (t) => {
  const b = await bench(t)
  const done = after(service(), await b.ensure(service()))
  const [own] = b.floating()
  await b.simulator.control.mutate({ ips: [{ address: own?.address, tags: { team: 'x' } }] })
  const other = { ...done, uid: 'uid-2', ingress: [] }
  const looks = async (given: typeof done) => (await b.worker().loadBalancers?.plan(given, workers(1), b.call))?.changes
  t.match(await looks(other), [{ kind: 'reserve-address' }], 'not for a copy of the Service')
  t.match(
    await looks({ ...done, annotations: {} }),
    [{ kind: 'reserve-address' }],
    'nor where nothing says that it was ours',
  )
  const worker = b.worker().loadBalancers as LoadBalancers
  const again = await worker.apply(await worker.plan(done, workers(1), b.call), b.call)
  t.same(again.ingress, done.ingress)
  t.same(b.floating()[0]?.tags, tags('default/web', { team: 'x', 'windlass-uid': UID }))
  await b.simulator.control.mutate({ ips: [{ address: own?.address, tags: tags('default/api') }] })
  t.match(await looks(done), [{ kind: 'reserve-address' }], 'one that is tagged as another Service’s is that one’s')
})

t.test(
  'a node without its region’s label has no peers where those select by region, and its user is told',
  async (t) => {
    const b = await bench(t, { settings: { loadBalancer: 'metallb:///?bgp-peer-mode=frr' } })
    const [one, two] = workers(1, 2)
    const labelled = { ...two, labels: { ...two?.labels, 'topology.kubernetes.io/region': 'LT-Siauliai' } }
    const applied = await b.ensure(service(), [one, labelled] as (typeof one & {})[])
    t.match(applied.notes, [{ reason: 'NoBgpSpeaker', node: 'worker-1', message: /topology.kubernetes.io\/region/ }])
    t.equal(applied.notes.length, 1)
  },
)

t.test('where an answer is lost and lists lag, a second address goes as soon as both are seen', async (t) => {
  const b = await bench(t, { options: { lag_ms: 400 } })
  b.simulator.control.fault({ match: 'POST /projects/{id}/ips', kind: 'drop-after-commit', times: 1 })
  await t.rejects(b.ensure(service()), ofKind('transient'))
  const second = await b.ensure(service())
  t.equal(b.floating().length, 2)
  t.ok(second.againMs, 'no event will tell of the other, so the run comes again')
  const published = after(service(), second)
  let again = await b.ensure(published)
  while (!again.superseded) again = await b.ensure(published)
  await b.loadBalancers.applyDeletion(await again.superseded(b.call), b.call)
  t.same(again.ingress, second.ingress, 'what is published stays')
  t.same(
    b.floating().map(({ address }) => address),
    [second.ingress[0]?.ip],
  )
})

t.test('a Service stays as long as an address may turn up for it', async (t) => {
  const b = await bench(t, { options: { lag_ms: 400 } })
  b.simulator.control.fault({ match: 'POST /projects/{id}/ips', kind: 'drop-after-commit', times: 1 })
  await t.rejects(b.ensure(service()), ofKind('transient'))
  await t.rejects(b.remove(service()), { kind: 'throttled', code: 'address_in_doubt' })
  while (b.floating().length > 0) await t.rejects(b.remove(service()), { code: 'address_in_doubt' })
})

t.test('where the API says no, there is no doubt', async (t) => {
  const b = await bench(t)
  for (const fault of [{ kind: 'error', code: '400' }, { kind: 'error', code: '401' }, { kind: 'rate-limit' }]) {
    b.simulator.control.fault({ match: 'POST /projects/{id}/ips', times: 1, ...fault })
    await t.rejects(b.ensure(service()))
    await b.remove(service())
  }
  t.equal((await b.ensure(service())).againMs, undefined)
})

t.test('where somebody in between gave up waiting, there is', async (t) => {
  for (const code of ['408', '499']) {
    const b = await bench(t, { options: { lag_ms: 400 } })
    b.simulator.control.fault({ match: 'POST /projects/{id}/ips', kind: 'error', code, times: 1 })
    await t.rejects(b.ensure(service()))
    await t.rejects(b.remove(service()), { kind: 'throttled', code: 'address_in_doubt' }, code)
  }
})

t.test('a release is done when the API says so by its own answer', async (t) => {
  const b = await bench(t)
  await b.ensure(service())
  b.simulator.control.fault({ match: 'DELETE /ips/{id}', kind: 'empty', times: 1 })
  await t.rejects(b.remove(service()), { kind: 'transient', message: /the answer is empty/ })
  await b.remove(service())
  t.equal(b.floating().length, 0)
})

t.test('an address of the replaced controller is taken over with all of its tags', async (t) => {
  const ips = [{ address: '46.166.170.77', region: 'NL-Amsterdam', tags: tags('default/web', { extra: 'x' }) }]
  const b = await bench(t, { account: { ...twoServers, ips } })
  const applied = await b.ensure(service({ [KUBE_VIP]: '46.166.170.77' }))
  t.same(applied.ingress[0]?.ip, '46.166.170.77')
  t.same(b.floating()[0]?.tags, tags('default/web', { extra: 'x', 'windlass-uid': UID }))
})

t.test('one that the replaced controller reserved stays for whom its user names another, and is told', async (t) => {
  const ips = [{ address: '46.166.170.77', region: 'NL-Amsterdam', tags: tags('default/web') }]
  const b = await bench(t, { account: { ...twoServers, ips } })
  const wished = service({ [KUBE_VIP]: '145.60.80.60' })
  const { notes } = await b.loadBalancers.plan(wished, [], b.call)
  t.match(notes, [{ type: 'Warning', reason: 'FloatingIPUnused', message: /46\.166\.170\.77.*until the Service goes/ }])
  await b.ensure(wished)
  t.equal(b.floating().length, 1)
  await b.remove(wished)
  t.same(b.floating(), [], 'and goes with it')
})

t.test('an address that was given back and is listed still is not taken', async (t) => {
  const b = await bench(t, { options: { deleted_stays_ms: 400 } })
  const gone = after(service(), await b.ensure(service()))
  await b.remove(gone)
  const reborn = await b.ensure(service())
  t.not(reborn.ingress[0]?.ip, undefined)
  const alive = await b.ensure(after(service(), reborn))
  t.same(alive.ingress, reborn.ingress)
})

t.test('a Service made again under its name has an address of its own, and the old one goes', async (t) => {
  const b = await bench(t)
  const former = after(service(), await b.ensure(service()))
  const next = { ...former, uid: 'uid-2', ingress: [] }
  const applied = await b.ensure(next)
  t.equal(b.floating().length, 1)
  t.equal(b.floating()[0]?.tags['windlass-uid'], 'uid-2')
  // The clean-up of the former comes late.
  await b.remove(former)
  t.same(
    b.floating().map(({ address }) => address),
    [applied.ingress[0]?.ip],
  )
})

t.test("a user's address is used, and never tagged or released", async (t) => {
  const ips = [{ address: '5.199.171.222', region: 'LT-Siauliai', tags: { mine: 'yes' } }]
  const b = await bench(t, { account: { ...twoServers, ips } })
  for (const one of [service({ [KUBE_VIP]: '5.199.171.222' }), service({}, { loadBalancerIp: '5.199.171.222' })]) {
    const applied = await b.ensure(one)
    t.same(applied.ingress, [{ ip: '5.199.171.222', ipMode: 'VIP' }])
    t.same(applied.announcement?.serviceAnnotations, {})
    await b.remove(one)
  }
  t.same(
    b.floating().map(({ tags }) => tags),
    [{ mine: 'yes' }],
  )
})

t.test('a user who brings an address later gets it, and ours is released after that', async (t) => {
  const b = await bench(t)
  const own = after(service(), await b.ensure(service()))
  const wished = { ...own, annotations: { ...own.annotations, [KUBE_VIP]: '145.60.80.60' } }
  const applied = await b.ensure(wished)
  t.same(applied.ingress, [{ ip: '145.60.80.60', ipMode: 'VIP' }])
  t.equal(b.floating().length, 1, 'not before the cluster has turned away')
  const superseded = await applied.superseded?.(b.call)
  t.match(superseded?.notes, [{ reason: 'FloatingIPReleased' }])
  if (superseded) await b.loadBalancers.applyDeletion(superseded, b.call)
  t.same(b.floating(), [])
})

t.test('our own annotation is no wish, also on a copy of the Service', async (t) => {
  const b = await bench(t)
  const own = after(service(), await b.ensure(service()))
  await b.remove(own)
  const copy = { ...own, uid: 'uid-2', ingress: [] }
  const applied = await b.ensure(copy)
  t.not(applied.ingress[0]?.ip, undefined)
  t.same(applied.ingress[0]?.ip, b.floating()[0]?.address, 'an address that is there')
})

t.test('an address that is assigned is taken off before it is released', async (t) => {
  const b = await bench(t)
  const own = after(service(), await b.ensure(service()))
  const [address] = b.floating()
  await b.simulator.control.mutate({ ips: [{ address: address?.address, targeted_to: 383531 }] })
  await b.remove(own)
  t.same(b.floating(), [])
})

t.test('an address that was assigned after it was listed is taken off before it is released', async (t) => {
  const b = await bench(t)
  const own = after(service(), await b.ensure(service()))
  const plan = await b.loadBalancers.planDeletion(own, b.call)
  await b.simulator.control.mutate({ ips: [{ address: own.ingress[0]?.ip, targeted_to: 383531 }] })
  await b.loadBalancers.applyDeletion(plan, b.call)
  t.same(b.floating(), [])
})

t.test('one bad node keeps no other from its BGP, and is tried again', async (t) => {
  const b = await bench(t)
  b.simulator.control.fault({ match: 'PUT /servers/{id}', kind: 'error', code: '500', times: 1 })
  const applied = await b.ensure(service())
  t.equal(applied.faults.length, 1)
  t.equal(applied.ingress.length, 1)
  t.equal((await b.summaries(after(service(), applied))).length, 1, 'only the one that failed is left to do')
})

t.test('an odd answer takes nothing from a sound node', async (t) => {
  const b = await bench(t)
  const objects = new Objects()
  for (const n of [1, 2]) objects.addNode(`worker-${n}`, `cherryservers://${383530 + n}`)
  const applied = await b.ensure(service())
  objects.apply(applied.announcement as Announcement)
  const annotated = objects.annotations('worker-1')
  t.equal(Object.keys(annotated).length, 10)
  const done = after(service(), applied)
  const twice = (field: string, value?: unknown) => [
    { match: 'GET /projects/{id}/servers', kind: 'field', field: `*.${field}`, times: -1, ...(value ? { value } : {}) },
    { match: 'GET /servers/{id}', kind: 'field', field, times: -1, ...(value ? { value } : {}) },
  ]
  const odd = {
    'no addresses said': [twice('ip_addresses'), 2],
    'an empty list of addresses': [twice('ip_addresses', []), 0],
    'no region said': [twice('region'), 2],
    'no routers said': [twice('region.bgp'), 0],
    'not found': [
      [
        { match: 'GET /projects/{id}/servers', kind: 'http', status: 200, body: [], times: -1 },
        { match: 'GET /servers/{id}', kind: 'error', code: '404', times: -1 },
      ],
      0,
    ],
    'no answer': [[{ match: 'GET /projects/{id}/servers', kind: 'html', times: -1 }], 0],
  } as const
  for (const [what, [faults, known]] of Object.entries(odd)) {
    b.simulator.control.fault(faults as object[])
    const worker = b.worker().loadBalancers as LoadBalancers
    const again = await worker.plan(done, workers(1, 2), b.call).then(
      (plan) => worker.apply(plan, b.call),
      (error) => error,
    )
    if (!(again instanceof Error)) {
      objects.apply(again.announcement as Announcement)
      t.equal(again.faults.length, known, `${what}: tried again where it may pass`)
    }
    t.same(objects.annotations('worker-1'), annotated, what)
    b.simulator.control.fault('clear')
  }
  const [server] = twoServers.servers
  const private_ = server?.ip_addresses.slice(1)
  await b.simulator.control.mutate({ servers: [{ hostname: 'worker-1', ip_addresses: private_ }] })
  const worker = b.worker().loadBalancers as LoadBalancers
  const last = await worker.apply(await worker.plan(done, workers(1, 2), b.call), b.call)
  objects.apply(last.announcement as Announcement)
  t.same(objects.annotations('worker-1'), {}, 'a server that has no public address any more has no sessions')
  t.match(last.notes, [{ reason: 'NoBgpSpeaker', node: 'worker-1' }])
})

t.test('without an address nothing else is touched', async (t) => {
  const b = await bench(t)
  b.simulator.control.fault({ match: 'POST /projects/{id}/ips', kind: 'error', code: '400', times: 1 })
  await t.rejects(b.ensure(service()), { message: /region|limit|400|Cherry/ })
  t.same(
    b.writes.map((what) => what.split(' ')[0]),
    ['reserving'],
  )
  const nowhere = await bench(t, { settings: { region: undefined } })
  await t.rejects(nowhere.ensure(service()), { code: 'no_region' })
  t.same(nowhere.writes, [])
  t.equal((await nowhere.ensure(service({ 'cherryservers.com/fip-region': 'NL-Amsterdam' }))).ingress.length, 1)
})

t.test('half a list of addresses is no reason to make one', async (t) => {
  const ips = Array.from({ length: 4 }, (_, i) => ({
    address: `5.199.171.${200 + i}`,
    region: 'LT-Siauliai',
    tags: {},
  }))
  const b = await bench(t, { account: { ...twoServers, ips } })
  b.simulator.control.fault({ match: 'GET /projects/{id}/ips', kind: 'partial-page', times: -1 })
  await t.rejects(b.ensure(service()), { kind: 'transient', code: 'incomplete' })
  t.same(b.writes, [])
})

t.test('nodes of the selector only, and of this cloud only, take part', async (t) => {
  const b = await bench(t, { settings: { bgpNodeSelector: 'edge' } })
  const [one, two] = workers(1, 2)
  if (!one || !two) return
  const nodes = [
    { ...one, labels: { edge: '1' } },
    two,
    node('foreign', { providerId: 'hcloud://1', labels: { edge: '' } }),
  ]
  await b.ensure(service(), nodes)
  t.same(
    b.writes.filter((what) => what.includes('server')),
    ['switching BGP on for server 383531'],
  )
  t.not(
    b.loadBalancers.targetsKey(service(), nodes),
    b.loadBalancers.targetsKey(service(), [one, two]),
    'a label that the selector names changes the targets',
  )
})

t.test('addresses of other clusters and Services are not ours', async (t) => {
  const other = tags('default/web', { cluster: 'another' })
  const ips = [
    { address: '5.199.171.201', region: 'LT-Siauliai', tags: other },
    { address: '5.199.171.202', region: 'LT-Siauliai', tags: { service: other.service, cluster: CLUSTER_UID } },
  ]
  const b = await bench(t, { account: { ...twoServers, ips } })
  const own = after(service(), await b.ensure(service()))
  t.equal(b.floating().length, 3)
  await b.remove(own)
  t.same(
    b
      .floating()
      .map(({ address }) => address)
      .sort(),
    ['5.199.171.201', '5.199.171.202'],
  )
})

t.test('what is there for Services of this cluster is told with whose it is', async (t) => {
  const ip = (address: string, given: Record<string, string>) => ({ address, region: 'LT-Siauliai', tags: given })
  const of = await bench(t, {
    account: {
      ...twoServers,
      ips: [
        ip('5.199.170.1', tags()),
        ip('5.199.170.2', tags('default/gone')),
        ip('5.199.170.3', tags('default/web', { cluster: 'another' })),
        ip('5.199.170.4', tags('default/web', { usage: 'by hand' })),
        ip('5.199.170.5', {}),
      ],
    },
  })
  const found = await of.loadBalancers.possessions([], of.call)
  t.same(
    found.map((one) => [one.what.replace(/ \(.*/, ''), one.ofThisCluster, one.belongsTo(service())]),
    [
      ['floating IP 5.199.170.1', true, true],
      ['floating IP 5.199.170.2', true, false],
    ],
  )
})

t.test('an address whose tags are gone stays when its Service goes, and is told', async (t) => {
  const of = await bench(t)
  const applied = await of.ensure(service())
  const kept = after(service(), applied)
  const [address] = of.floating()
  await of.simulator.control.mutate({ ips: [{ address: address?.address, tags: {} }] })
  const plan = await of.loadBalancers.planDeletion(kept, of.call)
  t.same(plan.changes, [])
  t.match(plan.notes, [{ type: 'Warning', reason: 'FloatingIPLeftBehind' }])
})

t.test('a text that only some programs read as an address is refused before anything is made', async (t) => {
  const of = await bench(t)
  for (const text of ['10.1', '010.1.1.1', '167837953', '0x7f.1', '10.0.0.1%eth0', '10.0.0.1/32', '10.0.0.1,'])
    await t.rejects(of.ensure(service({ [KUBE_VIP]: text })), { kind: 'permanent', code: 'bad_address' }, text)
  const { ingress } = await of.ensure(service({ [KUBE_VIP]: '203.0.113.7,203.0.113.7' }))
  t.same(
    ingress.map(({ ip }) => ip),
    ['203.0.113.7'],
    'one that stands twice counts once',
  )
  t.same(of.floating(), [])
})

t.test('a floating IP that does not say which address it is serves nobody yet', async (t) => {
  const of = await bench(t)
  const body = { id: 'b0b0b0b0-0000-0000-0000-000000000000', address: 'none', tags: tags() }
  of.simulator.control.fault({ match: 'POST /projects/{id}/ips', kind: 'http', status: 201, body, times: 1 })
  await t.rejects(of.ensure(service()), { kind: 'transient', code: 'no_address' })
})
