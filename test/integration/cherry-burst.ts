import type { KubeObject } from '../../src/kubernetes/objects.ts'
import { custom } from '../../src/kubernetes/resources.ts'
import { isInitialised, type World } from './world.ts'

const POOLS = custom<KubeObject>('metallb.io', 'v1beta1', 'IPAddressPool', 'ipaddresspools', true)
const PEERS = custom<KubeObject>('metallb.io', 'v1beta2', 'BGPPeer', 'bgppeers', true)
const ADVERTISEMENTS = custom<KubeObject>('metallb.io', 'v1beta1', 'BGPAdvertisement', 'bgpadvertisements', true)
/** Routers of the region in which everything is. */
const ROUTERS = ['188.214.132.43', '188.214.132.44']

export interface Burst {
  nodes: readonly string[]
  services: readonly string[]
}

/** Names of nodes and Services that are to appear at once, and the servers of the nodes, in no relation to Windlass yet. */
export async function prepareBurst(world: World, counts: { nodes: number; services: number }): Promise<Burst> {
  const nodes = Array.from({ length: counts.nodes }, (_, i) => `worker-${i + 1}`)
  await world.cherry.control.seed({
    servers: nodes.map((hostname, i) => ({ id: 383530 + i, hostname, tags: { team: 'blue' } })),
  })
  return { nodes, services: Array.from({ length: counts.services }, (_, i) => `service-${i + 1}`) }
}

export async function beginBurst(world: World, { nodes, services }: Burst): Promise<void> {
  await Promise.all([...nodes.map((name) => world.addNode(name)), ...services.map((name) => world.addService(name))])
}

interface CherryState {
  projects: { id: number; bgp: { enabled: boolean } }[]
  servers: { hostname: string; bgp: { enabled: boolean }; tags: Record<string, string> }[]
  ips: { address: string; type: string; tags: Record<string, string>; target_server_id: number }[]
  settings: { apiserver_port?: number }
}

export const cherryState = (world: World) => world.cherry.control.state() as unknown as CherryState

/** All that is not yet as it has to be, in sentences: in the account, on the objects, in MetalLB, and in what was said of it. */
export async function wrongIn(world: World, burst: Burst): Promise<string[]> {
  const { projects, servers, ips } = cherryState(world)
  const floating = ips.filter(({ type }) => type === 'floating-ip')
  const [nodes, services, pools, peers, advertisements] = await Promise.all([
    world.nodes(),
    world.services(),
    world.api.list(POOLS, {}, world.call),
    world.api.list(PEERS, {}, world.call),
    world.api.list(ADVERTISEMENTS, {}, world.call),
  ])
  const wrong: string[] = []
  const expect = (holds: boolean, otherwise: string) => void (holds || wrong.push(otherwise))

  expect(nodes.filter(isInitialised).length === burst.nodes.length, 'not all nodes are initialised')
  expect(projects[0]?.bgp.enabled === true, 'BGP of the project is off')
  for (const { hostname, bgp, tags } of servers) {
    expect(bgp.enabled, `BGP of ${hostname} is off`)
    expect(tags.team === 'blue', `${hostname} lost its tags`)
  }
  expect(floating.length === burst.services.length, `there are ${floating.length} floating IPs`)
  const addresses = new Map<string, string>()
  for (const { metadata, status } of services) {
    const ip = status?.loadBalancer?.ingress?.[0]?.ip
    const own = floating.filter(({ tags }) => tags['windlass-uid'] === metadata.uid).map(({ address }) => address)
    expect(own.length === 1, `Service ${metadata.name} has ${own.length} floating IPs`)
    expect(
      ip !== undefined && own.includes(ip),
      `Service ${metadata.name} shows ${ip}, and has ${own.join() || 'none'}`,
    )
    expect(
      metadata.annotations?.['metallb.io/loadBalancerIPs'] === own[0],
      `Service ${metadata.name} does not tell MetalLB its address`,
    )
    if (own[0]) addresses.set(metadata.name, own[0])
  }
  const spec = (object: KubeObject) => (object.spec ?? {}) as Record<string, unknown>
  const announced = advertisements.items.flatMap((one) => spec(one).ipAddressPools as string[])
  for (const name of burst.services) {
    const pool = pools.items.find(({ metadata }) => metadata.name === `default.${name}`)
    const wanted = `${addresses.get(name)}/32`
    expect(pool !== undefined && String(spec(pool).addresses) === wanted, `pool of ${name} has not ${wanted}`)
    expect(announced.includes(`default.${name}`), `${name} is not advertised`)
  }
  for (const node of burst.nodes)
    for (const router of ROUTERS) {
      const peer = peers.items.find((one) => {
        const selectors = JSON.stringify(spec(one).nodeSelectors)
        return spec(one).peerAddress === router && selectors.includes(`"kubernetes.io/hostname":"${node}"`)
      })
      const users = peer ? JSON.stringify(spec(peer).nodeSelectors) : ''
      expect(
        burst.services.every((name) => users.includes(`"nomatch.cherryservers.com/service-name":"${name}"`)),
        `the session of ${node} with ${router} does not serve all Services`,
      )
    }
  return wrong
}

/** What was told its users and was not so: an address that the account does not have, or a Service that is done and has no address. */
export async function untrueIn(world: World): Promise<string[]> {
  const { ips } = cherryState(world)
  const [services, events] = [await world.services(), await world.events()]
  return services.flatMap(({ metadata, status }) => {
    const shown = status?.loadBalancer?.ingress?.map(({ ip }) => ip) ?? []
    const missing = shown.filter((ip) => !ips.some(({ address }) => address === ip))
    const done = events.some(
      ({ reason, involvedObject }) => reason === 'EnsuredLoadBalancer' && involvedObject.uid === metadata.uid,
    )
    return [
      ...missing.map((ip) => `Service ${metadata.name} shows ${ip}, which the account does not have`),
      ...(done && shown.length === 0 ? [`Service ${metadata.name} is reported done, and shows no address`] : []),
    ]
  })
}

/** Calls to the cloud so far, by endpoint, and those that were refused. */
export function cherryCalls(world: World): { total: number; refused: number; byEndpoint: string } {
  const { calls, rejected } = world.cherry.control.counters()
  const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, count) => all + count, 0)
  const sorted = Object.entries(calls).sort(([, a], [, b]) => b - a)
  return {
    total: sum(calls),
    refused: sum(rejected),
    byEndpoint: sorted.map(([endpoint, count]) => `${count} × ${endpoint}`).join(', '),
  }
}
