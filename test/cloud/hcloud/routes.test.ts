import t, { type Test } from 'tap'
import type { Routes } from '../../../src/cloud/provider.ts'
import type { Http } from '../../../src/cloud/requests.ts'
import type { NodeProjection } from '../../../src/events/projection.ts'
import { HttpClient } from '../../../src/http/client.ts'
import { type BenchOptions, bench, node } from './bench.ts'

const CIDR = ['10.244.0.0/16']

const network = (routes: { destination: string; gateway: string }[] = []) => ({
  id: 500,
  name: 'net',
  ip_range: '10.0.0.0/8',
  subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'eu-central' }],
  routes,
})

const server = (id: number, of = 'net') => ({ id, name: `w${id}`, private_net: [{ network: of, ip: `10.0.0.1${id}` }] })

const routed = (id: number, more: Partial<NodeProjection> = {}) =>
  node(`n${id}`, {
    providerId: `hcloud://${id}`,
    podCidrs: [`10.244.${id}.0/24`],
    addresses: [{ type: 'InternalIP', address: `10.0.0.1${id}` }],
    ...more,
  })

async function open(t: Test, options: BenchOptions = {}) {
  const opened = await bench({
    settings: { network: 'net' },
    account: { networks: [network()], servers: [server(1), server(2)] },
    ...options,
  })
  t.teardown(() => opened.close())
  const routes = opened.provider.routes as Routes
  const run = async (nodes: NodeProjection[], cidrs = CIDR) => {
    const plan = await routes.plan(nodes, cidrs, opened.call)
    const { notes, ...applied } = await routes.apply(plan, opened.call)
    return { ...applied, notes: [...plan.notes, ...notes] }
  }
  const present = () =>
    ((opened.simulator.control.state().networks as ReturnType<typeof network>[])[0]?.routes ?? [])
      .map(({ destination, gateway }) => `${destination} ${gateway}`)
      .sort()
  return { ...opened, routes, run, present }
}

t.test('each node gets a route to its server, found by provider id and not by name', async (t) => {
  const of = await open(t)
  const { routed: done, failed } = await of.run([routed(1), routed(2)])
  t.strictSame([[...done].sort(), [...failed]], [['n1', 'n2'], []])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11', '10.244.2.0/24 10.0.0.12'])
  of.calls()
  t.strictSame([...(await of.run([routed(1), routed(2)])).routed].sort(), ['n1', 'n2'])
  t.strictSame(of.calls(), { 'GET /networks/{id}': 1 }, 'a steady cluster writes nothing')
})

t.test('ten at once are written one after the other', async (t) => {
  const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  const of = await open(t, {
    account: { networks: [network()], servers: ids.map((id) => server(id)) },
    options: { action_ms: 5 },
  })
  await of.run(ids.map((id) => routed(id)))
  t.equal(of.present().length, ids.length)
  t.strictSame(of.simulator.control.counters().rejected, {})
})

t.test('a wrong gateway is corrected, a route to nobody inside the cluster goes, one outside stays', async (t) => {
  const of = await open(t, {
    account: {
      networks: [
        network([
          { destination: '10.244.1.0/24', gateway: '10.0.0.99' },
          { destination: '10.99.0.0/16', gateway: '10.0.0.12' },
          { destination: '10.244.77.0/24', gateway: '10.0.0.98' },
        ]),
      ],
      servers: [server(1), server(2)],
    },
  })
  await of.run([routed(1)])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11', '10.99.0.0/16 10.0.0.12'])
})

t.test('the route of a node that is there stays while its server can not be seen', async (t) => {
  const of = await open(t, {
    account: { networks: [network([{ destination: '10.244.9.0/24', gateway: '10.0.0.19' }])], servers: [server(1)] },
  })
  const { failed } = await of.run([routed(9), routed(1)])
  t.match(failed.get('n9'), { kind: 'transient', message: /server 9 is not found/ })
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11', '10.244.9.0/24 10.0.0.19'])
})

t.test('a route that is there is enough for a node that lists no addresses yet', async (t) => {
  const of = await open(t, {
    account: {
      networks: [network([{ destination: '10.244.1.0/24', gateway: '10.0.0.11' }])],
      servers: [server(1), server(2)],
    },
  })
  const { routed: done, failed } = await of.run([routed(1, { addresses: [] }), routed(2, { addresses: [] })])
  t.strictSame([...done], ['n1'])
  t.match(failed.get('n2'), { kind: 'transient', message: /10.0.0.12 is not among its addresses/ })
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11'])
})

t.test('a node that was never given a provider id has its server by name', async (t) => {
  const of = await open(t)
  const nameless = (id: number, name: string) => ({ ...routed(id, { name }), providerId: undefined }) as NodeProjection
  const { routed: done, failed } = await of.run([nameless(1, 'w1'), nameless(2, 'other')])
  t.strictSame([...done], ['w1'])
  t.match(failed.get('other'), { kind: 'transient', message: /no provider id, and no server its name/ })
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11'])
})

