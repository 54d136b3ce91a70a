import t from 'tap'
import { tidy } from '../form/tidy.ts'
import { normalObjects } from './cherry-objects.ts'

const metadata = { name: 'x', namespace: 'metallb-system', labels: { a: 'b' }, uid: 'u', resourceVersion: '1' }

t.test('what equals a default is left out, and sets are sorted', async (t) => {
  const watched = {
    'BGPPeer/metallb-system/x': {
      metadata,
      spec: { myASN: 1, keepaliveTime: '0s', disableMP: false, ebgpMultiHop: true, peerPort: 179 },
    },
    'BGPAdvertisement/metallb-system/x': { metadata, spec: { aggregationLength: 32, ipAddressPools: ['b', 'a'] } },
    'IPAddressPool/metallb-system/x': {
      metadata: { ...metadata, deletionTimestamp: 'now' },
      spec: { addresses: ['5.199.171.1/32', '5.199.171.0/32'], autoAssign: false, avoidBuggyIPs: false },
    },
  }
  t.strictSame(tidy(normalObjects(watched, 6443)), {
    'BGPPeer/metallb-system/x': { labels: { a: 'b' }, spec: { myASN: 1, ebgpMultiHop: true, peerPort: 179 } },
    'BGPAdvertisement/metallb-system/x': { labels: { a: 'b' }, spec: { ipAddressPools: ['a', 'b'] } },
    'IPAddressPool/metallb-system/x': {
      labels: { a: 'b' },
      deleting: true,
      spec: { addresses: ['5.199.171.0/32', '5.199.171.1/32'], autoAssign: false },
    },
  })
})

t.test('the API server’s port has a name, others are shown', async (t) => {
  const port = { name: 'https', protocol: 'TCP', port: 443, targetPort: 41234, nodePort: 30001 }
  const watched = {
    'ServiceSpec/kube-system/x': { spec: { loadBalancerIP: '127.0.0.50', clusterIP: '10.96.0.9', ports: [port] } },
    'Endpoints/kube-system/x': {
      subsets: [{ addresses: [{ ip: '10.0.0.1', targetRef: {} }], ports: [{ name: 'https', port: 41234 }] }],
    },
  }
  t.strictSame(tidy(normalObjects(watched, 41234)), {
    'ServiceSpec/kube-system/x': {
      loadBalancerIP: '127.0.0.50',
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: '{api port}' }],
    },
    'Endpoints/kube-system/x': {
      subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'https', port: '{api port}' }] }],
    },
  })
})
