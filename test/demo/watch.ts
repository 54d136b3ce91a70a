import { isInitialised, type World } from '../integration/world.ts'

export interface Watching {
  look(): Promise<void>
  stop(): void
}

const EVERY_MS = 150

/** Says in words what changes in the cluster and at the cloud, as it happens. */
export function watchWorld(world: World, say: (line: string) => void): Watching {
  const told = new Map<string, string>()
  const tell = (about: string, state: string) => {
    if (told.get(about) === state) return
    told.set(about, state)
    say(`${about.padEnd(20)} ${state}`)
  }

  async function look(): Promise<void> {
    for (const node of await world.nodes()) {
      const { metadata, spec, status } = node
      const about = `Node ${metadata.name}`
      if (!isInitialised(node)) tell(about, 'has joined, and waits to be initialised')
      else
        tell(
          about,
          `${spec?.providerID} in ${metadata.labels?.['topology.kubernetes.io/zone']}, ${addresses(status?.addresses ?? [])}`,
        )
    }
    const { load_balancers, servers } = await world.account()
    const names = new Map(servers.map(({ id, name }) => [id, name]))
    for (const { name, services, targets } of load_balancers)
      tell(
        `Load balancer ${name.slice(0, 4)}…`,
        `ports ${services.map(({ listen_port }) => listen_port).join(', ') || 'none'}, targets ${targets.map(({ server }) => names.get(server?.id ?? 0)).join(', ') || 'none'}`,
      )
    for (const { metadata, status } of await world.services()) {
      const ingress = status?.loadBalancer?.ingress ?? []
      tell(
        `Service ${metadata.name}`,
        ingress.length > 0
          ? `is reachable at ${ingress.map(({ ip, hostname }) => ip ?? hostname).join(', ')}`
          : 'wants a load balancer',
      )
    }
  }

  let busy = false
  const timer = setInterval(async () => {
    if (busy) return
    busy = true
    await look().catch(() => {})
    busy = false
  }, EVERY_MS)
  return { look, stop: () => clearInterval(timer) }
}

const addresses = (all: { type: string; address: string }[]) =>
  all
    .filter(({ type }) => type !== 'Hostname')
    .map(({ address }) => address)
    .join(', ')