t.test('a node without pod CIDRs is told apart if a route of before led to it', async (t) => {
  const of = await open(t, {
    account: {
      networks: [
        network([
          { destination: '10.244.1.0/24', gateway: '10.0.0.11' },
          { destination: '0.0.0.0/0', gateway: '10.0.0.12' },
        ]),
      ],
      servers: [server(1), server(2)],
    },
  })
  const nodes = [routed(1, { podCidrs: [] }), routed(2, { podCidrs: [] })]
  const { routed: done, failed, unassigned } = await of.run(nodes)
  t.strictSame([[...unassigned], [...done], [...failed]], [['n1'], [], []])
  t.strictSame(of.present(), ['0.0.0.0/0 10.0.0.12'], 'others route what they like to a node')
  t.strictSame([...(await of.run(nodes)).unassigned], [])
})

t.test('the same address in another network is another server', async (t) => {
  const second = { ...network(), id: 501, name: 'second' }
  const of = await open(t, {
    account: { networks: [network(), second], servers: [server(1), { ...server(1, 'second'), id: 2, name: 'w2' }] },
  })
  for (let i = 0; i < 2; i++) await of.run([routed(1)])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11'])
  const { failed } = await of.run([routed(1), routed(2)])
  t.match(failed.get('n2'), { message: /not attached to network net/ })
})

t.test('of two families the IPv4 part is routed, and IPv6 is spoken of once', async (t) => {
  const of = await open(t)
  const dual = routed(1, { podCidrs: ['10.244.1.0/24', 'fd00:10:0:1::/64'] })
  const six = routed(2, { podCidrs: ['fd00:10:0:2::/64'] })
  const cidrs = ['10.244.0.0/16', 'fd00:10::/48']
  const first = await of.run([dual, six], cidrs)
  t.strictSame([...first.routed].sort(), ['n1', 'n2'])
  t.strictSame(
    first.notes.map(({ reason, node }) => [reason, node]),
    [
      ['IPv6RoutesUnsupported', 'n1'],
      ['IPv6RoutesUnsupported', 'n2'],
    ],
  )
  t.strictSame((await of.run([dual, six], cidrs)).notes, [])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11'])
})

t.test('no route is made outside the cluster CIDR, where none would ever be taken away', async (t) => {
  const of = await open(t)
  const plan = await of.routes.plan([routed(1, { podCidrs: ['10.245.1.0/24'] }), routed(2)], CIDR, of.call)
  t.match(plan, { outside: ['n1'], use: { routes: 0, limit: 100 } })
  const { notes, routed: done, failed } = await of.run([routed(1, { podCidrs: ['10.245.1.0/24'] }), routed(2)])
  t.match(notes, [{ reason: 'ClusterCIDRMisconfigured', node: 'n1', message: /10.245.1.0\/24.*set --cluster-cidr/ }])
  t.match(failed.get('n1'), { kind: 'permanent', message: /nothing would ever take it away/ })
  t.strictSame([...done], ['n2'])
  t.strictSame(of.present(), ['10.244.2.0/24 10.0.0.12'])
})

t.test('one that is there outside the cluster CIDR is kept, for the node that it leads to', async (t) => {
  const there = [
    { destination: '10.245.1.0/24', gateway: '10.0.0.11' },
    { destination: '10.245.2.0/24', gateway: '10.0.0.99' },
  ]
  const of = await open(t, { account: { networks: [network([...there])], servers: [server(1), server(2)] } })
  const both = ['10.244.2.0/24', '10.245.2.0/24']
  const {
    notes,
    routed: done,
    failed,
  } = await of.run([routed(1, { podCidrs: ['10.245.1.0/24'] }), routed(2, { podCidrs: both })])
  t.strictSame(
    notes.map(({ node }) => node),
    ['n1', 'n2'],
  )
  t.strictSame([[...done], [...failed.keys()]], [['n1'], ['n2']])
  t.strictSame(of.present(), ['10.244.2.0/24 10.0.0.12', ...there.map((one) => `${one.destination} ${one.gateway}`)])
})

t.test('nodes of every range join and go, and no route is left behind', async (t) => {
  const of = await open(t)
  const ranges = ['10.244.1.0/24', '10.245.1.0/24', '10.244.0.0/15', '192.168.0.0/24', '10.243.255.0/24']
  for (const podCidr of ranges) {
    await of.run([routed(1, { podCidrs: [podCidr] })])
    await of.run([routed(2)])
    t.strictSame(of.present(), ['10.244.2.0/24 10.0.0.12'], podCidr)
  }
})

t.test('without a cluster CIDR nothing is touched', async (t) => {
  const of = await open(t, {
    account: { networks: [network([{ destination: '10.244.1.0/24', gateway: '10.0.0.99' }])], servers: [] },
  })
  await of.run([routed(1)], [])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.99'])
})

