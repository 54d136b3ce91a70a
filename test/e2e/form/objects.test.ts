import t from 'tap'
import { normalEvents, normalNode, normalService } from './objects.ts'

t.test('of a Node stays what a cloud controller owns', async (t) => {
  const node = {
    metadata: {
      name: 'w1',
      uid: 'u',
      resourceVersion: '7',
      labels: { b: '1', a: '2' },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
      finalizers: [],
    },
    spec: {
      providerID: 'hcloud://1',
      taints: [
        { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
        { key: 'z', effect: 'NoSchedule' },
        { key: 'a', value: 'v', effect: 'NoExecute', timeAdded: 'x' },
      ],
    },
    status: {
      addresses: [
        { type: 'InternalIP', address: '10.0.0.9' },
        { type: 'ExternalIP', address: '192.0.2.1' },
        { type: 'InternalIP', address: '10.0.0.1' },
      ],
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'NetworkUnavailable', status: 'False', reason: 'RouteCreated', message: 'm', lastTransitionTime: 't' },
      ],
    },
  }
  t.strictSame(normalNode(node), {
    addresses: [
      { address: '192.0.2.1', type: 'ExternalIP' },
      { address: '10.0.0.9', type: 'InternalIP' },
      { address: '10.0.0.1', type: 'InternalIP' },
    ],
    conditions: [{ reason: 'RouteCreated', status: 'False', type: 'NetworkUnavailable' }],
    labels: { a: '2', b: '1' },
    providerID: 'hcloud://1',
    taints: [
      { effect: 'NoExecute', key: 'a', value: 'v' },
      { effect: 'NoSchedule', key: 'z' },
    ],
  })
})

t.test('a Service that is being deleted says so', async (t) => {
  const service = {
    metadata: { name: 'web', deletionTimestamp: 'now', finalizers: ['b', 'a'] },
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  }
  t.strictSame(normalService(service), {
    deleting: true,
    finalizers: ['a', 'b'],
    ingress: [{ ip: '192.0.2.1' }],
    type: 'LoadBalancer',
  })
})

t.test('Events of Nodes and Services are a set without texts', async (t) => {
  const event = (kind: string, reason: string, message: string) => ({
    involvedObject: { kind, namespace: 'default', name: 'x' },
    type: 'Normal',
    reason,
    message,
  })
  t.strictSame(
    normalEvents([
      event('Service', 'B', '1'),
      event('Service', 'B', '2'),
      event('Node', 'A', ''),
      event('Pod', 'C', ''),
    ]),
    [
      { object: 'Node/x', type: 'Normal', reason: 'A' },
      { object: 'Service/default/x', type: 'Normal', reason: 'B' },
    ],
  )
})
