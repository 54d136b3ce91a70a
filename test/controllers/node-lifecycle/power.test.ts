import { pino } from 'pino'
import t, { type Test } from 'tap'
import type { Call } from '../../../src/call.ts'
import type { CloudProvider } from '../../../src/cloud/provider.ts'
import type { Cluster } from '../../../src/controllers/cluster.ts'
import { reconcileLifecycle } from '../../../src/controllers/node-lifecycle/controller.ts'
import { aborted } from '../../../src/errors.ts'
import { projectNode } from '../../../src/events/projection.ts'
import { createKubernetesApi } from '../../../src/kubernetes/api.ts'
import { connect } from '../../../src/kubernetes/connection.ts'
import type { KubeNode } from '../../../src/kubernetes/objects.ts'
import { NODES } from '../../../src/kubernetes/resources.ts'
import { nodeManifest } from '../../integration/world.ts'
import { startKubernetesSimulator } from '../../simulators/kubernetes/simulator.ts'
import { kubeconfigFile } from '../control-plane-ip/kubeconfig.ts'

const log = pino({ level: 'silent' })
const call: Call = { signal: new AbortController().signal, urgency: 'user', log, beforeWrite: async () => {} }
const SHUTDOWN = { key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' }

/** A machine that is off, or none. */
async function setUp(t: Test, { exists = true } = {}) {
  const kubernetes = await startKubernetesSimulator()
  const connection = await connect({ kubeconfig: [kubeconfigFile(t, kubernetes.kubeconfig)] }, log)
  t.teardown(async () => {
    connection.close()
    await kubernetes.close()
  })
  const api = createKubernetesApi(connection)
  const instance = { providerId: 'some://1', name: 'w1', addresses: [], additionalLabels: {} }
  const cloud = {
    name: 'some',
    owns: () => true,
    credentialId: () => 'c',
    instances: {
      find: async () =>
        exists ? { kind: 'found', notes: [], instance } : { kind: 'not-found', searched: '', notes: [] },
      isOff: async () => true,
      listProviderIds: async () => new Set(),
    },
  } as unknown as CloudProvider
  const events: string[] = []
  const cluster = {
    id: 'default',
    kubernetes: api,
    clouds: [cloud],
    recorder: { record: ({ reason }: { reason: string }) => void events.push(reason) },
    framework: { nodeMonitorPeriodMs: 5000 },
    nowMs: () => Date.now(),
    state: {
      nodes: { all: async () => ({ complete: true, nodes: [] }) },
      sightings: {
        seen: async (providerIds: readonly string[]) => providerIds.map(() => 0),
        lastSeen: async () => ({ atMs: 1, credentialId: 'c' }),
        notFound: async () => ({ firstAtMs: 1, lastAtMs: 1 }),
      },
      allowDeletion: async () => ({ allowed: true, used: 0, limit: 2 }),
    },
  } as unknown as Cluster
  /** A node that is not ready. */
  async function add(spec: KubeNode['spec'], metadata: object = {}): Promise<KubeNode> {
    const { node } = nodeManifest('w1')
    await api.create(NODES, { ...node, metadata: { ...node.metadata, ...metadata }, spec }, call)
    return await report('Unknown')
  }
  async function report(status: string): Promise<KubeNode> {
    const body = { status: { conditions: [{ type: 'Ready', status }] } }
    const node = await api.patch(NODES, { name: 'w1' }, { type: 'merge', subresource: 'status', body }, call)
    if (!node) throw new Error('the node is gone')
    return node
  }
  const run = (node: KubeNode, as = call) => reconcileLifecycle(cluster, projectNode(node), as)
  const now = async () => await api.get(NODES, { name: 'w1' }, call)
  return { api, add, report, run, now, events }
}

t.test('the shutdown taint stands beside those of others and goes alone', async (t) => {
  const { add, report, run, now } = await setUp(t)
  const others = [
    { ...SHUTDOWN, effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
    { key: 'example.org/a', value: 'x', effect: 'NoSchedule' },
  ]
  await run(await add({ providerID: 'some://1', taints: others }))
  t.strictSame((await now())?.spec?.taints, [...others, SHUTDOWN])
  await run(await report('True'))
  t.strictSame((await now())?.spec?.taints, others)
})

t.test('a node without a provider id is found by its name, but never gone', async (t) => {
  const off = await setUp(t)
  await off.run(await off.add({}))
  t.strictSame((await off.now())?.spec?.taints, [SHUTDOWN])

  const gone = await setUp(t, { exists: false })
  t.match(await gone.run(await gone.add({})), { requeueAfterMs: 5000 })
  t.ok(await gone.now())
  t.same(gone.events, [])
})

t.test('a node that is being deleted gets the taint, and is not deleted once more', async (t) => {
  const finalizers = ['example.org/drain']
  const off = await setUp(t)
  await off.add({ providerID: 'some://1' }, { finalizers })
  await off.api.delete(NODES, { name: 'w1' }, call)
  await off.run(await off.report('False'))
  t.strictSame((await off.now())?.spec?.taints, [SHUTDOWN])

  const gone = await setUp(t, { exists: false })
  await gone.add({ providerID: 'some://1' }, { finalizers })
  await gone.api.delete(NODES, { name: 'w1' }, call)
  t.same(await gone.run(await gone.report('False')), {})
  t.same(gone.events, [])
})

t.test('a deletion that meets a change, or the end of its worker, has not failed', async (t) => {
  const { add, report, run, now, events } = await setUp(t, { exists: false })
  const node = await add({ providerID: 'some://1' })
  let touched = false
  const met = {
    ...call,
    beforeWrite: async () => {
      if (!touched) await report('False')
      touched = true
    },
  }
  await t.rejects(run(node, met), { code: 'Conflict' })
  const ended = { ...call, beforeWrite: () => Promise.reject(aborted('the worker stops')) }
  await t.rejects(run(node, ended), /the worker stops/)
  t.same(events, [])
  t.ok(await now())
  await run(node)
  t.same(events, ['DeletingNode'])
  t.notOk(await now())
})
