import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { parse } from 'yaml'
import { listenOf, objectsOf, startOf, WEBHOOK_KEY } from '../chart/pods.ts'
import { freePort } from '../redis.ts'
import type { Json } from './admin.ts'
import { startApiServer } from './start.ts'

const K8S = join(import.meta.dirname, '../../k8s')

/** What the README tells to make before. */
const SECRETS: Record<string, Record<string, string>> = {
  windlass: {
    HCLOUD_TOKEN: 'k'.repeat(64),
    HCLOUD_LOAD_BALANCERS_LOCATION: 'fsn1',
    WINDLASS_HCLOUD_LOAD_BALANCER_CLASS: 'example.com/mine',
    WINDLASS_CLUSTER: 'mine',
    WINDLASS_LOG_LEVEL: 'warn',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://traces.example.com:4318',
  },
  'windlass-internal': {
    WINDLASS_WEBHOOK_KEYS: WEBHOOK_KEY,
    WINDLASS_REDIS_PASSWORD: 'secret',
    WINDLASS_DASHBOARD_PASSWORD: 'p',
  },
}

/** All manifests of an install, without those of what it is based on. */
function manifestsOf(folder: string): Json[] {
  const { resources } = parse(readFileSync(join(K8S, folder, 'kustomization.yaml'), 'utf8')) as { resources: string[] }
  return resources
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => objectsOf(readFileSync(join(K8S, folder, name), 'utf8')))
}

const deploymentsOf = (folder: string) => manifestsOf(folder).filter(({ kind }) => kind === 'Deployment')

t.test('the API server takes every install as it is, with no field that it does not know', async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const plural: Record<string, string> = {
    Deployment: 'apis/apps/v1/namespaces/windlass/deployments',
    Service: 'api/v1/namespaces/windlass/services',
    PodDisruptionBudget: 'apis/policy/v1/namespaces/windlass/poddisruptionbudgets',
  }
  for (const folder of ['single', 'split'])
    for (const manifest of manifestsOf(folder)) {
      const { kind, metadata } = manifest
      const made = await server.admin.send('POST', `/${plural[kind]}?fieldValidation=Strict`, manifest)
      t.equal(made.metadata.name, metadata.name, `${folder}: ${kind} ${metadata.name}`)
      const account = made.spec.template?.spec.serviceAccountName
      if (account === undefined) continue
      const path = `/api/v1/namespaces/windlass/serviceaccounts/${account}`
      t.equal((await server.admin.send('GET', path)).metadata.name, account, 'its account is in the base')
    }
})

for (const folder of ['single', 'split'])
  t.test(`${folder}: each container has good settings, and is asked where it listens`, async (t) => {
    const commands = new Set<string>()
    for (const { spec } of deploymentsOf(folder))
      for (const container of spec.template.spec.containers.filter(({ name }: Json) => name === 'windlass')) {
        const started = await startOf(container, manifestsOf(folder), SECRETS)
        const { command, settings } = started
        t.same(started.notices, [], `${command}: nothing to notice`)
        commands.add(command)
        if (command !== 'forwarder')
          t.ok(settings.clusters[0]?.placing.classes['example.com/mine'], `${command} knows which Services are ours`)
        t.equal(settings.clusters[0]?.id, 'mine', `${command} knows the name of the cluster`)
        t.match(settings, { log: { level: 'warn' }, traces: { endpoint: 'http://traces.example.com:4318' } }, command)
        const works = command === 'worker' || command === 'all'
        t.equal('HCLOUD_TOKEN' in started.env, works, `${command}: credentials of clouds are for those who call them`)
        const listen = listenOf(started)
        const { port: asked, host } = container.readinessProbe.httpGet
        t.equal(asked, listen?.port)
        t.equal(container.livenessProbe.httpGet.port, listen?.port)
        t.equal(host, listen?.host === '127.0.0.1' ? '127.0.0.1' : undefined, 'a probe comes from the host')
        for (const { containerPort } of container.ports ?? []) t.equal(containerPort, listen?.port)
        if (command !== 'server')
          t.ok(settings.worker.graceMs / 1000 < spec.template.spec.terminationGracePeriodSeconds)
      }
    t.same([...commands].sort(), folder === 'single' ? ['all'] : ['forwarder', 'server', 'worker'])
  })

