/**
 * A worker dies before each of the writes that a Service takes, or somebody deletes what there is by then, or the answer to each of its
 * requests to the cloud is lost or odd; then workers that know nothing of it go on. In the end there is one of everything, and nothing once the Service has gone.
 */
import t, { type Test } from 'tap'
import { WindlassError } from '../../../src/errors.ts'
import type { KubeObject, KubeService } from '../../../src/kubernetes/objects.ts'
import { custom, SERVICES } from '../../../src/kubernetes/resources.ts'
import { isInitialised, startWorld, type World } from '../../integration/world.ts'
import { type ShortLived, shortLived } from '../short-lived.ts'

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

interface Cloud {
  world: World
  workers: ShortLived
  annotations: Record<string, string>
  /** Before each Service: what the first one needs is needed again. */
  begin?(): Promise<void>
  /** All that is there for any Service, in words. */
  present(): Promise<string[]>
  /** Addresses at the cloud of the Service of this uid. */
  addressesOf(uid: string): string[]
  /** Behind the back of everybody. */
  vanish(): Promise<void>
  /** Does something to one request. */
  fault(fault: object): void
  /** Whether that was done, and no more of it. */
  struck(kind: string): boolean
}

/** What a read, or a write, may be answered with; `ODD=cut,truncated` tries others. */
const ODD = (process.env.ODD?.split(',') ?? ['html', 'empty-list']).map((kind) => ({ kind }))

type Disturbance = (key: string, point: number) => Promise<boolean>

const serviceOf = (world: World, name: string) =>
  world.api.get(SERVICES, { namespace: 'default', name }, world.call) as Promise<KubeService | undefined>

/** Each disturbance answers whether there was such a point. */
function disturbances({ world, workers, vanish, fault, struck }: Cloud): Record<string, Disturbance> {
  const dies: Disturbance = async (key, write) => (await workers.run('service', key, { write })).end === 'died'
  const answers =
    (method: string, how: { kind: string; [field: string]: unknown }): Disturbance =>
    async (key, point) => {
      fault({ method, path: '', after: point - 1, times: 1, ...how })
      await workers.run('service', key).catch(() => {})
      return struck(how.kind)
    }
  const loses = (method: string) => answers(method, { kind: 'drop-after-commit' })
  return {
    'a worker dies': dies,
    'a worker dies, and Redis forgets everything': async (key, point) => {
      const reached = await dies(key, point)
      await world.redis.flush()
      return reached
    },
    'somebody deletes it': async (key, write) => {
      let reached = false
      const happens = async () => {
        reached = true
        await vanish()
      }
      await workers.run('service', key, { write, happens })
      return reached
    },
    'the answer to a POST is lost': loses('POST'),
    'the answer to a PUT is lost': loses('PUT'),
    'the answer to a DELETE is lost': loses('DELETE'),
    ...Object.fromEntries(
      ODD.flatMap((how) =>
        ['GET', 'POST'].map((method) => [`a ${method} is answered with ${JSON.stringify(how)}`, answers(method, how)]),
      ),
    ),
  }
}

