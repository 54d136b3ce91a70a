import fc from 'fast-check'
import t from 'tap'
import { announce, withdraw } from '../../../src/cloud/cherry/load-balancers/announcement.ts'
import { poolLabel, poolName } from '../../../src/cloud/cherry/load-balancers/metallb-pools.ts'
import type { Speaker } from '../../../src/cloud/cherry/load-balancers/speakers.ts'
import type { Announcement } from '../../../src/cloud/provider.ts'
import type { BgpPeerMode } from '../../../src/config/cherry-load-balancer.ts'
import { parseSelector, type Selector } from '../../../src/config/selector.ts'
import { Objects } from './objects.ts'

const templates = {
  localAsn: 'cherryservers.com/bgp-peers-{{n}}-node-asn',
  peerAsn: 'cherryservers.com/bgp-peers-{{n}}-peer-asn',
  peerIp: 'cherryservers.com/bgp-peers-{{n}}-peer-ip',
  srcIp: 'cherryservers.com/bgp-peers-{{n}}-src-ip',
  multiHop: 'cherryservers.com/bgp-peers-{{n}}-peer-multi-hop',
  fipRegion: 'cherryservers.com/fip-region',
}

const web = { namespace: 'default', name: 'web' }
const api = { namespace: 'default', name: 'api' }

const speaker = (node: string, more: Partial<Speaker> = {}): Speaker => ({
  node,
  hostname: node,
  region: 'LT-Siauliai',
  localAsn: 65432,
  peerAsn: 16125,
  peers: ['188.214.132.44', '188.214.132.43'],
  sourceIp: `5.199.160.${node.length}`,
  ...more,
})

interface Given {
  service?: typeof web
  addresses?: string[]
  speakers?: Speaker[]
  unknown?: string[]
  mode?: BgpPeerMode
  selector?: Selector
}

const balancer = (bgpPeerMode: BgpPeerMode) => ({ kind: 'metallb', namespace: 'metallb-system', bgpPeerMode }) as const

const announced = (given: Given = {}, named = templates): Announcement =>
  announce({
    balancer: balancer(given.mode ?? 'native'),
    templates: named,
    selector: given.selector ?? [],
    service: given.service ?? web,
    serviceAnnotations: {},
    addresses: given.addresses ?? ['5.199.171.1'],
    speakers: given.speakers ?? [speaker('w1'), speaker('w2')],
    unknown: new Set(given.unknown ?? []),
  })

const withdrawn = (service = web, mode: BgpPeerMode = 'native') => withdraw(balancer(mode), service, {})

const nodes = (...names: string[]) => {
  const objects = new Objects()
  for (const name of names) objects.addNode(name, `cherryservers://${name.length}`)
  return objects
}

t.test('a Service has a pool of its own, is advertised, and every node has a peer for each router', async (t) => {
  const objects = nodes('w1', 'w2')
  objects.apply(announced())
  t.match(objects.spec('IPAddressPool', 'default.web'), { addresses: ['5.199.171.1/32'], autoAssign: false })
  t.same(objects.labels('IPAddressPool', 'default.web'), {
    'cloud-provider': 'equinix-metal',
    'service-web': 'namespace-default',
  })
  t.same(objects.spec('BGPAdvertisement', 'equinix-metal-bgp-adv'), { ipAddressPools: ['default.web'] })
  t.same(objects.names('BGPPeer'), ['w1-0', 'w1-1', 'w2-0', 'w2-1'])
  t.same(objects.spec('BGPPeer', 'w1-0'), {
    myASN: 65432,
    peerASN: 16125,
    peerAddress: '188.214.132.44',
    peerPort: 179,
    sourceAddress: '5.199.160.2',
    holdTime: '30s',
    nodeSelectors: [
      { matchLabels: { 'kubernetes.io/hostname': 'w1' } },
      {
        matchLabels: {
          'nomatch.cherryservers.com/service-name': 'web',
          'nomatch.cherryservers.com/service-namespace': 'default',
        },
      },
    ],
  })
  t.same(objects.apply(announced()), [], 'and then nothing is left to do')
})

t.test('the annotations number peers by their addresses as text, and name no key of others', async (t) => {
  const objects = nodes('w1')
  objects.annotate('w1', { other: 'kept', 'cherryservers.com/bgp-peers-2-peer-ip': 'stale' })
  objects.apply(announced({ speakers: [speaker('w1', { peers: ['10.0.0.9', '10.0.0.10'] })] }))
  t.match(objects.annotations('w1'), {
    other: 'kept',
    'cherryservers.com/bgp-peers-0-peer-ip': '10.0.0.10',
    'cherryservers.com/bgp-peers-1-peer-ip': '10.0.0.9',
    'cherryservers.com/bgp-peers-1-src-ip': '5.199.160.2',
  })
  t.notOk('cherryservers.com/bgp-peers-2-peer-ip' in objects.annotations('w1'))
  objects.apply(announced({ speakers: [] }))
  t.same(objects.annotations('w1'), { other: 'kept' }, 'a node that takes no part any more loses them')
})