t.test('Pods can start before anything of the cluster works, and leave a node that is lost', async (t) => {
  const ports = new Map<number, string>()
  for (const folder of ['single', 'split'])
    for (const { metadata, spec } of deploymentsOf(folder)) {
      const pod = spec.template.spec
      t.match(
        pod,
        { hostNetwork: true, dnsPolicy: 'Default', priorityClassName: 'system-cluster-critical' },
        metadata.name,
      )
      const tolerates = (key: string, effect: string) =>
        pod.tolerations.filter((one: Json) => one.key === key && (one.effect ?? effect) === effect)
      for (const key of ['node.cloudprovider.kubernetes.io/uninitialized', 'node.kubernetes.io/not-ready'])
        t.same(
          tolerates(key, 'NoSchedule').map((one: Json) => one.tolerationSeconds),
          [undefined],
          key,
        )
      t.same(
        tolerates('node.kubernetes.io/unreachable', 'NoExecute').map((one: Json) => one.tolerationSeconds),
        [30],
      )
      if (folder !== 'split') continue
      for (const { containerPort } of pod.containers.flatMap(({ ports = [] }: Json) => ports)) {
        t.notOk(ports.has(containerPort), `port ${containerPort} of the host is of one only`)
        ports.set(containerPort, metadata.name)
      }
    }
  for (const { metadata, spec } of manifestsOf('split').filter(({ kind }) => kind === 'Service'))
    t.equal(ports.get(spec.ports[0].targetPort), metadata.name, `Service ${metadata.name} leads to its own`)
})

t.test(
  'Redis of the split install wants its password, which no list of processes shows, and evicts nothing',
  async (t) => {
    const [container] =
      deploymentsOf('split').find(({ metadata }) => metadata.name === 'windlass-redis')?.spec.template.spec
        .containers ?? []
    const port = await freePort()
    const script = String(container.args[0]).replace('port 16379', `port ${port}\nbind 127.0.0.1`)
    t.not(script, container.args[0])
    const child = spawn(container.command[0], [...container.command.slice(1), script], {
      env: { PATH: process.env.PATH, WINDLASS_REDIS_PASSWORD: 'very secret' },
      cwd: dirname(t.testdir()),
      stdio: 'ignore',
    })
    t.teardown(async () => {
      child.kill()
      await once(child, 'exit')
    })
    const redis = new Redis({ port, password: 'very secret', retryStrategy: () => 50, maxRetriesPerRequest: null })
    const stranger = new Redis({ port, retryStrategy: () => 50, maxRetriesPerRequest: null })
    t.teardown(() => {
      redis.disconnect()
      stranger.disconnect()
    })
    redis.on('error', () => {})
    stranger.on('error', () => {})
    t.same(await redis.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction'])
    t.same(await redis.config('GET', 'save'), ['save', ''])
    await t.rejects(stranger.ping(), { message: /NOAUTH/ })
    await delay(10)
    t.notMatch(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8'), /very secret/)
  },
)

t.test('no Deployment of one install takes the Pods of the other for its own', async (t) => {
  const all = ['single', 'split'].flatMap(deploymentsOf)
  for (const { metadata, spec } of all) {
    const wanted = Object.entries(spec.selector.matchLabels)
    const taken = all.filter((one) => wanted.every(([key, value]) => one.spec.template.metadata.labels[key] === value))
    t.same(
      taken.map((one) => one.metadata.name),
      [metadata.name],
    )
  }
})

t.test('no worker of one install starts while a Pod of the other is there: they have no Redis in common', async (t) => {
  const writers = new Map<string, Json>()
  for (const folder of ['single', 'split'])
    for (const { spec } of deploymentsOf(folder)) {
      const { containers } = spec.template.spec
      if (containers.some(({ args = [] }: Json) => /^(all|worker)$/.test(args[0]))) writers.set(folder, spec.template)
    }
  for (const [mine, other] of [
    ['single', 'split'],
    ['split', 'single'],
  ] as const) {
    const [term, ...more] =
      writers.get(mine).spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
    t.same(more, [])
    // Every node has this label from its kubelet, and all have the same value of it.
    t.match(term, { topologyKey: 'kubernetes.io/os', namespaceSelector: {} })
    const { labels } = writers.get(other).metadata
    t.ok(
      Object.entries(term.labelSelector.matchLabels).every(([key, value]) => labels[key] === value),
      `${mine} waits for ${other}`,
    )
  }
})

t.test('deleting the files of an install, one by one, takes neither a Secret nor a namespace', (t) => {
  const kinds = new Set<string>()
  for (const folder of ['base', 'single', 'split'])
    for (const { kind, metadata } of manifestsOf(folder)) {
      if (kind !== 'Namespace') kinds.add(kind)
      else t.same([folder, metadata.name], ['base', 'windlass'], 'it has a file of its own')
    }
  t.same(objectsOf(readFileSync(join(K8S, 'base/namespace.yaml'), 'utf8')).length, 1)
  t.notOk(kinds.has('Secret'))
  t.end()
})
