import fc from 'fast-check'
import t from 'tap'
import type { LoadBalancerIngress, NodeProjection, ServiceProjection } from '../../../src/events/projection.ts'
import { type Bench, bench, lbOf, nodes, PREFIX, service } from './bench.ts'

const NETWORK = {
  id: 500,
  name: 'net',
  ip_range: '10.0.0.0/8',
  subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'eu-central' }],
}

const ACCOUNT = {
  networks: [NETWORK],
  servers: [1, 2, 3].map((id) => ({ id, name: `w${id}`, private_net: [{ network: 'net', ip: `10.0.0.1${id}` }] })),
  certificates: [
    { id: 701, name: 'cert-a' },
    { id: 702, name: 'cert-b' },
  ],
  load_balancers: [
    {
      name: 'foreign',
      labels: { team: 'a' },
      services: [{ protocol: 'tcp', listen_port: 22, destination_port: 22 }],
      targets: [{ type: 'server', server: 'w1' }],
    },
  ],
}

interface Edit {
  service: ServiceProjection
  nodes: NodeProjection[]
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const bool = fc.constantFrom('true', 'false', 'T', '0')

const health = fc.record({
  'health-check-protocol': optional(fc.constantFrom('tcp', 'http', 'HTTPS')),
  'health-check-port': optional(fc.constantFrom('9000', '9001')),
  'health-check-interval': optional(fc.constantFrom('7s', '12')),
  'health-check-timeout': optional(fc.constantFrom('5s', '1900ms')),
  'health-check-retries': optional(fc.constantFrom('1', '5')),
  'health-check-http-domain': optional(fc.constantFrom('', 'health.example.com')),
  'health-check-http-path': optional(fc.constantFrom('/', '/up')),
  'health-check-http-validate-certificate': optional(bool),
  'http-status-codes': optional(fc.constantFrom('2??', '200, 301')),
})

const http = fc.record({
  'http-cookie-name': optional(fc.constantFrom('STICK', 'OTHER')),
  'http-cookie-lifetime': optional(fc.constantFrom('10m', '60')),
  'http-timeout-idle': optional(fc.constantFrom('30s', '300s')),
  'http-sticky-sessions': optional(bool),
})

const protocol = fc.oneof(
  fc.constant({}),
  fc.constant({ protocol: 'tcp' }),
  http.map((more) => ({ protocol: 'http', ...more })),
  fc
    .tuple(http, fc.constantFrom('cert-a', '702', 'cert-a, cert-b'), optional(bool))
    .map(([more, certificates, redirect]) => ({
      protocol: 'HTTPS',
      'http-certificates': certificates,
      'http-redirect-http': redirect,
      ...more,
    })),
)

const reach = fc.oneof(
  fc.record({
    'use-private-ip': optional(fc.constant('false')),
    'disable-public-network': optional(fc.constant('false')),
  }),
  fc.record({ 'use-private-ip': fc.constant('true'), 'disable-public-network': optional(bool) }),
)

const rest = fc.record({
  type: optional(fc.constantFrom('lb21', 'lb31')),
  'algorithm-type': optional(fc.constantFrom('round_robin', 'Least_Connections')),
  'uses-proxyprotocol': optional(bool),
  'disable-private-ingress': optional(bool),
  'ipv6-disabled': optional(bool),
  hostname: optional(fc.constant('lb.example.com')),
  'ipv4-rdns': optional(fc.constantFrom('a.example.com', 'b.example.com')),
  'ipv6-rdns': optional(fc.constant('c.example.com')),
  'node-selector': optional(fc.constantFrom('', 'pool', '!pool')),
})

const ports = fc
  .uniqueArray(fc.constantFrom(80, 443, 8080, 8443, 9090), { minLength: 1, maxLength: 5 })
  .chain((list) =>
    fc.tuple(
      ...list.map((port) => fc.constantFrom(30_000, 31_000).map((base) => ({ port, nodePort: base + (port % 1000) }))),
    ),
  )

const edit: fc.Arbitrary<Edit> = fc
  .tuple(health, protocol, reach, rest, ports, fc.subarray([1, 2, 3]))
  .map(([...parts]) => {
    const [check, spoken, way, more, list, ids] = parts
    const given: Record<string, string | undefined> = { ...check, ...spoken, ...way, ...more }
    const annotations = Object.fromEntries(
      Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    )
    return {
      service: service(annotations as Record<string, string>, { ports: list }),
      nodes: nodes(...ids).map((one) => (one.name === 'w2' ? { ...one, labels: { pool: 'x' } } : one)),
    }
  })

/** Without what differs by run: ids, times, addresses, and our own note of what we set. */
function plain(of: Bench, ingress: LoadBalancerIngress[]): unknown {
  const {
    id: _,
    created: __,
    labels,
    private_net,
    public_net,
    services,
    targets,
    ...lb
  } = lbOf(of, `a${'1'.repeat(8)}222233334444555555555555`.slice(0, 32)) as ReturnType<typeof lbOf> & {
    created: string
  }
  const { 'windlass/own-settings': ___, ...kept } = labels
  const addresses: [string, string][] = [
    [public_net.ipv4.ip, 'ipv4'],
    [public_net.ipv6.ip, 'ipv6'],
    ...private_net.map(({ ip }): [string, string] => [ip, 'private']),
  ]
  const named = new Map(addresses)
  return {
    ...lb,
    labels: kept,
    private_net: private_net.length,
    public_net: {
      enabled: public_net.enabled,
      dns: [public_net.ipv4.dns_ptr, public_net.ipv6.dns_ptr].map((name) =>
        name?.startsWith('static.') ? null : name,
      ),
    },
    services: services.toSorted((a, b) => a.listen_port - b.listen_port),
    targets: targets.map(({ server, use_private_ip }) => `${server?.id} ${use_private_ip}`).sort(),
    ingress: ingress.map(({ ip, ...entry }) => ({ ...entry, ip: ip === undefined ? undefined : named.get(ip) })),
  }
}

const foreign = (of: Bench) => {
  const { load_balancers, networks, certificates, servers } = of.simulator.control.state() as Record<
    string,
    { name: string }[]
  >
  return JSON.stringify([
    load_balancers?.filter(({ name }) => name === 'foreign'),
    certificates?.map((one) => ({ ...one, used_by: null })),
    networks?.map((one) => ({ ...one, load_balancers: null })),
    servers?.map((one) => ({ ...one, load_balancers: null })),
  ])
}

const open = () =>
  bench({ account: ACCOUNT, settings: { network: 'net', networkRoutesEnabled: false }, options: { action_ms: 0 } })

t.test('any edit leads to where a fresh start leads, and then nothing is left to do', async (t) => {
  const [edited, fresh] = await Promise.all([open(), open()])
  t.teardown(() => Promise.all([edited.close(), fresh.close()]))
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { minLength: 2, maxLength: 3 }), async (edits) => {
      for (const each of [edited, fresh]) {
        each.simulator.control.reset()
        each.simulator.control.seed(ACCOUNT)
      }
      const untouched = foreign(edited)
      let came: LoadBalancerIngress[] = []
      for (const { service, nodes } of edits) came = (await edited.ensure(service, nodes)).ingress
      const last = edits.at(-1) as Edit
      const wanted = (await fresh.ensure(last.service, last.nodes)).ingress
      const left = await edited.plan(last.service, last.nodes)
      if (left.length > 0) throw new Error(`not empty: ${left.join('; ')}`)
      if (JSON.stringify(plain(edited, came)) !== JSON.stringify(plain(fresh, wanted)))
        throw new Error('differs from a fresh start')
      if (foreign(edited) !== untouched) throw new Error('something foreign was changed')
      await edited.remove(last.service)
      if (foreign(edited) !== untouched) throw new Error('something foreign was changed by the deletion')
    }),
    { numRuns: 60, interruptAfterTimeLimit: 6000 },
  )
  t.pass('over all edits that were tried')
})

