import t from 'tap'
import { type Desired, desire } from '../../../src/cloud/hcloud/load-balancers/desire.ts'
import type { HcloudLoadBalancerDefaults } from '../../../src/config/types.ts'
import { defaults, node, nodes, service, UID } from './bench.ts'

const desired = (
  annotations: Record<string, string>,
  more: { defaults?: Partial<HcloudLoadBalancerDefaults>; hasNetwork?: boolean; robotEnabled?: boolean } = {},
) =>
  desire(service(annotations), nodes(1), {
    defaults: { ...defaults, ...more.defaults },
    hasNetwork: more.hasNetwork ?? true,
    robotEnabled: more.robotEnabled ?? false,
  })

t.test('the health check follows the table of the specification', async (t) => {
  const interval = { healthCheckIntervalMs: 21_000 }
  const http = { domain: '', path: '/', response: '', statusCodes: ['2??', '3??'], tls: false }
  const cases: [string, Record<string, string>, Partial<HcloudLoadBalancerDefaults>, object][] = [
    ['tcp', {}, {}, { protocol: 'tcp', port: 30080 }],
    ['http', { protocol: 'http' }, {}, { protocol: 'tcp', port: 30080 }],
    ['path alone', { protocol: 'http', 'health-check-http-path': '/up' }, {}, { protocol: 'tcp', port: 30080 }],
    [
      'path, and an interval by setting',
      { protocol: 'http', 'health-check-http-path': '/up' },
      interval,
      { protocol: 'http', port: 30080, interval: 21, http: { ...http, path: '/up' } },
    ],
    [
      'https is http with TLS',
      { protocol: 'https', 'http-certificates': '1', 'health-check-interval': '9s' },
      {},
      { protocol: 'http', interval: 9, http: { ...http, tls: true } },
    ],
    ['https on its own', { 'health-check-protocol': 'https' }, {}, { protocol: 'http', http: { ...http, tls: true } }],
    ['a port', { protocol: 'http', 'health-check-port': '9000' }, {}, { protocol: 'http', port: 9000 }],
    [
      'zero by setting counts as unset',
      { protocol: 'http' },
      { healthCheckIntervalMs: 0, healthCheckRetries: 0 },
      { protocol: 'tcp', interval: 15, retries: 3 },
    ],
    ['annotations before settings', { 'health-check-interval': '5' }, interval, { interval: 5 }],
  ]
  for (const [name, annotations, settings, expected] of cases) {
    const { desired: wanted, faults } = desired(annotations, { defaults: settings })
    t.strictSame(faults, [], name)
    t.match(wanted.listeners[0]?.healthCheck, expected, name)
  }
})

t.test('a location goes before a zone, and an empty one cancels the setting', async (t) => {
  const cases: [Record<string, string>, Partial<HcloudLoadBalancerDefaults>, Desired['placement']][] = [
    [{}, { location: 'fsn1' }, { location: 'fsn1' }],
    [{ 'network-zone': 'us-east' }, { location: 'fsn1' }, { location: 'fsn1' }],
    [{ 'network-zone': 'us-east', location: '' }, { location: 'fsn1' }, { networkZone: 'us-east' }],
    [{ location: 'hel1' }, { location: undefined, networkZone: 'eu-central' }, { location: 'hel1' }],
    [{}, { location: undefined }, {}],
  ]
  for (const [annotations, settings, expected] of cases)
    t.strictSame(desired(annotations, { defaults: settings }).desired.placement, expected)
})

t.test('what does not fit together is a fault before anything is made', async (t) => {
  const cases: [Record<string, string>, RegExp, boolean?][] = [
    [{ 'use-private-ip': 'true' }, /needs a network/, false],
    [{ protocol: 'https' }, /needs a certificate/],
    [{ 'http-certificates': 'cert-a' }, /http-certificates needs .*protocol "https"/],
    [{ 'certificate-type': 'managed', protocol: 'https' }, /has no domains/],
    [{ protocol: 'http', 'http-redirect-http': 'true' }, /http-redirect-http needs/],
    [{ 'http-sticky-sessions': 'true' }, /http-sticky-sessions needs/],
  ]
  for (const [annotations, expected, hasNetwork] of cases) {
    const { faults } = desired(annotations, { hasNetwork: hasNetwork ?? true })
    t.equal(faults.length, 1)
    t.match(faults[0], expected)
  }
})

t.test('a fault in what nothing looks at is no more than a note', async (t) => {
  const { faults, notes } = desired({ 'http-status-codes': 'ok', 'private-ipv4': 'x' }, { hasNetwork: false })
  t.strictSame(faults, [])
  t.strictSame(
    notes.map(({ reason }) => reason),
    ['AnnotationIgnored', 'AnnotationIgnored'],
  )
})

