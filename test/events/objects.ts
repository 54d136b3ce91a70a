import fc from 'fast-check'
import type { KubeNode, KubeService } from '../../src/kubernetes/objects.ts'

const word = fc.stringMatching(/^[a-z0-9]{1,8}$/)
const words = fc.dictionary(word, word, { maxKeys: 4 })
const list = <T>(of: fc.Arbitrary<T>) => fc.array(of, { maxLength: 3 })
const metadata = {
  name: word,
  uid: fc.uuid(),
  resourceVersion: fc.nat().map(String),
  creationTimestamp: fc.constant('2026-01-02T03:04:05Z'),
}
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined })

export const anyNode: fc.Arbitrary<KubeNode> = fc.record({
  metadata: fc.record({
    ...metadata,
    labels: optional(words),
    annotations: optional(words),
    managedFields: fc.constant([{ manager: 'kubelet', time: '2026-01-02T03:04:05Z' }]),
  }),
  spec: fc.record({
    providerID: optional(word),
    podCIDRs: optional(list(fc.ipV4())),
    taints: optional(list(fc.record({ key: word, effect: fc.constantFrom('NoSchedule', 'NoExecute') }))),
    unschedulable: optional(fc.boolean()),
  }),
  status: fc.record({
    addresses: optional(list(fc.record({ type: fc.constantFrom('InternalIP', 'Hostname'), address: fc.ipV4() }))),
    conditions: fc.constant([
      { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-02T03:04:05Z', message: 'fine' },
      { type: 'MemoryPressure', status: 'False', lastHeartbeatTime: '2026-01-02T03:04:05Z' },
    ]),
  }),
})

export const anyService: fc.Arbitrary<KubeService> = fc.record({
  metadata: fc.record({
    ...metadata,
    namespace: word,
    annotations: optional(words),
    finalizers: optional(list(word)),
  }),
  spec: fc.record({
    type: optional(fc.constantFrom('ClusterIP', 'LoadBalancer')),
    ports: optional(list(fc.record({ port: fc.integer({ min: 1, max: 65535 }), nodePort: optional(fc.nat(65535)) }))),
    ipFamilies: optional(list(fc.constantFrom('IPv4', 'IPv6'))),
    loadBalancerSourceRanges: optional(list(fc.ipV4())),
  }),
  status: fc.record({ loadBalancer: fc.record({ ingress: optional(list(fc.record({ ip: fc.ipV4() }))) }) }),
})
