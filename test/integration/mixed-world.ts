import type { KubeObject, KubeService } from '../../src/kubernetes/objects.ts'
import { custom, NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { cherryState } from './cherry-burst.ts'
import { eventually, isInitialised, startWorld, type World } from './world.ts'

export const HETZNER_CLASS = 'windlass.dev/hcloud'
/** Label of a load balancer at Hetzner. */
export const SERVICE_UID = 'hcloud-ccm/service-uid'
export const CHERRY_CLASS = 'windlass.dev/cherryservers'
const POOLS = custom<KubeObject>('metallb.io', 'v1beta1', 'IPAddressPool', 'ipaddresspools', true)
const PEERS = custom<KubeObject>('metallb.io', 'v1beta2', 'BGPPeer', 'bgppeers', true)

/** One cluster at two clouds: nodes h1 and h2 at Hetzner, c1 and c2 at Cherry. Neither they nor Windlass are there yet. */
export async function startMixedWorld(): Promise<World> {
  const world = await startWorld({ clouds: ['hcloud', 'cherry'] })
  await world.hcloud.control.seed({ servers: ['h1', 'h2'].map((name, i) => ({ id: i + 1, name })) })
  await world.cherry.control.seed({ servers: ['c1', 'c2'].map((hostname, i) => ({ id: 383530 + i, hostname })) })
  return world
}

export async function nodesReady(world: World, names: readonly string[]): Promise<void> {
  await eventually(async () => {
    const ready = (await world.nodes()).filter(isInitialised).map(({ metadata }) => metadata.name)
    return names.every((name) => ready.includes(name))
  }, `${names.join()} are initialised`)
}

export const serviceNamed = async (world: World, name: string): Promise<KubeService | undefined> =>
  (await world.services()).find(({ metadata }) => metadata.name === name)

export const addressOf = (world: World, name: string): Promise<string> =>
  eventually(
    async () => (await serviceNamed(world, name))?.status?.loadBalancer?.ingress?.[0]?.ip,
    `Service ${name} has an address`,
  )

/** Load balancers at Hetzner, each with the names of its targets. */
export async function balancers(world: World): Promise<{ uid: string | undefined; targets: string[] }[]> {
  const { load_balancers, servers } = await world.account()
  const names = new Map(servers.map(({ id, name }) => [id, name]))
  return load_balancers.map(({ labels, targets }) => ({
    uid: labels[SERVICE_UID],
    targets: targets.map((target) => names.get(target.server?.id ?? 0) ?? '?').sort(),
  }))
}

export const floatingIps = (world: World) => cherryState(world).ips.filter(({ type }) => type === 'floating-ip')

/** Host names of Cherry's servers that have BGP on. */
export const speakers = (world: World) =>
  cherryState(world)
    .servers.filter(({ bgp }) => bgp.enabled)
    .map(({ hostname }) => hostname)
    .sort()

/** What MetalLB is told: pools by name, and the nodes that have peers. */
export async function announced(world: World): Promise<{ pools: string[]; nodes: string[] }> {
  const [pools, peers] = await Promise.all([
    world.api.list(POOLS, {}, world.call),
    world.api.list(PEERS, {}, world.call),
  ])
  const hosts = JSON.stringify(peers.items.map(({ spec }) => spec)).matchAll(/"kubernetes.io\/hostname":"([^"]+)"/g)
  return {
    pools: pools.items.map(({ metadata }) => metadata.name).sort(),
    nodes: [...new Set([...hosts].map(([, host]) => host ?? ''))].sort(),
  }
}

/** Class and type at once, as a user may; undefined wipes the class. */
export const patchService = (world: World, name: string, spec: Record<string, unknown>) =>
  world.api.patch(SERVICES, { namespace: 'default', name }, { type: 'merge', body: { spec } }, world.call)

export async function setReady(world: World, name: string, status: 'True' | 'False'): Promise<void> {
  const conditions = [
    { type: 'Ready', status, reason: 'Test', lastTransitionTime: `${new Date().toISOString().slice(0, 19)}Z` },
  ]
  const patch = { type: 'strategic', subresource: 'status', body: { status: { conditions } } } as const
  await world.api.patch(NODES, { name }, patch, world.call)
}
