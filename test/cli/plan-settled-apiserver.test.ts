import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { parse, stringify } from 'yaml'
import type { ClusterPlan, PlanDocument } from '../../src/cli/plan/types.ts'
import { ADVERTISEMENT, PEER, POOL } from '../../src/cloud/cherry/load-balancers/metallb-kinds.ts'
import { EXTERNAL } from '../../src/controllers/control-plane-ip/external-service.ts'
import type { KubeObject } from '../../src/kubernetes/objects.ts'
import { ENDPOINT_SLICES, NODES, SERVICES } from '../../src/kubernetes/resources.ts'
// The real kube-apiserver is what fills in defaults: '../apiserver/start.ts'
import { CHERRY_PROJECT, eventually, startWorld } from '../integration/world.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const FIP = '127.0.0.70'
const TAG = { role: 'cp' }

/** How addresses are announced, one after the other on the same Services, with the peers that there are then. */
const BALANCERS: [balancer: string, peers: string[]][] = [
  ['metallb:///', ['cp-1-0', 'cp-1-1', 'cp-2-0', 'cp-2-1']],
  ['metallb:///?bgp-peer-mode=frr', ['lt-siauliai-0', 'lt-siauliai-1']],
  ['metallb:///?bgp-peer-mode=none', []],
  ['kube-vip://', []],
  ['empty://', []],
]

t.test('once everything is settled a plan is empty, however addresses are announced', async (t) => {
  const world = await startWorld({ kubernetes: 'apiserver', clouds: ['cherry'] })
  t.teardown(() => world.stop())
  const { api, call, cherry } = world

  const config = parse(readFileSync(world.kubeconfigFor('all'), 'utf8'))
  const { cluster } = config.clusters[0]
  const own = Buffer.from(cluster['certificate-authority-data'], 'base64').toString()
  // The simulated nodes' API servers are trusted as Kubernetes' own is.
  cluster['certificate-authority-data'] = Buffer.from(`${own.trimEnd()}\n${cherry.ca}`).toString('base64')
  const KUBECONFIG = join(world.dir, 'trusting.kubeconfig')
  writeFileSync(KUBECONFIG, stringify(config))

  await cherry.control.mutate({
    settings: { apiserver_port: Number(new URL(cluster.server).port) },
    servers: [1, 2].map((n) => ({
      create: {
        id: 500 + n,
        hostname: `cp-${n}`,
        apiserver: 'ok',
        ip_addresses: [
          { address: `127.0.0.${70 + n}`, type: 'primary-ip' },
          { address: `10.168.0.${70 + n}`, type: 'private-ip' },
        ],
      },
    })),
    ips: [{ create: { address: FIP, tags: TAG } }],
  })
  for (const name of ['cp-1', 'cp-2'])
    await world.addNode(name, { labels: { 'node-role.kubernetes.io/control-plane': '' } })
  await world.addService('web')
  await world.addService('mail')
  const slice = {
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.168.0.71'] }, { addresses: ['10.168.0.72'], conditions: { ready: true } }],
    ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  }
  await api.create(ENDPOINT_SLICES, slice, call)

  const versions = async () => {
    const lists = [NODES, SERVICES, ENDPOINT_SLICES, POOL, ADVERTISEMENT, PEER]
    const all = await Promise.all(lists.map((kind) => api.list<KubeObject>(kind, {}, call)))
    return all.flatMap(({ items }) => items.map(({ metadata: { name, resourceVersion } }) => [name, resourceVersion]))
  }

  for (const [balancer, peers] of BALANCERS)
    await t.test(balancer, async (t) => {
      const env = { KUBECONFIG, CHERRY_LOAD_BALANCER: balancer, CHERRY_FIP_TAG: 'role=cp' }
      const plan = async () => {
        const child = spawn(process.execPath, [MAIN, 'plan', '--json'], {
          env: { ...world.env, ...env },
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
        const { clusters } = JSON.parse(output) as PlanDocument
        return { code, summaries: clusters.flatMap(summariesOf) }
      }
      const before = await plan()
      t.equal(before.code, 2, 'there is something to do')
      t.ok(before.summaries.length > 0)

      const all = world.start('all', { env })
      let last: Awaited<ReturnType<typeof plan>> | undefined
      await eventually(
        async () => {
          last = await plan()
          return last.code === 0
        },
        'an empty plan',
        30_000,
      ).catch(() => t.same(last, { code: 0, summaries: [] }))
      await all.end()

      const at = await versions()
      const { requests } = cherry.control.activity()
      t.same(await plan(), { code: 0, summaries: [] })
      t.same(await versions(), at, 'a plan leaves everything as it is')
      const asked = cherry.control.log().slice(-(cherry.control.activity().requests - requests))
      t.ok(asked.length > 0 && asked.every(({ method }) => method === 'GET'))

      t.same((await api.list<KubeObject>(PEER, {}, call)).items.map(({ metadata }) => metadata.name).sort(), peers)
      const services = (await world.services()).filter(({ metadata }) => metadata.namespace === 'default')
      t.ok(services.every(({ status }) => status?.loadBalancer?.ingress?.[0]?.ip?.startsWith('5.199.171.')))
    })

  t.match(await api.get(SERVICES, EXTERNAL, call), { status: { loadBalancer: { ingress: [{ ip: FIP }] } } })
  const address = cherry.control.state().ips.find((one) => one.address === FIP)
  t.equal(address?.target_server_id, 501)
  t.equal(cherry.control.state().projects[0]?.id, CHERRY_PROJECT)
})

const summariesOf = ({ items }: ClusterPlan) =>
  items.flatMap(({ subject, changes, faults }) =>
    [...changes.map(({ summary }) => summary), ...faults].map((line) => `${subject}: ${line}`),
  )
