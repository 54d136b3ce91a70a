import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { render } from '../../infra/helm.ts'
import type { Admin, Json } from '../apiserver/admin.ts'
import { buildScheduler } from '../apiserver/build.ts'
import { startApiServer } from '../apiserver/start.ts'
import { deploymentsOf, objectsOf } from './pods.ts'

const IMAGE = { repository: 'registry.example.com/windlass' }

/** The Pod of a Deployment, as its ReplicaSet would make it. */
async function podOf(mode: 'single' | 'split', deployment: string, values: object = {}): Promise<Json> {
  const found = deploymentsOf(objectsOf(await render({ image: IMAGE, mode, ...values }))).find(
    ({ metadata }) => metadata.name === deployment,
  )
  const { metadata, spec } = found.spec.template
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: deployment, namespace: 'windlass' }, spec }
}

interface Scheduling {
  admin: Admin
  create: (pod: Json) => Promise<void>
  end: (name: string) => Promise<void>
  /** Why a Pod can't be placed, or `bound`. */
  said: (name: string) => Promise<string>
  /** Resolves to its node when a Pod is placed. */
  bound: (name: string) => Promise<string>
}

/** A real API server and a real scheduler, with nodes of a cluster that waits for its cloud controller. */
async function scheduling(t: Test, nodes: readonly Json[]): Promise<Scheduling> {
  const server = await startApiServer()
  const { admin } = server
  const kubeconfig = server.adminKubeconfig(join(t.testdir(), 'kubeconfig'))
  const args = [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0']
  // It ends with its standard input, and so with this process however that ends.
  const follow = '"$0" "$@" < /dev/null & read _; kill -9 $!'
  const scheduler = spawn('sh', ['-c', follow, await buildScheduler(), ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = once(scheduler, 'exit')
  t.teardown(async () => {
    scheduler.stdin.end()
    await ended
    await server.stop()
  })
  // No controller makes it here.
  await admin.create('ServiceAccount', 'windlass', { metadata: { name: 'default' } })
  for (const metadata of nodes) await admin.createNode({ kind: 'Node', metadata })

  const create = async (pod: Json) => void (await admin.create('Pod', 'windlass', pod))
  const end = async (name: string) =>
    void (await admin.send('DELETE', `/api/v1/namespaces/windlass/pods/${name}?gracePeriodSeconds=0`))
  const said = async (name: string): Promise<string> => {
    for (;;) {
      const { spec, status } = await admin.get('Pod', 'windlass', name)
      if (spec.nodeName) return 'bound'
      const refusal = status.conditions?.find(({ type, status }: Json) => type === 'PodScheduled' && status === 'False')
      if (refusal) return refusal.message
      await delay(50)
    }
  }
  const bound = async (name: string) => {
    while ((await said(name)) !== 'bound') await delay(50)
    return String((await admin.get('Pod', 'windlass', name)).spec.nodeName)
  }
  return { admin, create, end, said, bound }
}

t.test('the scheduler starts no worker of one mode before the last Pod of the other is gone', async (t) => {
  const { create, end, said, bound } = await scheduling(t, [{ name: 'one' }, { name: 'two' }])
  const all = await podOf('single', 'windlass')
  const worker = await podOf('split', 'windlass-worker')
  const otherWorker = { ...worker, metadata: { ...worker.metadata, name: 'other-worker' } }

  await create(all)
  await bound('windlass')
  await create(worker)
  t.match(await said('windlass-worker'), /2 node\(s\) didn't (match pod|satisfy existing pods) anti-affinity rules/)
  for (const [mode, deployment] of [
    ['split', 'windlass-server'],
    ['split', 'windlass-forwarder'],
    ['split', 'windlass-redis'],
  ] as const) {
    await create(await podOf(mode, deployment))
    await bound(deployment)
  }
  await end('windlass')
  await bound('windlass-worker')

  await create(otherWorker)
  await bound('other-worker')
  await create(all)
  await end('windlass-worker')
  t.match(await said('windlass'), /anti-affinity rules/, 'one worker is left')
  await end('other-worker')
  await bound('windlass')
})

t.test('Redis is on a node of the control plane only where there is no other', async (t) => {
  const labels = { 'node-role.kubernetes.io/control-plane': '' }
  const planes = ['plane-1', 'plane-2', 'plane-3'].map((name) => ({ name, labels }))
  const { admin, create, end, bound } = await scheduling(t, planes)
  const redis = await podOf('split', 'windlass-redis')
  await create(redis)
  t.match(await bound('windlass-redis'), /^plane-/)
  await end('windlass-redis')

  await admin.createNode({ kind: 'Node', metadata: { name: 'other' } })
  await create({ ...redis, metadata: { ...redis.metadata, name: 'first' } })
  t.equal(await bound('first'), 'other')
  await end('first')
  await create({ ...redis, metadata: { ...redis.metadata, name: 'second' } })
  t.equal(await bound('second'), 'other')

  const affinity = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }] },
        ],
      },
    },
  }
  await end('second')
  await create(await podOf('split', 'windlass-redis', { affinity }))
  t.match(await bound('windlass-redis'), /^plane-/, 'what the values require counts')
})
