import t from 'tap'
import type { KubeObject } from '../../../src/kubernetes/objects.ts'
import { custom } from '../../../src/kubernetes/resources.ts'
import { startWorld, type World } from '../../integration/world.ts'
import { shortLived } from '../short-lived.ts'

const KEY = 'Service/default/web'

/** `Kind/name reason` of all warnings. */
const toldIn = async (world: World) =>
  (await world.events())
    .filter(({ type }) => type === 'Warning')
    .map(({ involvedObject: { kind, name }, reason }) => `${kind}/${name} ${reason}`)
const failureIn = async (world: World) =>
  (await world.events()).find(({ reason }) => reason === 'SyncLoadBalancerFailed')?.message
const shownIn = async (world: World) =>
  (await world.services())[0]?.status?.loadBalancer?.ingress?.flatMap(({ ip }) => ip ?? []) ?? []

t.test('one run brings all that is good in order, and says of each bad node what is wrong', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator', hcloud: { action_ms: 0 } })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({
    load_balancer_types: [{ name: 'tiny', max_targets: 3 }],
    servers: [...[1, 2, 3, 9].map((id) => ({ id, name: `w${id}` })), { id: 5, name: 'bare', ipv4: null }],
  })
  const nodes: [string, string | undefined][] = [
    ['a-gone', 'hcloud://4'],
    ['b-bare', 'hcloud://5'],
    ['c-malformed', 'hcloud://x'],
    ['d-foreign', 'aws:///eu/i-1'],
    ['e-joining', undefined],
    ['w1', 'hcloud://1'],
    ['w2', 'hcloud://2'],
    ['w3', 'hcloud://3'],
    ['w9', 'hcloud://9'],
  ]
  for (const [name, providerID] of nodes) await world.addNode(name, providerID === undefined ? {} : { providerID })
  await world.addService('web')
  for (const [type, targets, more] of [
    ['lb11', [1, 2, 3, 9], ['Node/a-gone TargetRefused']],
    ['tiny', [1, 2, 3], ['Node/a-gone MaxTargetsReached', 'Node/w9 MaxTargetsReached']],
  ] as const)
    await t.test(`with the type ${type}`, async (t) => {
      const workers = await shortLived(world, { HCLOUD_LOAD_BALANCERS_TYPE: type })
      t.teardown(() => workers.close())
      await t.rejects(workers.run('service', KEY), { name: 'WindlassError', kind: 'permanent' })
      const [balancer] = (await world.account()).load_balancers
      t.same(balancer?.targets.map(({ server }) => server?.id).sort(), targets)
      t.ok((await shownIn(world)).length > 0, 'the Service has its address')
      t.match(await failureIn(world), /node b-bare is no target/)
      const told = await toldIn(world)
      for (const one of [
        'Node/b-bare TargetRefused',
        'Node/c-malformed MalformedProviderID',
        'Node/d-foreign UnknownProviderIDPrefix',
        ...more,
      ])
        t.ok(told.includes(one), one)
      await world.redis.flush()
      world.hcloud.control.mutate({ load_balancers: [{ name: balancer?.name, delete: true }] })
    })
})

t.test('at Cherry, too', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator', clouds: ['cherry'] })
  t.teardown(() => world.stop())
  const server = (id: number, name: string, more: object = {}) => ({ id: 383530 + id, hostname: name, ...more })
  await world.cherry.control.seed({
    servers: [
      server(1, 'w1'),
      server(2, 'w2'),
      server(3, 'b-bare', { ip_addresses: [{ address: '10.168.0.3', type: 'private-ip' }] }),
      server(5, 'f-refused'),
    ],
  })
  const workers = await shortLived(world)
  t.teardown(() => workers.close())
  const nodes: [string, string | undefined][] = [
    ['a-gone', 'cherryservers://383534'],
    ['b-bare', 'cherryservers://383533'],
    ['d-foreign', 'aws:///eu/i-1'],
    ['e-joining', undefined],
    ['f-refused', 'cherryservers://383535'],
    ['w1', 'cherryservers://383531'],
    ['w2', 'cherryservers://383532'],
  ]
  for (const [name, providerID] of nodes) await world.addNode(name, providerID === undefined ? {} : { providerID })
  world.cherry.control.fault({ method: 'PUT', path: '/servers/383535$', kind: 'error', code: '500', times: -1 })
  await world.addService('web')
  const { end, error } = await workers.run('service', KEY)
  t.equal(end, 'failed', 'so it is tried again')
  t.match(error, { message: /383535|f-refused/ })
  t.equal((await shownIn(world)).length, 1)
  const peers = custom<KubeObject>('metallb.io', 'v1beta2', 'BGPPeer', 'bgppeers', true)
  const names = (await world.api.list(peers, {}, world.call)).items.map(({ metadata }) => metadata.name)
  t.same(names.sort(), ['w1-0', 'w1-1', 'w2-0', 'w2-1'])
  const told = await toldIn(world)
  for (const one of ['Node/a-gone NoBgpSpeaker', 'Node/b-bare NoBgpSpeaker', 'Service/web SyncLoadBalancerFailed'])
    t.ok(told.includes(one), `${one} in ${told.join(', ')}`)
  t.match(await failureIn(world), /383535|f-refused/)
})
