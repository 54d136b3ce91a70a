import t from 'tap'
import { ANNOTATIONS } from '../../../src/cloud/hcloud/load-balancers/annotations.ts'
import { bench, nodes, PREFIX, service } from './bench.ts'

const ACCOUNT = {
  networks: [
    {
      id: 500,
      name: 'net',
      ip_range: '10.0.0.0/8',
      subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'eu-central' }],
    },
  ],
  servers: [1, 2].map((id) => ({ id, name: `w${id}`, private_net: [{ network: 'net', ip: `10.0.0.1${id}` }] })),
  certificates: [{ id: 701, name: 'cert-a' }],
}

const http = { protocol: 'http' }
const https = { protocol: 'https', 'http-certificates': 'cert-a' }
const checked = { 'health-check-protocol': 'http' }
const isPrivate = { 'use-private-ip': 'true' }

/** A value of each annotation that is not its default, with what it needs beside it to mean anything. */
const SETTINGS: Record<string, string>[] = [
  { name: 'chosen' },
  { type: 'lb21' },
  { 'algorithm-type': 'least_connections' },
  { 'node-selector': 'pool' },
  { ...isPrivate, 'disable-public-network': 'true' },
  isPrivate,
  { 'private-ipv4': '10.0.0.100' },
  { 'private-subnet-ip-range': '10.0.0.0/24' },
  { 'disable-private-ingress': 'true' },
  { 'ipv6-disabled': 'true' },
  { hostname: 'lb.example.com' },
  { 'ipv4-rdns': 'a.example.com' },
  { 'ipv6-rdns': 'b.example.com' },
  http,
  https,
  { 'uses-proxyprotocol': 'true' },
  { ...http, 'http-cookie-name': 'STICK' },
  { ...http, 'http-cookie-lifetime': '10m' },
  { ...http, 'http-timeout-idle': '300s' },
  { ...http, 'http-sticky-sessions': 'true' },
  { ...https, 'http-redirect-http': 'true' },
  { protocol: 'https', 'certificate-type': 'managed', 'http-managed-certificate-domains': 'example.com' },
  { 'health-check-protocol': 'https' },
  { 'health-check-port': '9000' },
  { 'health-check-interval': '7s' },
  { 'health-check-timeout': '5s' },
  { 'health-check-retries': '5' },
  { ...checked, 'health-check-http-domain': 'health.example.com' },
  { ...checked, 'health-check-http-path': '/up' },
  { ...checked, 'health-check-http-validate-certificate': 'true' },
  { ...checked, 'http-status-codes': '200, 301' },
  { location: 'hel1' },
]

/** Read in other tests, or without effect on a load balancer that stands. */
const ELSEWHERE = [
  'network-zone',
  'http-managed-certificate-name',
  'http-managed-certificate-acme-staging',
  'ipv4',
  'ipv6',
  'id',
]

/** One annotation can't have two values. */
const contradict = (one: Record<string, string>, other: Record<string, string>) =>
  Object.entries(one).some(([name, value]) => other[name] !== undefined && other[name] !== value)

t.test('the pairs cover the table of annotations', async (t) => {
  const covered = new Set([...SETTINGS.flatMap((one) => Object.keys(one)), ...ELSEWHERE])
  for (const name of Object.keys(ANNOTATIONS)) t.ok(covered.has(name.replace(PREFIX, '')), name)
})

t.test(
  'every pair of annotations is brought about at once, leaves nothing to do, and goes without a trace',
  async (t) => {
    const of = await bench({
      account: ACCOUNT,
      settings: { network: 'net', networkRoutesEnabled: false },
      options: { action_ms: 0, certificate_ms: 0 },
    })
    t.teardown(() => of.close())
    const targets = nodes(1, 2).map((one) => (one.name === 'w2' ? { ...one, labels: { pool: 'x' } } : one))
    const wrong: string[] = []
    let pairs = 0
    for (const [i, one] of SETTINGS.entries())
      for (const other of SETTINGS.slice(i + 1)) {
        if (contradict(one, other)) continue
        of.simulator.control.reset()
        of.simulator.control.seed(ACCOUNT)
        const both = { ...one, ...other }
        const wanted = service(both)
        const { faults } = await of.ensure(wanted, targets)
        const left = await of.plan(wanted, targets)
        await of.remove(wanted)
        const { load_balancers = [], certificates = [] } = of.simulator.control.state()
        const traces = load_balancers.length + certificates.length - ACCOUNT.certificates.length
        if (faults.length > 0 || left.length > 0 || traces > 0)
          wrong.push(`${JSON.stringify(both)}: ${[...faults.map(String), ...left].join('; ')} ${traces} left behind`)
        pairs++
      }
    t.same(wrong, [], `${pairs} pairs`)
  },
)
