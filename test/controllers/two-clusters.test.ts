import t, { type Test } from 'tap'
import type { KubeObject } from '../../src/kubernetes/objects.ts'
import { custom, NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { type Cloud, startWorld, type World } from '../integration/world.ts'
import { shortLived } from './short-lived.ts'

/** A cluster with all of its things brought in order again and again by hand, in the account of the world `at`. */
async function cluster(
  t: Test,
  at: World | undefined,
  clouds: readonly Cloud[],
  more: { env: Record<string, string>; cidr: string },
) {
  const world = await startWorld({ kubernetes: 'simulator', clouds })
  t.teardown(() => world.stop())
  const account = at ?? world
  const env = {
    ...(clouds.includes('hcloud') ? { HCLOUD_ENDPOINT: account.hcloud.apiUrl } : {}),
    ...(clouds.includes('cherry') ? { CHERRY_API_URL: account.cherry.apiUrl } : {}),
    ...more.env,
  }
  const workers = await shortLived(world, env, { 'cluster-cidr': more.cidr })
  t.teardown(() => workers.close())
  const at_ = (name: string) => ({ namespace: 'default', name })
  return {
    world,
    async settle() {
      for (const { metadata } of await world.nodes()) await workers.settle('node', `Node/${metadata.name}`)
      // One that is refused never settles.
      for (const { metadata } of await world.services())
        await workers.settle('service', `Service/default/${metadata.name}`, 3).catch(() => {})
      await workers.settle('route', 'Cluster/routes')
      await workers.settle('resync', 'Cluster/resync')
    },
    edit: (name: string, body: object) => world.api.patch(SERVICES, at_(name), { type: 'merge', body }, world.call),
    async remove(name: string) {
      await world.api.delete(SERVICES, at_(name), world.call)
      await workers.settle('service', `Service/default/${name}`)
    },
    removeNode: (name: string) => world.api.delete(NODES, { name }, world.call),
  }
}
type Windlass = Awaited<ReturnType<typeof cluster>>

/** Everything that a cluster does in its life; `same` is asked after each step. */
async function live(
  one: Windlass,
  names: { nodes: string[]; annotations: Record<string, string> },
  podCidr: string,
  same: (step: string) => void,
) {
  const { world, settle, edit, remove, removeNode } = one
  const [first = '', second = ''] = names.nodes
  const step = async (what: string) => {
    await settle()
    same(what)
  }
  await world.addNode(first, { podCIDR: `${podCidr}.1.0/24` })
  await step('a node joins')
  const ports = [{ name: 'http', port: 80 }]
  await world.addService('web', { annotations: names.annotations, ports })
  await world.addService('api', { ports })
  await step('Services appear')
  await world.addNode(second, { podCIDR: `${podCidr}.2.0/24` })
  await step('another node joins')
  await edit('api', { spec: { ports: [{ name: 'http', port: 8080, protocol: 'TCP' }] } })
  await step('a port changes')
  await edit('api', { spec: { type: 'ClusterIP' } })
  await step('one stops to want a load balancer')
  await edit('api', { spec: { type: 'LoadBalancer' } })
  await step('and wants one again')
  await removeNode(first)
  await step('a node goes')
  for (const name of ['web', 'api']) await remove(name)
  await removeNode(second)
  await step('all goes')
}

t.test('two clusters in one Hetzner project, with the same names, and things of others', async (t) => {
  const env = { HCLOUD_NETWORK: 'shared', HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK: 'true' }
  const own = await cluster(t, undefined, ['hcloud'], { env, cidr: '10.244.0.0/16' })
  const { control } = own.world.hcloud
  const at = (id: number) => ({ id, name: `w${id}`, private_net: [{ network: 5, ip: `10.0.0.${10 + id}` }] })
  control.seed({
    networks: [
      {
        id: 5,
        name: 'shared',
        ip_range: '10.0.0.0/8',
        subnets: [{ ip_range: '10.0.0.0/24' }],
        routes: [{ destination: '10.99.0.0/16', gateway: '10.0.0.11' }],
      },
    ],
    servers: [1, 2, 3, 4].map(at),
    certificates: [{ id: 701, name: 'by-hand' }],
    load_balancers: [
      {
        name: 'by-hand',
        labels: { team: 'a' },
        services: [{ protocol: 'tcp', listen_port: 22, destination_port: 22 }],
        targets: [{ type: 'server', server: 'w1' }],
      },
    ],
  })
  const annotations = {
    'load-balancer.hetzner.cloud/name': 'same-name',
    'load-balancer.hetzner.cloud/use-private-ip': 'true',
  }
  await live(own, { nodes: ['w1', 'w2'], annotations }, '10.244', () => {}).catch((error) => t.fail(error))
  // What stays of it is there when the other one comes.
  for (const id of [1, 2]) await own.world.addNode(`w${id}`, { podCIDR: `10.244.${id}.0/24` })
  for (const name of ['web', 'api']) await own.world.addService(name, name === 'web' ? { annotations } : {})
  await own.settle()

  const other = await cluster(t, own.world, ['hcloud'], { env, cidr: '10.245.0.0/16' })
  const uids = new Set((await own.world.services()).map(({ metadata }) => metadata.uid))
  type Thing = {
    name: string
    labels: Record<string, string>
    routes?: { destination: string }[]
    load_balancers?: unknown
  }
  const foreign = () => {
    const { load_balancers, networks, certificates, servers } = control.state() as Record<string, Thing[]>
    const kept = load_balancers?.filter(
      ({ name, labels }) => name === 'by-hand' || uids.has(labels['hcloud-ccm/service-uid'] ?? ''),
    )
    return JSON.stringify([
      kept,
      certificates,
      networks?.map((one) => ({
        ...one,
        load_balancers: null,
        routes: one.routes?.filter(({ destination }) => !destination.startsWith('10.245.')),
      })),
      servers?.map((one) => ({ ...one, load_balancers: null })),
    ])
  }
  const before = foreign()
  for (const what of ['"by-hand"', '"same-name"', '10.99.0.0/16', '10.244.1.0/24', '10.244.2.0/24'])
    t.match(before, what)
  let made = 0
  await live(other, { nodes: ['w3', 'w4'], annotations }, '10.245', (step) => {
    made = Math.max(made, (control.state().load_balancers as unknown[]).length)
    if (foreign() !== before) t.fail(`${step}: ${foreign()} in place of ${before}`)
  })
  t.equal(made, 4, 'the other one had a load balancer of its own beside the three')
  t.equal(foreign(), before)
  t.equal((control.state().load_balancers as unknown[]).length, 3, 'and has left none')
  t.ok(
    (await other.world.events()).some(({ message }) => message?.includes('belongs to the Service with uid')),
    'who has the name is said',
  )
})

t.test('two clusters in one Cherry project, with the same names, and things of others', async (t) => {
  const own = await cluster(t, undefined, ['cherry'], { env: {}, cidr: '10.244.0.0/16' })
  const { control } = own.world.cherry
  await control.seed({
    servers: [1, 2, 3, 4].map((id) => ({ id: 383530 + id, hostname: `w${id}`, tags: { team: `t${id}` } })),
    ips: [{ address: '5.199.171.222', region: 'LT-Siauliai', tags: { mine: 'yes' } }],
  })
  for (const name of ['w1', 'w2']) await own.world.addNode(name)
  for (const name of ['web', 'api']) await own.world.addService(name)
  await own.settle()

  const other = await cluster(t, own.world, ['cherry'], { env: {}, cidr: '10.245.0.0/16' })
  const pools = custom<KubeObject>('metallb.io', 'v1beta1', 'IPAddressPool', 'ipaddresspools', true)
  const peers = custom<KubeObject>('metallb.io', 'v1beta2', 'BGPPeer', 'bgppeers', true)
  const create = (kind: typeof pools, name: string, spec: object) =>
    other.world.api.create(kind, { metadata: { name, namespace: 'metallb-system' }, spec }, other.world.call)
  await create(pools, 'by-hand', { addresses: ['192.0.2.0/24'] })
  await create(peers, 'by-hand', { myASN: 64512, peerASN: 64512, peerAddress: '192.0.2.1' })

  type Address = { address: string; tags: Record<string, string> }
  type Server = { hostname: string; tags: Record<string, string> }
  const state = () => control.state() as unknown as { ips: Address[]; servers: Server[]; projects: unknown[] }
  const theirs = new Set(state().ips.map(({ address }) => address))
  const foreign = () =>
    JSON.stringify([
      state().ips.filter(({ address }) => theirs.has(address)),
      state().servers.filter(({ hostname }) => ['w1', 'w2'].includes(hostname)),
      state().servers.map(({ tags }) => tags),
      state().projects,
    ])
  const objects = async () =>
    JSON.stringify(
      await Promise.all(
        [pools, peers].map(async (kind) =>
          (await other.world.api.list(kind, {}, other.world.call)).items.filter(
            ({ metadata }) => metadata.name === 'by-hand',
          ),
        ),
      ),
    )
  const before = foreign()
  const objectsBefore = await objects()
  const count = state().ips.length
  let made = 0
  await live(other, { nodes: ['w3', 'w4'], annotations: {} }, '10.245', (step) => {
    made = Math.max(made, state().ips.length)
    if (foreign() !== before) t.fail(`${step}: ${foreign()} in place of ${before}`)
  })
  t.equal(made, count + 2, 'the other one had two addresses of its own')
  t.equal(foreign(), before)
  t.equal(state().ips.length, count, 'and has left none')
  t.equal(await objects(), objectsBefore)
})
