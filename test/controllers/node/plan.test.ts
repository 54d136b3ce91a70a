import t from 'tap'
import type { Instance } from '../../../src/cloud/provider.ts'
import { changedNode, planNode } from '../../../src/controllers/node/plan.ts'
import type { NodeProjection } from '../../../src/events/projection.ts'
import type { NodeAddress } from '../../../src/kubernetes/objects.ts'

const taint = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' }
const other = { key: 'example.org/keep', effect: 'NoExecute' }

const fresh: NodeProjection = {
  name: 'w1',
  uid: 'u',
  resourceVersion: '7',
  creationTimestamp: '2026-01-01T00:00:00Z',
  deleting: false,
  labels: { 'kubernetes.io/hostname': 'w1' },
  podCidrs: [],
  taints: [taint, other],
  addresses: [],
  ready: 'True',
}

const machine: Instance = {
  providerId: 'hcloud://1',
  name: 'w1',
  addresses: [
    { type: 'Hostname', address: 'w1' },
    { type: 'ExternalIP', address: '198.51.100.1' },
    { type: 'InternalIP', address: '10.0.0.2' },
  ],
  instanceType: 'cx22',
  region: 'fsn1',
  zone: 'fsn1-dc14',
  additionalLabels: { 'instance.hetzner.cloud/provided-by': 'cloud' },
}

const changesOf = (node: NodeProjection, instance = machine) => {
  const plan = planNode(node, instance)
  if ('fault' in plan) throw new Error(plan.fault)
  return plan.changes
}

t.test('a new node gets provider id, labels and the taint off in one write, then its addresses', async (t) => {
  t.match(changesOf(fresh), [
    {
      kind: 'initialise',
      providerId: 'hcloud://1',
      labels: {
        'node.kubernetes.io/instance-type': 'cx22',
        'beta.kubernetes.io/instance-type': 'cx22',
        'topology.kubernetes.io/zone': 'fsn1-dc14',
        'failure-domain.beta.kubernetes.io/region': 'fsn1',
        'instance.hetzner.cloud/provided-by': 'cloud',
      },
      taints: [other],
    },
    { kind: 'set-addresses', addresses: machine.addresses },
  ])
})

t.test('a provider id that is there is never written again', async (t) => {
  t.notOk('providerId' in (changesOf({ ...fresh, providerId: 'hcloud://bm-1' })[0] ?? {}))
})

t.test('additional labels never overwrite, and stay out of the names of Kubernetes', async (t) => {
  const labels = { a: 'mine' }
  const additionalLabels = {
    a: 'theirs',
    b: 'new',
    'node.kubernetes.io/x': 'no',
    'x.k8s.io/y': 'no',
    'notk8s.io/z': 'yes',
  }
  const [first] = changesOf({ ...fresh, labels }, { ...machine, additionalLabels })
  t.match(first, { labels: { b: 'new', 'notk8s.io/z': 'yes' } })
  for (const key of ['a', 'node.kubernetes.io/x', 'x.k8s.io/y'])
    t.notOk(first && 'labels' in first && key in first.labels, key)
})

t.test('label values are made acceptable to the API server', async (t) => {
  const [first] = changesOf(fresh, { ...machine, instanceType: `Robot Server™ 1 ${'x'.repeat(60)}-` })
  const value = first?.kind === 'initialise' ? first.labels['node.kubernetes.io/instance-type'] : ''
  t.match(value, /^Robot-Server-1-x+$/)
  t.equal(value?.length, 63)
})

t.test('an initialised node that is as it should be needs nothing', async (t) => {
  t.same(changesOf({ ...fresh, taints: [other], providerId: 'hcloud://1', addresses: machine.addresses }), [])
})

t.test('the beta label is the truth of an initialised node, a missing one ends the upkeep', async (t) => {
  const labels = {
    'beta.kubernetes.io/instance-type': 'cx22',
    'node.kubernetes.io/instance-type': 'edited',
    'topology.kubernetes.io/zone': 'alone',
  }
  t.match(changesOf({ ...fresh, taints: [], labels, addresses: machine.addresses }), [
    { kind: 'set-labels', labels: { 'node.kubernetes.io/instance-type': 'cx22' } },
  ])
})

t.test('the order of addresses counts', async (t) => {
  const addresses = [...machine.addresses].reverse()
  t.match(changesOf({ ...fresh, taints: [], addresses }), [{ kind: 'set-addresses', addresses: machine.addresses }])
})

t.test('no addresses from the cloud leave those of the node', async (t) => {
  const addresses = [{ type: 'InternalIP', address: '10.0.0.2' }]
  t.same(changesOf({ ...fresh, taints: [], addresses }, { ...machine, addresses: [] }), [])
})

t.test('a cloud that names no host keeps the name that kubelet gave', async (t) => {
  const addresses = [{ type: 'Hostname', address: 'from-kubelet' }]
  const external = [{ type: 'ExternalIP', address: '198.51.100.1' }]
  t.match(changesOf({ ...fresh, taints: [], addresses }, { ...machine, addresses: external }), [
    { addresses: [...external, ...addresses] },
  ])
})

