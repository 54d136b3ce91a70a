import { isInitialised, type World } from '../integration/world.ts'

export interface Check {
  what: string
  ok: boolean
  detail: string
}

/** What must be true in the end, whatever was killed on the way. */
export async function checkEnd(world: World, expected: { nodes: number; services: number }): Promise<Check[]> {
  const [nodes, services, account] = await Promise.all([world.nodes(), world.services(), world.account()])
  const { load_balancers, servers } = account
  const idOf = new Map(servers.map(({ id, name }) => [name, id]))
  const uids = new Map(services.map(({ metadata }) => [metadata.uid, metadata.name]))
  const owners = load_balancers.map(({ labels }) => uids.get(labels['hcloud-ccm/service-uid'] ?? ''))
  const wrongNodes = nodes.filter(
    (node) => !isInitialised(node) || node.spec?.providerID !== `hcloud://${idOf.get(node.metadata.name)}`,
  )
  const lost = load_balancers.filter(
    ({ targets }) => new Set(targets.map(({ server }) => server?.id)).size !== expected.nodes,
  )
  const addresses = new Set((world.hcloud.control.state().load_balancers ?? []).flatMap(publicAddresses))
  const wrongStatus = services.filter(({ status }) => {
    const ingress = status?.loadBalancer?.ingress ?? []
    return ingress.length === 0 || ingress.some(({ ip }) => !ip || !addresses.has(ip))
  })
  return [
    {
      what: `${expected.nodes} nodes are initialised, each as its own server`,
      ok: nodes.length === expected.nodes && wrongNodes.length === 0,
      detail: `${nodes.length} nodes, wrong: ${wrongNodes.map(({ metadata }) => metadata.name).join(', ')}`,
    },
    {
      what: `there are exactly ${expected.services} load balancers, one for each Service`,
      ok:
        load_balancers.length === expected.services &&
        new Set(owners).size === expected.services &&
        !owners.includes(undefined),
      detail: `${load_balancers.length} for ${owners.join(', ')}`,
    },
    {
      what: 'no target is lost and none is there twice',
      ok: lost.length === 0,
      detail: lost.map(({ name, targets }) => `${name} has ${targets.length}`).join(', '),
    },
    {
      what: 'every Service shows the addresses of its load balancer',
      ok: wrongStatus.length === 0,
      detail: wrongStatus.map(({ metadata }) => metadata.name).join(', '),
    },
    {
      what: 'every Service has its finalizer',
      ok: services.every(({ metadata }) =>
        metadata.finalizers?.includes('service.kubernetes.io/load-balancer-cleanup'),
      ),
      detail: services.map(({ metadata }) => `${metadata.name}: ${metadata.finalizers}`).join(', '),
    },
  ]
}

function publicAddresses(loadBalancer: unknown): string[] {
  const { public_net } = loadBalancer as { public_net: { ipv4: { ip?: string }; ipv6: { ip?: string } } }
  return [public_net.ipv4.ip, public_net.ipv6.ip].filter((ip) => ip !== undefined)
}
