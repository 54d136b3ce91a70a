import t, { type Test } from 'tap'
import type { HcloudLoadBalancerDefaults } from '../../../src/config/types.ts'
import { bench, lbOf, nodes, service } from './bench.ts'

const NETWORK = {
  id: 500,
  name: 'net',
  ip_range: '10.0.0.0/8',
  subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'eu-central' }],
}

async function open(t: Test, loadBalancers: Partial<HcloudLoadBalancerDefaults> = {}) {
  const opened = await bench({
    account: {
      networks: [NETWORK],
      servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.11' }] }],
    },
    settings: { network: 'net', networkRoutesEnabled: false },
    loadBalancers,
  })
  t.teardown(() => opened.close())
  /** The status, with its addresses by what they are: `4 VIP`, `6 VIP`, `private VIP`, or the host name. */
  const shows = async (annotations: Record<string, string>) => {
    const { ingress } = await opened.ensure(service(annotations), nodes(1))
    const { public_net, private_net } = lbOf(opened)
    const names = new Map([
      [public_net.ipv4.ip, '4'],
      [public_net.ipv6.ip, '6'],
      [private_net[0]?.ip, 'private'],
    ])
    return ingress.map(({ ip, hostname, ipMode }) => hostname ?? `${names.get(ip)} ${ipMode}`).join(', ')
  }
  return { shows }
}

t.test('what the status lists follows the annotations, whatever was there before', async (t) => {
  const { shows } = await open(t)
  const all = '4 VIP, 6 VIP, private VIP'
  const golden: [Record<string, string>, string][] = [
    [{}, all],
    [{ 'ipv6-disabled': 'true' }, '4 VIP, private VIP'],
    [{ 'disable-private-ingress': 'true' }, '4 VIP, 6 VIP'],
    [{ 'ipv6-disabled': 'true', 'disable-private-ingress': 'true' }, '4 VIP'],
    [{ 'use-private-ip': 'true' }, all],
    [{ 'use-private-ip': 'true', 'disable-public-network': 'true' }, 'private VIP'],
    [{ 'use-private-ip': 'true', 'disable-public-network': 'true', hostname: 'lb.example.com' }, 'lb.example.com'],
    [{ hostname: 'lb.example.com', 'ipv6-disabled': 'true', 'disable-private-ingress': 'true' }, 'lb.example.com'],
    [{ hostname: 'lb.example.com', 'uses-proxyprotocol': 'true' }, 'lb.example.com'],
    [{ 'uses-proxyprotocol': 'true' }, '4 Proxy, 6 Proxy, private Proxy'],
  ]
  for (const [annotations, status] of [...golden, ...golden.toReversed()])
    t.equal(await shows(annotations), status, JSON.stringify(annotations))
})

t.test(
  'however PROXY protocol is switched on and off, the status says in the same run that nobody may cut it short',
  async (t) => {
    const off: Record<string, string> = { 'ipv6-disabled': 'true', 'disable-private-ingress': 'true' }
    for (const [usesProxyProtocol, otherwise] of [
      [undefined, 'VIP'],
      [false, 'VIP'],
      [true, 'Proxy'],
    ] as const) {
      const { shows } = await open(t, usesProxyProtocol === undefined ? {} : { usesProxyProtocol })
      for (const [annotation, mode] of [
        [undefined, otherwise],
        ['true', 'Proxy'],
        [undefined, otherwise],
        ['false', 'VIP'],
        ['true', 'Proxy'],
        ['false', 'VIP'],
        [undefined, otherwise],
      ] as const)
        t.equal(
          await shows(annotation === undefined ? off : { ...off, 'uses-proxyprotocol': annotation }),
          `4 ${mode}`,
          `${usesProxyProtocol} by default, ${annotation} by annotation`,
        )
    }
  },
)