t.test('in a cluster of IPv6 alone no node waits for routes, and no route is anybody’s', async (t) => {
  const of = await open(t, {
    account: { networks: [network([{ destination: '10.244.1.0/24', gateway: '10.0.0.99' }])], servers: [server(1)] },
  })
  const { routed: done, failed } = await of.run([routed(1, { podCidrs: ['fd00:10:0:1::/64'] })], ['fd00:10::/48'])
  t.strictSame([[...done], [...failed]], [['n1'], []])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.99'])
})

t.test('a route that leads nowhere, since the server has left the network, goes', async (t) => {
  const route = { destination: '10.244.1.0/24', gateway: '10.0.0.11' }
  const of = await open(t, {
    account: { networks: [network([route])], servers: [{ id: 1, name: 'w1' }, server(2)] },
  })
  const { failed, routed: done } = await of.run([routed(1), routed(2)])
  t.match(failed.get('n1'), { kind: 'transient', message: /not attached/ })
  t.strictSame([...done], ['n2'])
  t.strictSame(of.present(), ['10.244.2.0/24 10.0.0.12'])

  of.simulator.control.mutate({ servers: [{ id: 1, set: { private_net: [{ network: 'net', ip: '10.0.0.11' }] } }] })
  // The list of before is still young: what it says takes no route away.
  of.simulator.control.mutate({
    networks: [{ name: 'net', set: { routes: [route] } }],
  })
  await of.run([routed(1)])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11'])
})

t.test('one route that is refused stops no other', async (t) => {
  const of = await open(t)
  of.simulator.control.fault({
    match: 'POST /networks/{id}/actions/add_route',
    kind: 'error',
    code: 'invalid_input',
    message: 'no',
  })
  const { failed, routed: done } = await of.run([routed(1), routed(2)])
  t.match(failed.get('n1'), { kind: 'permanent', message: /add route 10.244.1.0\/24/ })
  t.strictSame([...done], ['n2'])
})

t.test('routes do not wait one after the other for an API from which nothing comes', async (t) => {
  const http = new HttpClient()
  const hasty: Http = {
    request: (request) => http.request({ ...request, timeoutMs: 200 }),
    close: () => http.close(),
  }
  t.teardown(() => hasty.close())
  const of = await open(t, { provider: { http: hasty } })
  of.simulator.control.fault({ path: 'add_route', kind: 'timeout', times: -1 })
  await t.rejects(of.run([routed(1), routed(2)]), { kind: 'transient', message: /no answer/ })
  t.equal(of.calls()['POST /networks/{id}/actions/add_route'], 1)
  of.simulator.control.fault({ clear: true })
  await of.run([routed(1), routed(2)])
  t.equal(of.present().length, 2)
})

t.test('a network that is busy is waited for, and is no failure', async (t) => {
  const of = await open(t, {
    account: {
      networks: [network([{ destination: '10.244.77.0/24', gateway: '10.0.0.98' }])],
      servers: [server(1), server(2)],
    },
  })
  const { control } = of.simulator
  for (const action of ['add_route', 'delete_route'])
    control.fault({ match: `POST /networks/{id}/actions/${action}`, kind: 'locked', times: 4 })
  const { failed, leftOver, routed: done } = await of.run([routed(1), routed(2)])
  t.match(failed.get('n1'), { kind: 'throttled' })
  t.match(leftOver, [{ kind: 'throttled' }])
  t.strictSame([...done], ['n2'])
  await of.run([routed(1), routed(2)])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11', '10.244.2.0/24 10.0.0.12'])
})

t.test('nodes of other clouds or of nobody get no route, and keep those that somebody made to them', async (t) => {
  const made = { destination: '10.244.7.0/24', gateway: '10.0.0.12' }
  const of = await open(t, {
    account: {
      networks: [network([made, { destination: '10.244.8.0/24', gateway: '10.0.0.12' }])],
      servers: [server(1), server(2)],
    },
  })
  const others = ['aws:///eu/i-1', 'cherryservers://9', 'k3s://edge'].map((providerId, i) =>
    routed(7 + 10 * i, { providerId, addresses: [{ type: 'InternalIP', address: '192.168.1.1' }] }),
  )
  const { failed, routed: done } = await of.run([routed(1), ...others])
  t.strictSame([[...done], [...failed.keys()]], [['n1'], []])
  t.strictSame(of.present(), ['10.244.1.0/24 10.0.0.11', `${made.destination} ${made.gateway}`])
})

t.test('nodes that can have no route are told why', async (t) => {
  const of = await open(t)
  const { failed } = await of.run([
    routed(1, { providerId: undefined }),
    routed(2, { addresses: [] }),
    node('metal', { providerId: 'hrobot://3', podCidrs: ['10.244.3.0/24'] }),
  ])
  t.match(failed.get('n1'), { message: /no provider id, and no server its name/ })
  t.match(failed.get('n2'), { message: /10.0.0.12 is not among its addresses/ })
  t.match(failed.get('metal'), { kind: 'permanent', message: /only supported for cloud servers/ })
})