async function sweep(t: Test, cloud: Cloud): Promise<void> {
  const { world, workers, annotations, present, addressesOf } = cloud
  const settle = async (key: string) => {
    try {
      await workers.settle('service', key)
    } catch (error) {
      if (!(error instanceof WindlassError) || error.code !== 'address_in_doubt') throw error
      // For a minute a lost answer is remembered, in case a list shows late what came of it: that time is over.
      await world.redis.flush()
      await workers.settle('service', key)
    }
  }
  let number = 0
  const create = async () => {
    await cloud.begin?.()
    const name = `s${++number}`
    const { metadata } = await world.addService(name, {
      annotations,
      ports: [{ name: 'http', port: 80, nodePort: 30080 }],
    })
    return { name, uid: metadata.uid, key: `Service/default/${name}` }
  }
  /** There is one of everything, and the Service shows it. */
  const complete = async ({ name, uid }: { name: string; uid: string }, what: string) => {
    const service = await serviceOf(world, name)
    const shown = service?.status?.loadBalancer?.ingress?.flatMap(({ ip }) => ip ?? []) ?? []
    const own = addressesOf(uid)
    const right =
      own.length > 0 && `${shown.sort()}` === `${own.sort()}` && service?.metadata.finalizers?.includes(FINALIZER)
    if (!right) t.fail(`${what}: shows ${shown}, has ${own}, ${service?.metadata.finalizers}`)
    const all = (await present()).map((one) => one.replaceAll(name, 'S').replaceAll(uid, 'UID'))
    return all.sort().join('; ')
  }
  const remove = ({ name }: { name: string }) => world.api.delete(SERVICES, { namespace: 'default', name }, world.call)

  const first = await create()
  await settle(first.key)
  const wanted = await complete(first, 'undisturbed')
  await remove(first)
  await settle(first.key)
  const nothing = (await present()).join('; ')

  for (const [how, disturb] of Object.entries(disturbances(cloud))) {
    let points = 0
    for (let point = 1, more = true; more; point++) {
      const service = await create()
      const made = await disturb(service.key, point)
      await settle(service.key)
      const what = `${how} (${point})`
      const found = await complete(service, `${what} while it is made`)
      if (found !== wanted) t.fail(`${what} while it is made: ${found} in place of ${wanted}`)
      await remove(service)
      const gone = await disturb(service.key, point)
      await settle(service.key)
      const left = (await present()).join('; ')
      if (left !== nothing) t.fail(`${what} while it goes: ${left} in place of ${nothing}`)
      if (await serviceOf(world, service.name)) t.fail(`${what} while it goes: the Service is still there`)
      points += Number(made) + Number(gone)
      more = made || gone
      if (!t.passing()) return
    }
    t.pass(`${how}: ${points} points`)
    t.comment(`${how}: ${points} points`)
  }
}

t.test('at Hetzner', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator', hcloud: { action_ms: 0 } })
  t.teardown(() => world.stop())
  const { control } = world.hcloud
  control.seed({
    networks: [{ id: 5, name: 'kube', ip_range: '10.0.0.0/8', subnets: [{ ip_range: '10.0.0.0/24' }] }],
    servers: [1, 2].map((id) => ({ id, name: `w${id}`, private_net: [{ network: 5, ip: `10.0.0.1${id}` }] })),
  })
  const workers = await shortLived(world, { HCLOUD_NETWORK: 'kube', HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK: 'true' })
  t.teardown(() => workers.close())
  for (const name of ['w1', 'w2']) {
    await world.addNode(name)
    await workers.settle('node', `Node/${name}`)
  }
  t.ok((await world.nodes()).every(isInitialised))
  interface Balancer {
    name: string
    labels: Record<string, string>
    private_net: { ip: string }[]
    public_net: { enabled: boolean; ipv4: { ip: string; dns_ptr: string }; ipv6: { ip: string } }
    services: { protocol: string; listen_port: number; http?: { certificates: number[] } }[]
    targets: { server?: { id: number }; use_private_ip: boolean }[]
  }
  const state = () => control.state() as { load_balancers: Balancer[]; certificates: { name: string }[] }
  let before = 0
  await sweep(t, {
    world,
    workers,
    annotations: Object.fromEntries(
      Object.entries({
        'use-private-ip': 'true',
        'private-ipv4': '10.0.0.77',
        'ipv4-rdns': 'web.example.com',
        protocol: 'https',
        'certificate-type': 'managed',
        'http-managed-certificate-domains': 'web.example.com',
      }).map(([key, value]) => [`load-balancer.hetzner.cloud/${key}`, value]),
    ),
    present: async () => [
      ...state().load_balancers.map(
        ({ labels, private_net, public_net, services, targets }) =>
          `load balancer of ${labels['hcloud-ccm/service-uid']} at ${private_net.map(({ ip }) => ip)}, ${public_net.ipv4.dns_ptr}, listeners ${services.map((one) => `${one.protocol} ${one.listen_port} ${one.http?.certificates.length}`)}, targets ${targets.map((one) => `${one.server?.id} ${one.use_private_ip}`).sort()}`,
      ),
      ...state().certificates.map(({ name }) => `certificate ${name}`),
    ],
    addressesOf: (uid) =>
      state()
        .load_balancers.filter(({ labels }) => labels['hcloud-ccm/service-uid'] === uid)
        .flatMap(({ public_net, private_net }) => [
          public_net.ipv4.ip,
          public_net.ipv6.ip,
          ...private_net.map(({ ip }) => ip),
        ]),
    async vanish() {
      control.mutate({ load_balancers: state().load_balancers.map(({ name }) => ({ name, delete: true })) })
    },
    fault(fault) {
      before = control.log().length
      control.fault(fault)
    },
    struck(kind) {
      control.fault({ clear: true })
      return control
        .log()
        .slice(before)
        .some(({ fault }) => fault === kind)
    },
  })
})