t.test('a machine whose addresses can not be told keeps a new node waiting, and an old one as it is', async (t) => {
  const fault = { reason: 'InvalidExternalIPv6', message: 'annotation x is wrong' }
  const odd = { ...machine, addresses: [{ type: 'ExternalIP', address: '198.51.100.1' }], fault }
  t.match(planNode(fresh, odd), { fault: 'annotation x is wrong', reason: 'InvalidExternalIPv6' })
  const addresses = [{ type: 'ExternalIP', address: '2001:db8::5' }]
  t.same(planNode({ ...fresh, taints: [], addresses }, odd), { changes: [], warning: fault })
})

t.test("kubelet's own --node-ip comes first and claims its type", async (t) => {
  const addresses = [...machine.addresses, { type: 'InternalIP', address: '10.0.0.3' }]
  t.match(changesOf({ ...fresh, providedNodeIp: '10.0.0.3' }, { ...machine, addresses }), [
    {},
    {
      addresses: [
        { type: 'InternalIP', address: '10.0.0.3' },
        { type: 'Hostname', address: 'w1' },
        { type: 'ExternalIP', address: '198.51.100.1' },
      ],
    },
  ])
})

t.test('a --node-ip that the cloud does not have keeps the node uninitialised and says which', async (t) => {
  for (const [providedNodeIp, why] of [
    ['10.9.9.9', /10\.9\.9\.9 is none of the addresses.*ExternalIP 198\.51\.100\.1/],
    ['', /not an IP address/],
    ['10.0.0.2, 2001:db8::1', /not an IP address/],
    ['10.0.0.2,198.51.100.1', /one family/],
    ['10.0.0.2,::', /unspecified/],
    ['0.0.0.0', /none of the addresses/],
  ] as const)
    t.match(planNode({ ...fresh, providedNodeIp }, machine), { fault: why }, providedNodeIp)
})

t.test('a dual-stack --node-ip gives exactly those two, in its order', async (t) => {
  const addresses = [
    { type: 'InternalIP', address: 'fd00::2' },
    { type: 'InternalIP', address: '10.0.0.2' },
    { type: 'InternalIP', address: '10.0.0.9' },
  ]
  for (const providedNodeIp of ['010.0.0.2,fd00:0::2', '::ffff:10.0.0.2,fd00::2'])
    t.match(changesOf({ ...fresh, providedNodeIp }, { ...machine, addresses }), [
      {},
      {
        addresses: [
          { type: 'InternalIP', address: '10.0.0.2' },
          { type: 'InternalIP', address: 'fd00::2' },
        ],
      },
    ])
})

t.test(
  'after a write that was bound to no version, a node has the labels that were looked at and those that were written',
  (t) => {
    const written = {
      resourceVersion: '8',
      labels: { 'kubernetes.io/hostname': 'w1', 'a/written': '1', 'of/another': '2' },
    }
    const labels = changedNode(fresh, { kind: 'set-labels', summary: '', labels: { 'a/written': '1' } }, written)
    t.same(labels.labels, { 'kubernetes.io/hostname': 'w1', 'a/written': '1' })
    const { addresses } = machine
    t.same(changedNode(fresh, { kind: 'set-addresses', summary: '', addresses }, written), {
      ...fresh,
      resourceVersion: '8',
      addresses,
    })
    const initialised = {
      kind: 'initialise',
      summary: '',
      providerId: 'hcloud://1',
      labels: {},
      taints: [other],
    } as const
    t.match(changedNode(fresh, { ...initialised, taints: [other] }, written), {
      labels: written.labels,
      providerId: 'hcloud://1',
      taints: [other],
    })
    t.end()
  },
)

t.test('a cloud that is silent on a type of address takes none from a node, and gives none to a new one', async (t) => {
  const [host, external, internal] = machine.addresses as [NodeAddress, NodeAddress, NodeAddress]
  const settled = { ...fresh, taints: [], addresses: [host, external, internal] }
  const silent = (addresses: NodeAddress[], ...silentOn: string[]): Instance => ({ ...machine, addresses, silentOn })
  t.same(changesOf(settled, silent([host, external], 'InternalIP')), [])
  t.same(changesOf(settled, silent([host, internal], 'ExternalIP')), [], 'in the order that it has')
  t.same(changesOf(settled, silent([], 'ExternalIP', 'InternalIP')), [])
  const moved = { type: 'ExternalIP', address: '198.51.100.9' }
  t.match(changesOf(settled, silent([host, moved], 'InternalIP')), [
    { kind: 'set-addresses', addresses: [host, moved, internal] },
  ])
  t.match(changesOf(settled, silent([host, external])), [{ kind: 'set-addresses', addresses: [host, external] }])
  const kubelets = { ...fresh, addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] }
  t.match(changesOf(kubelets, silent([host, external], 'InternalIP')), [
    { kind: 'initialise' },
    { kind: 'set-addresses', addresses: [host, external] },
  ])
  t.match(planNode(kubelets, silent([], 'ExternalIP', 'InternalIP')), { fault: /no address/, reason: 'AddressMissing' })
})
