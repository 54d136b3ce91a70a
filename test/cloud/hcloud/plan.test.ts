import t from 'tap'
import { planLoadBalancer, type Wanted } from '../../../src/cloud/hcloud/load-balancers/plan.ts'
import type { CloudServerId, Listener, LoadBalancer, Target } from '../../../src/cloud/hcloud/model.ts'
import { UID } from './bench.ts'

const TYPE = { id: 1, name: 'lb11', maxTargets: 4, maxServices: 2 }
const BIG = { id: 2, name: 'lb21', maxTargets: 8, maxServices: 4 }

const listener = (listenPort: number, destinationPort = 30_000 + listenPort): Listener => ({
  protocol: 'tcp',
  listenPort,
  destinationPort,
  proxyProtocol: false,
  healthCheck: { protocol: 'tcp', port: destinationPort, interval: 15, timeout: 10, retries: 3 },
})

const server = (id: number, usePrivateIp = false) =>
  ({ type: 'server', server: id as CloudServerId, usePrivateIp }) as const
const ip = (address: string) => ({ type: 'ip', ip: address }) as const
const resolved = (target: Exclude<Target, { type: 'other' }>) => ({
  node: target.type === 'ip' ? `r${target.ip}` : `w${target.server}`,
  target,
})

const observed = (more: Partial<LoadBalancer> = {}): LoadBalancer => ({
  id: 7,
  name: 'web',
  labels: { 'hcloud-ccm/service-uid': UID },
  publicNet: { enabled: true, ipv4: '192.0.2.1', ipv4DnsPtr: 'static.example', ipv6: '2001:db8::1' },
  privateNets: [],
  type: TYPE,
  algorithm: 'round_robin',
  listeners: [listener(80)],
  targets: [server(1)],
  deleteProtected: false,
  ...more,
})

const wanted = (more: Partial<Wanted> = {}): Wanted => ({
  uid: UID,
  defaultName: 'a1',
  rdns: {},
  attachment: {},
  placement: {},
  usePrivateIp: false,
  listeners: [listener(80)],
  targets: [resolved(server(1))],
  targetsOpen: false,
  unusable: new Map(),
  ...more,
})

const steps = (want: Partial<Wanted>, seen: Partial<LoadBalancer> = {}) =>
  planLoadBalancer(wanted(want), observed(seen)).changes.map(({ summary }) => summary)

t.test('nothing is planned for what is as it should be', async (t) => {
  t.strictSame(steps({}), [])
})

t.test('a new node is one change', async (t) => {
  t.strictSame(steps({ targets: [resolved(server(1)), resolved(server(2))] }), [
    'add node w2 (server 2, public) as a target',
  ])
})

t.test('new targets come before old ones go, as far as there is room', async (t) => {
  t.strictSame(steps({ targets: [resolved(server(2))] }), [
    'add node w2 (server 2, public) as a target',
    'remove target server 1, public',
  ])
  const full = { targets: [server(1), server(2), server(3), server(4)] }
  t.strictSame(steps({ targets: [1, 2, 5, 6].map((id) => resolved(server(id))) }, full), [
    'remove target server 3, public',
    'add node w5 (server 5, public) as a target',
    'remove target server 4, public',
    'add node w6 (server 6, public) as a target',
  ])
})

t.test('what takes a target away says so', async (t) => {
  const { changes } = planLoadBalancer(wanted({ targets: [] }), observed())
  t.strictSame(
    changes.map(({ withdraws }) => withdraws),
    [true],
  )
  const moved = planLoadBalancer(
    wanted({ network: 5, usePrivateIp: true, targets: [resolved(server(1, true))] }),
    observed({ privateNets: [{ network: 5, ip: '10.0.0.2' }] }),
  )
  t.notOk(
    moved.changes.some(({ withdraws }) => withdraws),
    'a change of address is not a withdrawal',
  )
})

t.test('a full load balancer keeps the targets that it has, and names the nodes left out', async (t) => {
  const { changes, notes, faults } = planLoadBalancer(
    wanted({ targets: [1, 2, 3, 4, 5].map((id) => resolved(server(id))) }),
    observed({ targets: [server(2), server(3), server(5), { type: 'other' }] }),
  )
  t.strictSame([changes, faults], [[], []])
  t.strictSame(
    notes.map(({ reason, node }) => [reason, node]),
    [
      ['MaxTargetsReached', 'w1'],
      ['MaxTargetsReached', 'w4'],
    ],
  )
})

t.test('targets of kinds that are not ours stay', async (t) => {
  t.strictSame(steps({ targets: [] }, { targets: [{ type: 'other' }] }), [])
})

t.test('while Robot does not answer, no ip target is removed', async (t) => {
  t.strictSame(steps({ targets: [], targetsOpen: true }, { targets: [ip('203.0.113.9'), server(1)] }), [
    'remove target server 1, public',
  ])
})

