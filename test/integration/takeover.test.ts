import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { stringify } from 'yaml'
import type { Call } from '../../src/call.ts'
import { createKubernetesApi } from '../../src/kubernetes/api.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import { LEASES } from '../../src/kubernetes/resources.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { type Case, caseFiles, loadCase } from '../e2e/case.ts'
import { startHcloudSimulator } from '../simulators/hcloud/simulator.ts'
import { startKubernetesSimulator } from '../simulators/kubernetes/simulator.ts'
import { leaveBehind, type Side } from './takeover/left-behind.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

const LEASE = { namespace: 'kube-system', name: 'cloud-controller-manager' }
const CASES = join(import.meta.dirname, '..', 'e2e', 'cases', 'hcloud')
const TOKEN = 'k'.repeat(64)
const ROBOT = { user: 'robot', password: 'secret' }

/** The recordings in which the replaced controller ran to the end and did what is right. */
const recorded = caseFiles([CASES])
  .map(loadCase)
  .filter(({ deviates, expect, never_settles }) => !deviates && !never_settles && expect?.controller?.running)

t.test('put in the place of the Hetzner controller, nothing is written anywhere', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  const log = createLogger({ level: 'silent' })
  const call: Call = { signal: new AbortController().signal, urgency: 'user', log, beforeWrite: async () => {} }
  const sides = new Map<string, Side & { close(): void }>()
  t.teardown(async () => {
    await world.stop()
    for (const { kubernetes, hcloud, close } of sides.values()) {
      close()
      await Promise.all([kubernetes.close(), hcloud.close()])
    }
  })
  mkdirSync(join(world.dir, 'kubeconfigs'))
  const clusters: Record<string, unknown> = {}
  for (const definition of recorded) {
    const [kubernetes, hcloud] = await Promise.all([
      startKubernetesSimulator(),
      startHcloudSimulator({ token: TOKEN, robot: ROBOT, options: (definition.sim ?? {}) as object }),
    ])
    const kubeconfig = join(world.dir, 'kubeconfigs', definition.id)
    writeFileSync(kubeconfig, kubernetes.kubeconfig)
    const connection = await connect({ kubeconfig: [kubeconfig] }, log)
    const side = { kubernetes, hcloud, call, api: createKubernetesApi(connection), close: () => connection.close() }
    sides.set(definition.id, side)
    await leaveBehind(definition, side)
    clusters[definition.id] = clusterSettings(definition, kubeconfig, side)
  }
  const before = new Map([...sides].map(([id, { kubernetes }]) => [id, kubernetes.requests.length]))
  for (const { hcloud } of sides.values()) t.same(writesOf(hcloud), [])
  const file = join(world.dir, 'clusters.yaml')
  writeFileSync(file, stringify(clusters))

  // Of the world's own settings only Redis is of use.
  const others = Object.keys(world.env).filter((name) => /^HCLOUD_|WEBHOOK/.test(name))
  const none = Object.fromEntries(others.map((name) => [name, undefined]))
  const all = world.start('all', { env: { ...none, WINDLASS_CLUSTERS_FILE: file } })
  const { host, port } = await all.logged('the server listens')
  await eventually(
    async () => {
      const looked = new Set(
        all.lines().flatMap(({ msg, cluster }) => (msg === 'enqueued everything once more' ? [cluster] : [])),
      )
      return looked.size === sides.size
    },
    'every cluster was looked at once',
    120_000,
  )
  await eventually(() => isQuiet(`http://${host}:${port}/v1/backlog`), 'nothing is left to do', 120_000)

  for (const [id, { kubernetes, hcloud }] of sides) {
    const patches = kubernetes.requests
      .slice(before.get(id))
      .filter(({ method, resource }) => method !== 'GET' && resource !== 'events')
      .map(({ method, url, body }) => `${method} ${url} ${JSON.stringify(body)}`)
    t.same({ cloud: writesOf(hcloud), patches }, { cloud: [], patches: [] }, id)
  }
  t.comment(`${sides.size} cases were taken over`)
})

