import t from 'tap'
import { SETTINGS } from '../../src/config/table.ts'
import { projectNode, projectService } from '../../src/events/projection.ts'
import type { KubeNode, KubeService } from '../../src/kubernetes/objects.ts'
import { nodeOf, serviceOf } from '../state/stores.ts'
import { harness, nodeChanged, serviceChanged } from './harness.ts'

/** What etcd takes of one object, by default. */
const LARGEST_BYTES = 1.5 * 1024 * 1024
/** What Kubernetes takes of one object's annotations. */
const ANNOTATIONS_BYTES = 256 * 1024

const setting = SETTINGS.find((one) => 'env' in one && one.env === 'WINDLASS_BODY_LIMIT_BYTES')

t.test('the largest Node and the largest Service that a cluster can hold are taken', async (t) => {
  const h = await harness(t, { bodyLimitBytes: Number(setting?.default) })
  const value = 'x'.repeat(63)
  const count = Math.floor(LARGEST_BYTES / (63 + 40))
  const labels = Object.fromEntries(Array.from({ length: count }, (_, i) => [`example.com/label-number-${i}`, value]))
  const annotations = { 'example.com/long': 'ü'.repeat(ANNOTATIONS_BYTES / 2) }
  const events = [nodeChanged(nodeOf('big', 1, { labels })), serviceChanged(serviceOf('big', 1, { annotations }))]
  t.ok(JSON.stringify(events[0]).length > LARGEST_BYTES * 0.9)
  t.match(await h.post(events), { status: 202, body: { accepted: 2 } })
  t.same([...(await h.jobs()).keys()].sort(), ['Cluster/routes', 'Cluster/targets', 'Node/big', 'Service/default/big'])
})

t.test('what makes objects large and nobody looks at is not told', async (t) => {
  const metadata = {
    name: 'big',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    managedFields: [{ manager: 'x'.repeat(100_000) }],
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(100_000) },
  }
  const images = Array.from({ length: 500 }, (_, i) => ({ names: [`registry.example/${i}${'x'.repeat(200)}`] }))
  const node = { metadata, spec: {}, status: { images } } as unknown as KubeNode
  const service = { metadata, spec: { selector: { app: 'x'.repeat(10_000) } } } as unknown as KubeService
  for (const told of [projectNode(node), projectService(service)]) t.ok(JSON.stringify(told).length < 1000)
})
