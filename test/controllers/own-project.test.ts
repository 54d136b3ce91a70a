import { writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { cherryState } from '../integration/cherry-burst.ts'
import { eventually, HCLOUD_TOKEN, isInitialised, startWorld, type World } from '../integration/world.ts'
import { type HcloudSimulator, startHcloudSimulator } from '../simulators/hcloud/simulator.ts'

const FOREIGN_TOKEN = 'z'.repeat(64)

/** Two projects behind one address, as at the cloud: the token says which is meant. */
async function startTwoProjects(own: HcloudSimulator, foreign: HcloudSimulator) {
  const front = createServer((asked, answer) => {
    const { url } = asked.headers.authorization?.includes(FOREIGN_TOKEN) ? foreign : own
    const passed = request(`${url}${asked.url}`, { method: asked.method, headers: asked.headers }, (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers)
      answered.pipe(answer)
    })
    passed.on('error', () => answer.destroy())
    asked.pipe(passed)
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(front.address() as AddressInfo).port}/v1`,
    close: () => {
      front.close()
      front.closeAllConnections()
    },
  }
}

const held = (world: World, name: string) =>
  eventually(
    async () =>
      (await world.events()).some(
        ({ involvedObject, message }) => involvedObject.name === name && message?.includes('another project'),
      ),
    `an Event on ${name} says that the token may be of another project`,
  )

/** A change is looked at at once, whatever the backoff. */
async function touch(world: World, name: string): Promise<void> {
  const body = { metadata: { annotations: { touched: String(performance.now()) } } }
  await delay(200)
  await world.api.patch(SERVICES, { namespace: 'default', name }, { type: 'merge', body }, world.call)
}

t.test(
  'while the settings name another project of the same account, no address is made or given up, and BGP stays off',
  async (t) => {
    const world = await startWorld({ kubernetes: 'simulator', clouds: ['cherry'] })
    t.teardown(() => world.stop())
    const other = 99
    await world.cherry.control.seed({
      projects: [{ id: other, name: 'of somebody else' }],
      servers: [
        { id: 383530, hostname: 'w1' },
        { id: 383531, hostname: 'theirs', project: other },
      ],
    })
    const account = () => cherryState(world)
    const addresses = () =>
      account()
        .ips.filter(({ type }) => type === 'floating-ip')
        .map(({ address }) => address)
    const start = (env = {}) => world.start('all', { env: { CHERRY_LOAD_BALANCER: 'kube-vip://', ...env } })
    const first = start()
    await world.addNode('w1')
    for (const name of ['web', 'going']) await world.addService(name)
    await eventually(async () => {
      const services = await world.services()
      return services.length === 2 && services.every(({ status }) => status?.loadBalancer?.ingress?.length)
    }, 'both have an address')
    await first.end()
    const before = addresses()
    t.equal(before.length, 2)
    await world.redis.flush()

    const wrong = start({ CHERRY_PROJECT_ID: String(other) })
    await world.api.delete(SERVICES, { namespace: 'default', name: 'going' }, world.call)
    await world.addService('later')
    for (const name of ['web', 'going', 'later']) await held(world, name)
    t.same(addresses(), before)
    t.same(
      account().projects.map(({ id, bgp }) => id === other && bgp.enabled),
      [false, false],
    )
    const services = await world.services()
    t.same(services.map(({ metadata }) => metadata.name).sort(), ['going', 'later', 'web'])
    t.match(services.find(({ metadata }) => metadata.name === 'web')?.status?.loadBalancer?.ingress?.[0], { ip: /^\d/ })
    await wrong.end()

    start()
    await eventually(async () => {
      const left = await world.services()
      return left.length === 2 && left.every(({ status }) => status?.loadBalancer?.ingress?.length)
    }, 'with the right project all of it is done')
    const [web] = (await world.services()).filter(({ metadata }) => metadata.name === 'web')
    t.ok(before.includes(web?.status?.loadBalancer?.ingress?.[0]?.ip ?? ''), 'web has the address that it had')
    t.equal(addresses().length, 2)
  },
)

t.test('a token that shows nothing any more costs no node, though it showed its machine before', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const names = ['w1', 'w2', 'w3']
  world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
  world.start('all', { args: ['--node-monitor-period=1s'] })
  for (const name of names) await world.addNode(name)
  await eventually(async () => (await world.nodes()).every(isInitialised), 'all are initialised')
  const error = { code: 'not_found', message: 'server not found' }
  const body = { 'GET /servers': { servers: [] }, 'GET /servers/{id}': { error } }
  for (const [match, json] of Object.entries(body))
    world.hcloud.control.fault({
      match,
      kind: 'http',
      status: 'error' in json ? 404 : 200,
      body: JSON.stringify(json),
      times: -1,
    })
  const status = { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }
  for (const name of names)
    await world.api.patch(NODES, { name }, { type: 'merge', subresource: 'status', body: status }, world.call)
  await eventually(async () => {
    const told = (await world.events()).filter(({ message }) => message?.includes('lost its access'))
    return new Set(told.map(({ involvedObject }) => involvedObject.name)).size === names.length
  }, 'an Event on each says why it stays')
  t.equal((await world.nodes()).length, names.length)
})

const network = { id: 5, name: 'kube', ip_range: '10.0.0.0/8', subnets: [{ ip_range: '10.0.0.0/24' }] }

t.test('while the token is of another project, nothing is made, given up or deleted', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  const foreign = await startHcloudSimulator({ token: FOREIGN_TOKEN })
  const projects = await startTwoProjects(world.hcloud, foreign)
  t.teardown(async () => {
    await world.stop()
    projects.close()
    await foreign.close()
  })
  world.hcloud.control.seed({
    networks: [network],
    servers: [{ id: 1, name: 'w1', private_net: [{ network: 5, ip: '10.0.0.2' }] }],
  })
  // Another cluster with the usual names and ranges.
  foreign.control.seed({
    networks: [{ ...network, routes: [{ destination: '10.244.7.0/24', gateway: '10.0.0.7' }] }],
    servers: [{ id: 71, name: 'other', private_net: [{ network: 5, ip: '10.0.0.7' }] }],
    load_balancers: [{ id: 72, name: 'shared-name', load_balancer_type: 'lb11', location: 'fsn1' }],
  })
  const tokenFile = join(world.dir, 'token')
  writeFileSync(tokenFile, HCLOUD_TOKEN)
  const env = {
    HCLOUD_TOKEN: undefined,
    HCLOUD_TOKEN_FILE: tokenFile,
    HCLOUD_ENDPOINT: projects.endpoint,
    HCLOUD_NETWORK: 'kube',
    HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK: 'true',
  }
  world.start('all', { env, args: ['--cluster-cidr=10.244.0.0/16', '--route-reconciliation-period=1s'] })
  const routesOf = ({ control }: HcloudSimulator) =>
    (control.state().networks as { routes: { destination: string }[] }[])[0]?.routes.map((one) => one.destination)
  const balancersOf = ({ control }: HcloudSimulator) =>
    (control.state().load_balancers as { name: string; labels: object }[]).map(({ name, labels }) => ({ name, labels }))

  await world.addNode('w1', { podCIDR: '10.244.1.0/24' })
  await world.addService('web')
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the node is initialised')
  await eventually(async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length, 'web has an address')
  await eventually(async () => routesOf(world.hcloud)?.length === 1, 'the node has its route')
  const before = balancersOf(world.hcloud)

  writeFileSync(tokenFile, FOREIGN_TOKEN)
  // A secret's file is looked at once a second at most.
  await eventually(async () => {
    await touch(world, 'web')
    return foreign.control.activity().requests > 0
  }, 'the new token is in use')
  await world.addService('named', { annotations: { 'load-balancer.hetzner.cloud/name': 'shared-name' } })
  await held(world, 'named')
  await world.api.delete(SERVICES, { namespace: 'default', name: 'web' }, world.call)
  await held(world, 'web')
  await world.addNode('w2', { podCIDR: '10.244.2.0/24', providerID: 'hcloud://2' })
  await eventually(
    async () => Number(foreign.control.counters().calls['GET /networks/{id}'] ?? 0) > 1,
    'the routes were looked at',
  )
  t.same(balancersOf(foreign), [{ name: 'shared-name', labels: {} }], 'theirs is not adopted, and none is made')
  t.same(balancersOf(world.hcloud), before, 'ours stays')
  t.ok(
    (await world.services()).some(({ metadata }) => metadata.name === 'web'),
    'and so does its Service',
  )
  t.same(routesOf(foreign), ['10.244.7.0/24'], 'their route stays')

  writeFileSync(tokenFile, HCLOUD_TOKEN)
  await eventually(async () => {
    const services = await world.services()
    for (const { metadata } of services) await touch(world, metadata.name)
    return services.length === 1 && services[0]?.status?.loadBalancer?.ingress?.length
  }, 'with the right token web is gone with its load balancer, and named has its own')
  t.same(
    balancersOf(world.hcloud).map(({ name }) => name),
    ['shared-name'],
  )
})