t.test('beside a controller that still runs it only plans, and goes on when that one is gone', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  await world.addNode('w1')
  await world.addService('web')
  const lease = {
    holderIdentity: 'node-1_0b9e',
    leaseDurationSeconds: 3,
    acquireTime: renewal(),
    renewTime: renewal(),
    leaseTransitions: 1,
  }
  await world.api.create(LEASES, { metadata: { ...LEASE }, spec: lease }, world.call)
  let renewing = true
  const renewals = (async () => {
    while (renewing) {
      await delay(300)
      const body = { spec: { renewTime: renewal() } }
      await world.api.patch(LEASES, LEASE, { type: 'merge', body }, world.call)
    }
  })()
  const versions = async () =>
    [...(await world.nodes()), ...(await world.services())].map(({ metadata }) => metadata.resourceVersion)
  const before = await versions()

  const all = world.start('all')
  const { host, port } = await all.logged('the server listens')
  await all.logged('planned everything beside another controller')
  t.match(
    all.lines().filter(({ msg }) => msg === 'planned, not done'),
    [
      { object: 'Node/w1', changes: [/initialise/, /addresses/] },
      { object: 'Service/default/web', changes: [/finalizer/, /create load balancer/, /status/] },
    ],
  )
  const ready = await fetch(`http://${host}:${port}/readyz`)
  t.equal(ready.status, 503)
  t.match(await ready.text(), /node-1_0b9e renews Lease/, 'readiness says why')
  const said = (reason: string) =>
    eventually(async () => (await world.events()).find((event) => event.reason === reason), `Event ${reason}`)
  t.match(await said('OtherControllerRuns'), { type: 'Warning', involvedObject: { kind: 'Namespace' } })
  t.same(await versions(), before)
  t.same(writesOf(world.hcloud), [])

  const beside = world.start('worker', { env: { WINDLASS_IGNORE_OTHER_CONTROLLER: 'true' } })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'a worker that shall not care goes on')
  await beside.end()
  await world.addNode('w2')

  renewing = false
  await renewals
  world.hcloud.control.seed({ servers: [{ id: 2, name: 'w2' }] })
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the lease runs out')
  t.match(await said('OtherControllerGone'), { type: 'Normal' })
})

/** Now, as leases have it. */
const renewal = () => new Date().toISOString().replace('Z', '000Z')

/** What changed the account. What the cloud refuses to the one it refused to the other, and it may be tried again. */
function writesOf({ control }: Side['hcloud']): string[] {
  const { calls, rejected } = control.counters()
  const refused = (call: string) =>
    Object.entries(rejected).reduce((sum, [what, times]) => (what.startsWith(`${call} `) ? sum + times : sum), 0)
  return Object.keys(calls).filter((call) => !/(^| )GET /.test(call) && (calls[call] ?? 0) > refused(call))
}

/** The case's variables and flags as a cluster of a file of many. */
function clusterSettings({ id, env = {}, settings = {} }: Case, kubeconfig: string, { hcloud }: Side): unknown {
  return {
    kubeconfig,
    webhookKeys: `whsec_${Buffer.from(id.padEnd(32)).toString('base64')}`,
    framework: Object.fromEntries(Object.entries(settings).map(([key, value]) => [key.replaceAll('_', '-'), value])),
    hcloud: {
      HCLOUD_TOKEN: TOKEN,
      HCLOUD_ENDPOINT: hcloud.apiUrl,
      HCLOUD_METADATA_ENDPOINT: hcloud.metadataUrl,
      ROBOT_ENDPOINT: hcloud.robotUrl,
      HCLOUD_METRICS_ENABLED: 'false',
      ...env,
    },
  }
}

/** Nothing runs and nothing could, seen several times in a row. */
async function isQuiet(url: string): Promise<boolean> {
  for (let looks = 0; looks < 3; looks++) {
    const { waiting, active } = (await (await fetch(url)).json()) as { waiting?: number; active?: number }
    if (waiting !== 0 || active !== 0) return false
    await delay(300)
  }
  return true
}
