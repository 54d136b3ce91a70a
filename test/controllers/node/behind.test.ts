import { pino } from 'pino'
import t from 'tap'
import type { Call } from '../../../src/call.ts'
import type { CloudProvider } from '../../../src/cloud/provider.ts'
import type { Cluster } from '../../../src/controllers/cluster.ts'
import { reconcileNode } from '../../../src/controllers/node/controller.ts'
import { projectNode } from '../../../src/events/projection.ts'
import { createKubernetesApi } from '../../../src/kubernetes/api.ts'
import { connect } from '../../../src/kubernetes/connection.ts'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { nodeManifest } from '../../integration/world.ts'
import { startKubernetesSimulator } from '../../simulators/kubernetes/simulator.ts'
import { kubeconfigFile } from '../control-plane-ip/kubeconfig.ts'

const log = pino({ level: 'silent' })
const call: Call = { signal: new AbortController().signal, urgency: 'user', log, beforeWrite: async () => {} }

t.test('a run that knows a node from before it was initialised asks the cloud for no new list', async (t) => {
  const kubernetes = await startKubernetesSimulator()
  const connection = await connect({ kubeconfig: [kubeconfigFile(t, kubernetes.kubeconfig)] }, log)
  t.teardown(async () => {
    connection.close()
    await kubernetes.close()
  })
  const api = createKubernetesApi(connection)
  const node = projectNode(await api.create(NODES, nodeManifest('w1').node, call))
  const asked: { fresh: boolean; byId: boolean }[] = []
  const cloud = {
    name: 'some',
    owns: () => true,
    credentialId: () => 'c',
    instances: {
      maxAgeMs: () => 0,
      async find({ providerId }: { providerId?: string }, _call: Call, { fresh = false } = {}) {
        asked.push({ fresh, byId: providerId !== undefined })
        const addresses = [{ type: 'ExternalIP', address: '198.51.100.1' }]
        return {
          kind: 'found',
          notes: [],
          instance: { providerId: 'some://1', name: 'w1', addresses, additionalLabels: {} },
        }
      },
    },
  } as unknown as CloudProvider
  const seen = new Map<string, number>()
  const cluster = {
    id: 'default',
    kubernetes: api,
    clouds: [cloud],
    recorder: { record: () => {} },
    nowMs: () => Date.now(),
    state: {
      handled: { begin: async () => '', record: async () => {} },
      sightings: {
        async seen(providerIds: readonly string[]) {
          return providerIds.map((id) => {
            const before = seen.get(id) ?? 0
            seen.set(id, Date.now())
            return before
          })
        },
      },
    },
  } as unknown as Cluster
  await reconcileNode(cluster, node, call)
  t.same(asked.splice(0), [{ fresh: false, byId: false }])
  const { resourceVersion } = (await api.get(NODES, { name: 'w1' }, call))?.metadata ?? {}

  await reconcileNode(cluster, node, call)
  t.same(asked.splice(0), [
    { fresh: false, byId: false },
    { fresh: false, byId: true },
  ])
  t.equal((await api.get(NODES, { name: 'w1' }, call))?.metadata.resourceVersion, resourceVersion, 'nothing is written')

  await api.delete(NODES, { name: 'w1' }, call)
  const again = projectNode(await api.create(NODES, nodeManifest('w1').node, call))
  await reconcileNode(cluster, again, call)
  t.same(
    asked,
    [
      { fresh: false, byId: false },
      { fresh: true, byId: false },
    ],
    'a node that joined after its machine was seen may be on another machine of that name',
  )
})

t.test('a list that shows a machine for a while that is gone is no sighting of now', async (t) => {
  const kubernetes = await startKubernetesSimulator()
  const connection = await connect({ kubeconfig: [kubeconfigFile(t, kubernetes.kubeconfig)] }, log)
  t.teardown(async () => {
    connection.close()
    await kubernetes.close()
  })
  const api = createKubernetesApi(connection)
  const machine = (id: number) => ({
    kind: 'found',
    notes: [],
    instance: {
      providerId: `some://${id}`,
      name: 'w1',
      addresses: [{ type: 'Hostname', address: 'w1' }],
      additionalLabels: {},
    },
  })
  const cloud = {
    name: 'some',
    owns: () => true,
    credentialId: () => 'c',
    instances: {
      maxAgeMs: () => 10_000,
      // The list is from before the machine was replaced.
      find: async (_node: unknown, _call: Call, { fresh = false } = {}) => machine(fresh ? 2 : 1),
    },
  } as unknown as CloudProvider
  const seen = new Map([['some://1', Date.now() - 60_000]])
  const cluster = {
    id: 'default',
    kubernetes: api,
    clouds: [cloud],
    recorder: { record: () => {} },
    nowMs: () => Date.now() + 3000,
    state: {
      handled: { begin: async () => '', record: async () => {} },
      sightings: {
        async seen(providerIds: readonly string[], _credential: string, ageMs: number) {
          return providerIds.map((id) => {
            const before = seen.get(id) ?? 0
            seen.set(id, Math.max(before, cluster.nowMs() - ageMs))
            return before
          })
        },
      },
    },
  } as unknown as Cluster
  const { node } = nodeManifest('w1', { providerID: 'some://1' })
  const former = projectNode(await api.create(NODES, node, call))
  await api.delete(NODES, { name: 'w1' }, call)
  const joined = projectNode(await api.create(NODES, nodeManifest('w1').node, call))
  // A run that knows no better than that the former Node is there, some seconds after the other has joined.
  await reconcileNode(cluster, former, call)
  await api.patch(NODES, { name: 'w1' }, { type: 'merge', body: { metadata: { labels: { some: 'change' } } } }, call)
  await reconcileNode(cluster, joined, call)
  t.equal((await api.get(NODES, { name: 'w1' }, call))?.spec?.providerID, 'some://2')
})
