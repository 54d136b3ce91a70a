import fc from 'fast-check'
import t from 'tap'
import {
  EXTERNAL_IPV6,
  fingerprint,
  type NodeProjection,
  PROVIDED_NODE_IP,
  projectNode,
  projectService,
  type ServiceProjection,
} from '../../src/events/projection.ts'
import type { KubeNode, KubeService } from '../../src/kubernetes/objects.ts'
import { anyNode, anyService } from './objects.ts'

const ofNode = (node: KubeNode) => fingerprint(projectNode(node))
const ofService = (service: KubeService) => fingerprint(projectService(service))

t.test('what a cloud controller does not look at never changes the fingerprint', (t) => {
  fc.assert(
    fc.property(anyNode, fc.nat().map(String), (node, noise) => {
      const beaten = structuredClone(node) as KubeNode & { status: Record<string, unknown> }
      beaten.metadata.resourceVersion = noise
      beaten.metadata.managedFields = [{ manager: noise, time: noise, fieldsV1: { [noise]: {} } }]
      beaten.metadata.annotations = { ...beaten.metadata.annotations, 'node.alpha.kubernetes.io/ttl': noise }
      for (const condition of beaten.status.conditions as { lastHeartbeatTime: string; message: string }[]) {
        condition.lastHeartbeatTime = noise
        condition.message = noise
      }
      beaten.status.images = [{ names: [noise], sizeBytes: 1 }]
      beaten.status.capacity = { cpu: noise }
      return ofNode(beaten) === ofNode(node)
    }),
  )
  fc.assert(
    fc.property(anyService, fc.nat().map(String), (service, noise) => {
      const applied = structuredClone(service) as KubeService & { spec: Record<string, unknown> }
      applied.metadata.resourceVersion = noise
      applied.metadata.managedFields = [{ manager: noise }]
      applied.metadata.labels = { noise }
      applied.metadata.annotations = {
        ...applied.metadata.annotations,
        'kubectl.kubernetes.io/last-applied-configuration': noise,
      }
      applied.spec.selector = { app: noise }
      return ofService(applied) === ofService(service)
    }),
  )
  t.end()
})

t.test('the order of keys and absent against empty lists do not change the fingerprint', (t) => {
  fc.assert(
    fc.property(anyNode, (node) => {
      const { labels = {} } = node.metadata
      const turned = structuredClone(node)
      turned.metadata.labels = Object.fromEntries(Object.entries(labels).reverse())
      turned.spec = { ...turned.spec, taints: turned.spec?.taints ?? [], podCIDRs: turned.spec?.podCIDRs ?? [] }
      return ofNode(turned) === ofNode(node)
    }),
  )
  t.end()
})

t.test('each field that matters changes the fingerprint of a Node', (t) => {
  const changes: ((node: KubeNode) => Pick<KubeNode, 'spec' | 'status'> & { metadata?: object })[] = [
    () => ({ metadata: { uid: 'another' } }),
    () => ({ metadata: { deletionTimestamp: '2026-01-02T03:04:06Z' } }),
    ({ metadata }) => ({ metadata: { labels: { ...metadata.labels, 'another-label': '' } } }),
    () => ({ metadata: { annotations: { [PROVIDED_NODE_IP]: '10.9.9.9' } } }),
    () => ({ metadata: { annotations: { [EXTERNAL_IPV6]: '2001:db8::9' } } }),
    () => ({ spec: { providerID: 'hcloud://1' } }),
    () => ({ spec: { podCIDRs: ['10.9.0.0/24', '10.8.0.0/24'] } }),
    () => ({ spec: { taints: [{ key: 'another', effect: 'NoSchedule' }] } }),
    () => ({ status: { addresses: [{ type: 'Hostname', address: 'another' }] } }),
    () => ({ status: { conditions: [] } }),
    ({ status }) => ({
      status: { conditions: [...(status?.conditions ?? []), { type: 'NetworkUnavailable', status: 'True' }] },
    }),
  ]
  fc.assert(
    fc.property(anyNode, fc.constantFrom(...changes), (node, change) => {
      const { metadata, spec, status } = change(node)
      const changed: KubeNode = {
        metadata: { ...node.metadata, ...metadata },
        spec: { ...node.spec, ...spec },
        status: { ...node.status, ...status },
      }
      return ofNode(changed) !== ofNode(node)
    }),
  )
  t.end()
})

t.test('each field of a projection but its version changes the fingerprint', (t) => {
  const differs = (projection: NodeProjection | ServiceProjection) => {
    for (const [field, value] of Object.entries(projection)) {
      const other =
        typeof value === 'boolean'
          ? !value
          : typeof value === 'string'
            ? `${value}x`
            : Array.isArray(value)
              ? [...value, 'x']
              : { ...value, x: 'x' }
      const changed = fingerprint({ ...projection, [field]: other })
      if ((changed === fingerprint(projection)) !== (field === 'resourceVersion')) return false
    }
    return true
  }
  fc.assert(fc.property(anyNode, (node) => differs(projectNode(node))))
  fc.assert(fc.property(anyService, (service) => differs(projectService(service))))
  t.end()
})
