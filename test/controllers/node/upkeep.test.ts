import { pino } from 'pino'
import t, { type Test } from 'tap'
import type { Call } from '../../../src/call.ts'
import type { CloudProvider } from '../../../src/cloud/provider.ts'
import type { Cluster } from '../../../src/controllers/cluster.ts'
import { reconcileNode } from '../../../src/controllers/node/controller.ts'
import { transient } from '../../../src/errors.ts'
import { projectNode } from '../../../src/events/projection.ts'
import { createKubernetesApi } from '../../../src/kubernetes/api.ts'
import { connect } from '../../../src/kubernetes/connection.ts'
import type { KubeNode } from '../../../src/kubernetes/objects.ts'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { isInitialised, nodeManifest } from '../../integration/world.ts'
import { startKubernetesSimulator } from '../../simulators/kubernetes/simulator.ts'
import { kubeconfigFile } from '../control-plane-ip/kubeconfig.ts'

const log = pino({ level: 'silent' })
const call: Call = { signal: new AbortController().signal, urgency: 'user', log, beforeWrite: async () => {} }
const addresses = [{ type: 'ExternalIP', address: '198.51.100.1' }]

async function setUp(t: Test, { silent = false } = {}) {
  const kubernetes = await startKubernetesSimulator()
  const connection = await connect({ kubeconfig: [kubeconfigFile(t, kubernetes.kubeconfig)] }, log)
  t.teardown(async () => {
    connection.close()
    await kubernetes.close()
  })
  const api = createKubernetesApi(connection)
  const cloud = {
    name: 'some',
    owns: (providerId: string) => providerId.startsWith('some://'),
    credentialId: () => 'c',
    instances: {
      maxAgeMs: () => 0,
      async find() {
        if (silent) throw transient('the cloud does not answer')
        const instance = { providerId: 'some://1', name: 'w1', addresses, instanceType: 'small', additionalLabels: {} }
        return { kind: 'found', notes: [], instance }
      },
    },
  } as unknown as CloudProvider
  const cluster = {
    id: 'default',
    kubernetes: api,
    clouds: [cloud],
    recorder: { record: () => {} },
    nowMs: () => Date.now(),
    state: {
      handled: { begin: async () => '', record: async () => {} },
      sightings: { seen: async (providerIds: readonly string[]) => providerIds.map(() => 0) },
    },
  } as unknown as Cluster
  /** Adds a node that differs from a fresh one as told. */
  async function add(change: (node: { metadata: object; spec: KubeNode['spec'] }) => object): Promise<KubeNode> {
    const { node } = nodeManifest('w1')
    return await api.create(NODES, { ...node, ...change(node) }, call)
  }
  const run = (node: KubeNode) => reconcileNode(cluster, projectNode(node), call)
  const now = async () => await api.get(NODES, { name: 'w1' }, call)
  return { api, add, run, now }
}

const edited = { 'beta.kubernetes.io/instance-type': 'small', 'node.kubernetes.io/instance-type': 'edited' }
const stable = async (now: () => Promise<KubeNode | undefined>) =>
  (await now())?.metadata.labels?.['node.kubernetes.io/instance-type']

t.test('labels are kept while the cloud does not answer, and those of other people’s nodes are theirs', async (t) => {
  const { api, add, run, now } = await setUp(t, { silent: true })
  const node = await add(({ metadata }) => ({
    metadata: { ...metadata, labels: edited },
    spec: { providerID: 'some://1' },
  }))
  await t.rejects(run(node), /does not answer/)
  t.equal(await stable(now), 'small')

  await api.delete(NODES, { name: 'w1' }, call)
  const foreign = await add(({ metadata }) => ({
    metadata: { ...metadata, labels: edited },
    spec: { providerID: 'other://1' },
  }))
  t.equal(await run(foreign), undefined)
  t.equal(await stable(now), 'edited')
})

t.test('a node that is being deleted, and that a finalizer keeps, is initialised and kept as any other', async (t) => {
  const { api, add, run, now } = await setUp(t)
  await add(({ metadata }) => ({ metadata: { ...metadata, finalizers: ['example.org/drain'] } }))
  await api.delete(NODES, { name: 'w1' }, call)
  const leaving = await now()
  t.ok(leaving?.metadata.deletionTimestamp)
  if (leaving) await run(leaving)
  const kept = await now()
  t.ok(kept && isInitialised(kept))
  t.same(kept?.metadata.finalizers, ['example.org/drain'])

  const body = { metadata: { labels: { 'node.kubernetes.io/instance-type': 'edited' } } }
  const changed = await api.patch(NODES, { name: 'w1' }, { type: 'merge', body }, call)
  if (changed) await run(changed)
  t.equal(await stable(now), 'small')
})

t.test('taints of others stay as they are, with the time at which they were added', async (t) => {
  const { add, run, now } = await setUp(t)
  const others = [
    { key: 'example.org/a', value: '', effect: 'PreferNoSchedule' },
    { key: 'example.org/b', value: 'x', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
  ]
  const node = await add(({ spec }) => ({ spec: { ...spec, taints: [...others, ...(spec?.taints ?? [])] } }))
  await run(node)
  const after = await now()
  t.ok(after && isInitialised(after))
  t.strictSame(after?.spec?.taints, others)
})