t.test('a template without a place for a number makes one annotation for all peers', async (t) => {
  const objects = nodes('w1')
  const given = { speakers: [speaker('w1')] }
  const own = { ...templates, localAsn: 'example.org/asn', peerIp: 'example.org/peer' }
  objects.apply(announced(given, own))
  t.match(objects.annotations('w1'), { 'example.org/asn': '65432', 'example.org/peer': '188.214.132.44' })
  t.same(objects.apply(announced(given, own)), [])
  objects.annotate('w1', { 'example.org/asn1': 'x' })
  objects.apply(announced({ speakers: [] }, own))
  t.same(objects.annotations('w1'), { 'example.org/asn1': 'x' })
})

t.test('what is not known of a node changes nothing of it', async (t) => {
  const objects = nodes('w1', 'w2')
  objects.apply(announced())
  t.same(objects.apply(announced({ speakers: [speaker('w1')], unknown: ['w2'] })), [])
  objects.apply(announced({ speakers: [speaker('w1')] }))
  t.same(objects.names('BGPPeer'), ['w1-0', 'w1-1'])
})

t.test('another order of the routers renames no session', async (t) => {
  const objects = nodes('w1')
  const given = { speakers: [speaker('w1')] }
  objects.apply(announced(given))
  t.same(objects.apply(announced({ speakers: [speaker('w1', { peers: ['188.214.132.43', '188.214.132.44'] })] })), [])
  objects.apply(announced({ speakers: [speaker('w1', { peers: ['188.214.132.43', '188.214.132.45'] })] }))
  t.equal(objects.spec('BGPPeer', 'w1-1').peerAddress, '188.214.132.43')
  t.equal(objects.spec('BGPPeer', 'w1-0').peerAddress, '188.214.132.45')
})

t.test('a changed source address reaches the peer, and what others set in it stays', async (t) => {
  const objects = nodes('w1')
  objects.apply(announced({ speakers: [speaker('w1')] }))
  objects.edit('BGPPeer', 'w1-0', { bfdProfile: 'fast', holdTime: '90s' })
  objects.apply(announced({ speakers: [speaker('w1', { sourceIp: '5.199.160.99' })] }))
  t.match(objects.spec('BGPPeer', 'w1-0'), { sourceAddress: '5.199.160.99', bfdProfile: 'fast', holdTime: '30s' })
})

t.test(
  'peers of the replaced controller that it never marked are taken over, and go with the last Service',
  async (t) => {
    const objects = nodes('w1')
    const given = { speakers: [speaker('w1')] }
    objects.apply(announced(given))
    objects.edit('BGPPeer', 'w1-0', { nodeSelectors: [{ matchLabels: { 'kubernetes.io/hostname': 'w1' } }] })
    objects.apply(announced({ ...given, service: api, addresses: ['5.199.171.2'] }))
    objects.apply(withdrawn(api))
    t.same(objects.names('BGPPeer'), ['w1-0', 'w1-1'], 'the first Service still uses them')
    objects.apply(withdrawn(web))
    t.same(objects.names('BGPPeer'), [])
  },
)

t.test('a region has its peers once, with several hops', async (t) => {
  const { value: selector = [] } = parseSelector('zone in (b,a),edge,tier=x,tier!=y') as { value?: Selector }
  const objects = nodes('w1', 'w2', 'w3')
  const speakers = [
    speaker('w1'),
    speaker('w2'),
    speaker('w3', { region: 'NL-Amsterdam', peers: ['46.166.166.3'] }),
    speaker('w4', { region: '' }),
    speaker('w5', { region: 'New_Region', peers: ['192.0.2.3'] }),
  ]
  objects.apply(announced({ mode: 'frr', selector, speakers }))
  t.same(objects.names('BGPPeer'), ['lt-siauliai-0', 'lt-siauliai-1', 'new-region-0', 'nl-amsterdam-0'])
  t.match(objects.spec('BGPPeer', 'nl-amsterdam-0'), { ebgpMultiHop: true, sourceAddress: undefined })
  t.same((objects.spec('BGPPeer', 'nl-amsterdam-0').nodeSelectors as unknown[])[0], {
    matchLabels: { 'topology.kubernetes.io/region': 'NL-Amsterdam', tier: 'x' },
    matchExpressions: [
      { key: 'edge', operator: 'Exists' },
      { key: 'tier', operator: 'NotIn', values: ['y'] },
      { key: 'zone', operator: 'In', values: ['a', 'b'] },
    ],
  })
  objects.apply(announced({ mode: 'none', speakers }))
  t.same(objects.names('BGPPeer'), [], 'without a mode there are none')
})