t.test('at Cherry Servers', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator', clouds: ['cherry'] })
  t.teardown(() => world.stop())
  const { control } = world.cherry
  await control.seed({ servers: ['w1', 'w2'].map((hostname, i) => ({ id: 383530 + i, hostname })) })
  const workers = await shortLived(world)
  t.teardown(() => workers.close())
  for (const name of ['w1', 'w2']) {
    await world.addNode(name)
    await workers.settle('node', `Node/${name}`)
  }
  t.ok((await world.nodes()).every(isInitialised))
  const kinds = Object.entries({ ipaddresspools: 'v1beta1', bgppeers: 'v1beta2', bgpadvertisements: 'v1beta1' }).map(
    ([plural, version]) => custom<KubeObject>('metallb.io', version, plural, plural, true),
  )
  const floating = () =>
    (control.state().ips as unknown as { address: string; type: string; tags: Record<string, string> }[]).filter(
      ({ type }) => type === 'floating-ip',
    )
  let before = 0
  await sweep(t, {
    world,
    workers,
    annotations: {},
    async begin() {
      await control.mutate({
        projects: [{ name: 'lab', bgp: { enabled: false } }],
        servers: ['w1', 'w2'].map((hostname) => ({ hostname, bgp: { enabled: false } })),
      })
      // What is remembered of servers and project for some seconds is not so any more.
      await world.redis.flush()
    },
    async present() {
      const objects = await Promise.all(
        kinds.map(async (kind) => {
          const { items } = await world.api.list(kind, {}, world.call)
          return items.map(({ metadata, spec }) => `${kind.plural} ${metadata.name} ${JSON.stringify(spec)}`)
        }),
      )
      // Each has an address of its own.
      const all = floating()
      const named = (text: string) => all.reduce((so, { address }) => so.replaceAll(address, 'ADDRESS'), text)
      const { servers } = control.state() as unknown as { servers: { hostname: string; bgp: { enabled: boolean } }[] }
      return [
        ...servers.map(({ hostname, bgp }) => `BGP of ${hostname} ${bgp.enabled}`),
        ...all.map(({ tags }) => `floating IP of ${tags['windlass-uid']}`),
        ...objects.flat().map(named),
      ]
    },
    addressesOf: (uid) =>
      floating()
        .filter(({ tags }) => tags['windlass-uid'] === uid)
        .map(({ address }) => address),
    async vanish() {
      await control.mutate({ ips: floating().map(({ address }) => ({ address, $delete: true })) })
      // That an address was made a moment ago counts before a list that does not show it, for half a minute: that is over.
      await world.redis.flush()
    },
    fault(fault) {
      before = control.log().length
      control.fault(fault)
    },
    struck(kind) {
      control.fault('clear')
      return control
        .log()
        .slice(before)
        .some(({ fault }) => fault === kind)
    },
  })
})