t.test('a node that the API would refuse is left out with an Event and a fault, and the others join', async (t) => {
  const { changes, notes, faults } = planLoadBalancer(
    wanted({
      targets: [1, 2, 3].map((id) => resolved(server(id))),
      unusable: new Map([
        [2 as CloudServerId, { code: 'missing_ipv4', reason: 'server 2 has no public IPv4 address' }],
      ]),
    }),
    observed(),
  )
  t.strictSame(
    changes.map(({ summary }) => summary),
    ['add node w3 (server 3, public) as a target'],
  )
  t.match(notes, [{ reason: 'TargetRefused', node: 'w2' }])
  t.match(faults, [{ kind: 'permanent', code: 'missing_ipv4' }])
})

t.test('going private: the network first, then targets one by one, the interface last', async (t) => {
  const want = {
    network: 5,
    usePrivateIp: true,
    publicInterface: false,
    targets: [resolved(server(1, true)), resolved(server(2, true))],
  }
  t.strictSame(steps(want, { targets: [server(1), server(2)] }), [
    'note settings in labels',
    'attach to network 5',
    'remove target server 1, public',
    'add node w1 (server 1, private) as a target',
    'remove target server 2, public',
    'add node w2 (server 2, private) as a target',
    'switch the public interface off',
  ])
})

t.test('going public: the interface first, the network last', async (t) => {
  const seen = {
    labels: { 'hcloud-ccm/service-uid': UID, 'windlass/own-settings': 'public-network' },
    publicNet: { enabled: false },
    privateNets: [{ network: 5, ip: '10.0.0.2' }],
    targets: [server(1, true)],
  }
  t.strictSame(steps({}, seen), [
    'switch the public interface on',
    'remove target server 1, private',
    'add node w1 (server 1, public) as a target',
    'detach from network 5 (10.0.0.2)',
    'note settings in labels',
  ])
})

t.test('another private address: detach, attach, and the targets that went with it', async (t) => {
  const seen = { privateNets: [{ network: 5, ip: '10.0.0.2' }], targets: [server(1, true)] }
  const want = { network: 5, usePrivateIp: true, attachment: { ip: '10.0.0.9' }, targets: [resolved(server(1, true))] }
  t.strictSame(steps(want, seen), [
    'detach from network 5 (10.0.0.2)',
    'attach to network 5 as 10.0.0.9',
    'add node w1 (server 1, private) as a target',
  ])
  t.strictSame(steps({ ...want, attachment: {} }, seen), [], 'an address that is no longer asked for stays')
  t.strictSame(
    steps({ ...want, attachment: { ipRange: '10.9.0.0/24' } }, seen),
    [],
    'a subnet is chosen only when attaching',
  )
})

t.test('a bigger type comes before what needs its room, a smaller one after', async (t) => {
  const two = [listener(80), listener(443), listener(8080)]
  t.strictSame(steps({ type: BIG, listeners: two }), [
    'change the type from lb11 to lb21',
    'add listener tcp 443 to node port 30443',
    'add listener tcp 8080 to node port 38080',
  ])
  t.strictSame(steps({ type: TYPE, listeners: [listener(80)] }, { type: BIG, listeners: two }), [
    'delete listener tcp 443',
    'delete listener tcp 8080',
    'change the type from lb21 to lb11',
  ])
})

t.test('listeners make room one by one, and what has none is a fault', async (t) => {
  const seen = { listeners: [listener(80), listener(443)] }
  t.strictSame(steps({ listeners: [listener(80, 31_000), listener(8443)] }, seen), [
    'update listener tcp 80',
    'delete listener tcp 443',
    'add listener tcp 8443 to node port 38443',
  ])
  const { faults } = planLoadBalancer(
    wanted({ listeners: [80, 443, 1, 2].map((port) => listener(port)) }),
    observed(seen),
  )
  t.match(faults, [{ kind: 'permanent', message: /ports 1, 2 have no listener/ }])
})

t.test('what was ours goes back to its default; what nobody asked for stays', async (t) => {
  const adopted = {
    algorithm: 'least_connections',
    publicNet: { enabled: true, ipv4: '192.0.2.1', ipv4DnsPtr: 'mine.example.com' },
  }
  t.strictSame(steps({}, adopted), [])
  const ours = { ...adopted, labels: { 'hcloud-ccm/service-uid': UID, 'windlass/own-settings': 'algorithm.ipv4-rdns' } }
  t.strictSame(steps({}, ours), [
    'change the algorithm from least_connections to round_robin',
    'give the reverse DNS of 192.0.2.1 back',
    'note settings in labels',
  ])
  t.strictSame(steps({ algorithm: 'least_connections', rdns: { ipv4: 'MINE.example.com.' } }, ours), [])
})

t.test('an adopted load balancer gets its owner, and keeps its other labels', async (t) => {
  const { changes } = planLoadBalancer(
    wanted({ name: 'web' }),
    observed({ labels: { team: 'a', 'windlass/released': 'true' } }),
  )
  t.match(changes, [{ kind: 'update-metadata', labels: { team: 'a', 'hcloud-ccm/service-uid': UID } }])
  t.strictSame(steps({ name: 'new' }), ['rename "web" to "new"'])
})