t.test('Services that share an address share its pool', async (t) => {
  const objects = nodes('w1')
  objects.apply(announced())
  objects.apply(announced({ service: api }))
  t.same(objects.names('IPAddressPool'), ['default.web'])
  objects.apply(withdrawn(web))
  t.same(objects.names('IPAddressPool'), ['default.web'])
  objects.apply(withdrawn(api))
  t.same(objects.names('IPAddressPool'), [])
  t.same(objects.names('BGPAdvertisement'), [])
})

t.test('a new address reaches the pool', async (t) => {
  const objects = nodes('w1')
  objects.apply(announced())
  objects.apply(announced({ addresses: ['5.199.171.9', '2001:db8::9'] }))
  t.same(objects.spec('IPAddressPool', 'default.web').addresses, ['5.199.171.9/32', '2001:db8::9/128'])
})

t.test('names too long for a label are hashed', async (t) => {
  const service = { namespace: 'default', name: 'a'.repeat(63) }
  const [key, value] = poolLabel(service)
  t.ok(key.length <= 63 && value.length <= 63)
  t.equal(poolName(service), `default.${'a'.repeat(63)}`)
  const objects = nodes('w1')
  objects.apply(announced({ service }))
  t.same(objects.apply(announced({ service })), [])
  objects.apply(withdrawn(service))
  t.same(objects.names('IPAddressPool'), [])
})

t.test('without MetalLB the nodes are annotated and the fault says what is missing', async (t) => {
  const objects = nodes('w1')
  const { changes, fault } = announced({ speakers: [speaker('w1')] }).plan([objects.all('Node'), undefined, [], []])
  t.equal(changes.length, 1)
  t.match(fault, { kind: 'transient', code: 'no_metallb' })
  t.same(withdrawn().plan([undefined, undefined, undefined]), { changes: [] }, 'and nothing is left behind there')
})

t.test('what others made is never touched', async (t) => {
  const objects = nodes('w1')
  objects.add('BGPPeer', 'w9-0', { peerAddress: '192.0.2.1' }, { 'cloud-provider': 'somebody-else' })
  objects.add('IPAddressPool', 'office', { addresses: ['192.0.2.0/24'] }, {})
  objects.apply(announced())
  objects.apply(withdrawn())
  t.same(objects.names('BGPPeer'), ['w9-0'])
  t.same(objects.names('IPAddressPool'), ['office'])
})

t.test(
  'whatever comes and goes, cut off anywhere: after two more runs each all is right, and in the end nothing is left',
  async () => {
    const services = [web, api, { namespace: 'other', name: 'web' }]
    const names = ['w1', 'w22', 'w333']
    const step = fc.record({
      service: fc.nat(services.length - 1),
      gone: fc.boolean(),
      nodes: fc.subarray(names, { minLength: 1 }),
      mode: fc.constantFrom<BgpPeerMode>('native', 'frr', 'none'),
      cutAfter: fc.nat(6),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), (steps) => {
        const objects = nodes(...names)
        let mode: BgpPeerMode = 'native'
        let speakers: Speaker[] = []
        const live = new Set<number>()
        const run = (i: number, cutAfter?: number) => {
          const service = services[i] ?? web
          const addresses = [`5.199.171.${i + 1}`]
          return objects.apply(
            live.has(i) ? announced({ service, addresses, speakers, mode }) : withdrawn(service, mode),
            cutAfter,
          )
        }
        for (const { service, gone, nodes, mode: next, cutAfter } of steps) {
          mode = next
          speakers = nodes.map((name) => speaker(name))
          if (gone) live.delete(service)
          else live.add(service)
          run(service, cutAfter)
        }
        // Resync. A peer that a Service leaves may be one of the replaced controller, in use though not marked: it goes with the next run.
        for (const i of [...services.keys(), ...services.keys()]) run(i)
        for (const i of services.keys()) if (run(i).length > 0) return false
        const peers = mode === 'none' || live.size === 0 ? 0 : mode === 'frr' ? 2 : 2 * speakers.length
        if (objects.names('IPAddressPool').length !== live.size) return false
        if (steps.length > 0 && objects.names('BGPPeer').length !== peers) return false
        live.clear()
        for (const i of services.keys()) run(i)
        return ['BGPPeer', 'IPAddressPool', 'BGPAdvertisement'].every((kind) => objects.names(kind).length === 0)
      }),
      { numRuns: 300 },
    )
  },
)