t.test('annotations that keep their value when removed leave nothing to do either', async (t) => {
  const of = await open()
  t.teardown(() => of.close())
  const kept = fc.record({
    name: optional(fc.constantFrom('one', 'two')),
    'private-ipv4': optional(fc.constantFrom('', '10.0.0.100', '10.0.0.101')),
    'private-subnet-ip-range': optional(fc.constant('10.0.0.0/24')),
    'use-private-ip': optional(bool),
    location: optional(fc.constantFrom('hel1', '')),
    'network-zone': fc.constant('eu-central'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(kept, { minLength: 1, maxLength: 3 }), async (edits) => {
      of.simulator.control.reset()
      of.simulator.control.seed(ACCOUNT)
      for (const annotations of edits) {
        const given = Object.fromEntries(
          Object.entries(annotations).flatMap(([name, value]) =>
            value === undefined ? [] : [[`${PREFIX}${name}`, value]],
          ),
        )
        const wanted = { ...service(), annotations: given as Record<string, string> }
        await of.ensure(wanted, nodes(1, 2))
        const left = await of.plan(wanted, nodes(1, 2))
        if (left.length > 0) throw new Error(`not empty: ${left.join('; ')}`)
      }
    }),
    { numRuns: 30, interruptAfterTimeLimit: 4000 },
  )
  t.pass('over all edits that were tried')
})
