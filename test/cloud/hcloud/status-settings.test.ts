import t from 'tap'
import { desire } from '../../../src/cloud/hcloud/load-balancers/desire.ts'
import { ingressOf } from '../../../src/cloud/hcloud/load-balancers/status.ts'
import type { LoadBalancer } from '../../../src/cloud/hcloud/model.ts'
import type { HcloudLoadBalancerDefaults } from '../../../src/config/types.ts'
import { defaults, nodes, service } from './bench.ts'

const [FOUR, SIX, INSIDE] = ['192.0.2.1', '2001:db8::1', '10.0.0.2'] as const

const balancer = (isPublic: boolean, inNetwork: boolean): LoadBalancer => ({
  id: 7,
  name: 'web',
  labels: {},
  publicNet: { enabled: isPublic, ipv4: FOUR, ipv6: SIX },
  privateNets: inNetwork ? [{ network: 5, ip: INSIDE }] : [],
  type: { id: 1, name: 'lb11', maxTargets: 25, maxServices: 5 },
  algorithm: 'round_robin',
  listeners: [],
  targets: [],
  deleteProtected: false,
})

type Switch = 'ipv6-disabled' | 'disable-private-ingress' | 'uses-proxyprotocol'

/** The status as one line: what is listed, and how kube-proxy is to treat it. */
function statusOf(
  lb: LoadBalancer,
  annotations: Record<string, string>,
  settings: Partial<HcloudLoadBalancerDefaults> = {},
): string {
  const options = { defaults: { ...defaults, ...settings }, hasNetwork: true, robotEnabled: false }
  const { desired } = desire(service(annotations), nodes(1), options)
  return ingressOf(lb, desired.ingress)
    .map(({ ip, hostname, ipMode }) => `${hostname ?? ip} ${ipMode ?? '-'}`)
    .join(', ')
}

// What tools such as external-dns publish hangs on this table: another row for the same settings is a breaking change.
const TABLE: [network: 'public' | 'both' | 'inside', on: Switch[], expected: string][] = [
  ['public', [], `${FOUR} VIP, ${SIX} VIP`],
  ['public', ['ipv6-disabled'], `${FOUR} VIP`],
  ['public', ['disable-private-ingress'], `${FOUR} VIP, ${SIX} VIP`],
  ['public', ['uses-proxyprotocol'], `${FOUR} Proxy, ${SIX} Proxy`],
  ['both', [], `${FOUR} VIP, ${SIX} VIP, ${INSIDE} VIP`],
  ['both', ['ipv6-disabled'], `${FOUR} VIP, ${INSIDE} VIP`],
  ['both', ['disable-private-ingress'], `${FOUR} VIP, ${SIX} VIP`],
  ['both', ['ipv6-disabled', 'disable-private-ingress'], `${FOUR} VIP`],
  ['both', ['ipv6-disabled', 'uses-proxyprotocol'], `${FOUR} Proxy, ${INSIDE} Proxy`],
  ['both', ['ipv6-disabled', 'disable-private-ingress', 'uses-proxyprotocol'], `${FOUR} Proxy`],
  ['inside', [], `${INSIDE} VIP`],
  ['inside', ['ipv6-disabled'], `${INSIDE} VIP`],
  ['inside', ['disable-private-ingress'], ''],
  ['inside', ['uses-proxyprotocol'], `${INSIDE} Proxy`],
]

const SETTINGS: Record<Switch, Partial<HcloudLoadBalancerDefaults>> = {
  'ipv6-disabled': { disableIpv6: true },
  'disable-private-ingress': { disablePrivateIngress: true },
  'uses-proxyprotocol': { usesProxyProtocol: true },
}

for (const [network, on, expected] of TABLE)
  t.test(`${network}, ${on.join(' and ') || 'nothing asked for'}`, async (t) => {
    const lb = balancer(network !== 'inside', network !== 'public')
    const annotations = Object.fromEntries(on.map((name) => [name, 'true']))
    t.equal(statusOf(lb, annotations), expected, 'by annotations')
    const settings = Object.assign({}, ...on.map((name) => SETTINGS[name]))
    t.equal(statusOf(lb, {}, settings), expected, 'by settings')
    const off = Object.fromEntries(on.map((name) => [name, 'false']))
    t.equal(statusOf(lb, off, settings), statusOf(lb, {}), 'an annotation goes before its setting')
    t.equal(statusOf(lb, { ...annotations, hostname: 'lb.example' }), 'lb.example -', 'a name stands alone')
  })