t.test('ports that are not TCP, or have no node port, get no listener', async (t) => {
  const udp = desire(
    service(
      {},
      {
        ports: [
          { port: 53, nodePort: 30053, protocol: 'UDP' },
          { port: 80, nodePort: 30080 },
        ],
      },
    ),
    [],
    {
      defaults,
      hasNetwork: false,
      robotEnabled: false,
    },
  )
  t.strictSame(
    udp.desired.listeners.map(({ listenPort }) => listenPort),
    [80],
  )
  t.match(udp.notes, [{ reason: 'UnsupportedProtocolConfigured', message: /port 53/ }])
  const bare = desire(service({}, { ports: [{ port: 80 }] }), [], { defaults, hasNetwork: false, robotEnabled: false })
  t.match(bare.faults, [/port 80 has no node port/])
})

t.test('the names of what is made come from the uid', async (t) => {
  const { desired: wanted } = desired({
    protocol: 'https',
    'certificate-type': 'managed',
    'http-managed-certificate-domains': 'a.b, c.d',
  })
  t.strictSame(wanted.certificates, {
    kind: 'managed',
    name: `ccm-managed-certificate-${UID}`,
    domains: ['a.b', 'c.d'],
    staging: false,
  })
  t.equal(wanted.name, undefined)
})

t.test('targets are the nodes that the selector takes, by kind and number, each once', async (t) => {
  const all = [
    node('w2', { providerId: 'hcloud://2', labels: { pool: 'a' } }),
    node('w1', { providerId: 'hcloud://1', labels: { pool: 'a' } }),
    node('r1', {
      providerId: 'hrobot://1',
      labels: { pool: 'a' },
      addresses: [{ type: 'InternalIP', address: '10.1.0.5' }],
    }),
    node('old', { providerId: 'hcloud://bm-2', labels: { pool: 'a' } }),
    node('b', { providerId: 'hcloud://3', labels: { pool: 'b' } }),
    node('joining', { labels: { pool: 'a' } }),
    node('aws', { providerId: 'aws:///x', labels: { pool: 'a' } }),
    node('odd', { providerId: 'hcloud://x', labels: { pool: 'a' } }),
  ]
  const options = { defaults, hasNetwork: true, robotEnabled: true }
  const { desired: wanted, notes } = desire(
    service({ 'node-selector': 'pool=a', 'use-private-ip': 'true' }),
    all,
    options,
  )
  t.strictSame(wanted.targets, [
    { kind: 'cloud', node: 'w1', id: 1 },
    { kind: 'cloud', node: 'w2', id: 2 },
    { kind: 'robot', node: 'r1', number: 1, internalIp: '10.1.0.5' },
    { kind: 'robot', node: 'old', number: 2 },
  ])
  t.strictSame(
    notes.map(({ reason, node: name }) => [reason, name]),
    [
      ['UnknownProviderIDPrefix', 'aws'],
      ['MalformedProviderID', 'odd'],
    ],
  )
  const without = desire(service({}), all, { ...options, robotEnabled: false })
  t.strictSame(
    without.desired.targets.map(({ node: name }) => name),
    ['w1', 'w2', 'b'],
  )
})

t.test('annotations that nothing looks at beside others may be anything', async (t) => {
  const cases: [Record<string, string>, number][] = [
    [{ 'ipv6-disabled': 'x', 'disable-private-ingress': 'x' }, 2],
    [{ 'ipv6-disabled': 'x', 'disable-private-ingress': 'x', hostname: 'lb.example.com' }, 0],
    [{ 'private-ipv4': 'x' }, 1],
    [{ 'http-certificates': ',', protocol: 'https' }, 1],
  ]
  for (const [annotations, count] of cases)
    t.equal(desired(annotations).faults.length, count, JSON.stringify(annotations))
  t.strictSame(desired({ 'private-ipv4': 'x' }, { hasNetwork: false }).faults, [])
})

t.test('the staging switch takes what Go takes for true, and everything else for false', async (t) => {
  const managed = {
    protocol: 'https',
    'certificate-type': 'managed',
    'http-managed-certificate-domains': 'a.example',
  }
  for (const [text, staging] of Object.entries({ true: true, T: true, 1: true, false: false, yes: false, '': false }))
    t.match(
      desired({ ...managed, 'http-managed-certificate-acme-staging': text }).desired.certificates,
      { staging },
      text,
    )
})
