import type { Project } from '../../cloud/cherry/model.ts'
import { owns } from '../../cloud/cherry/provider-id.ts'
import { type CherryLoadBalancer, parseCherryLoadBalancer } from '../../config/cherry-load-balancer.ts'
import { nearest } from '../../config/nearest.ts'
import { matches, parseSelector } from '../../config/selector.ts'
import type { CherrySettings, FrameworkSettings } from '../../config/types.ts'
import { eligibleNodes } from '../../controllers/service/eligible.ts'
import type { NodeProjection } from '../../events/projection.ts'
import { type CherryAccount, serverOf } from './cherry.ts'
import { ok, problem, some, warning } from './finding.ts'
import type { Finding } from './types.ts'

const AREA = 'cherry load balancers'

/** How addresses are announced; undefined when no Service gets one. */
export function balancerOf(
  { loadBalancer }: CherrySettings,
  { controllers }: FrameworkSettings,
): CherryLoadBalancer | undefined {
  if (!loadBalancer || !controllers.has('service-lb-controller')) return undefined
  const parsed = parseCherryLoadBalancer(loadBalancer)
  return 'value' in parsed ? parsed.value : undefined
}

export interface LoadBalancerQuestion {
  settings: CherrySettings
  framework: FrameworkSettings
  account: CherryAccount
  /** Undefined when the cluster could not be asked. */
  nodes: readonly NodeProjection[] | undefined
}

/** What Services get addresses from, as far as the account and the nodes tell. */
export function checkCherryLoadBalancers({ settings, framework, account, nodes }: LoadBalancerQuestion): Finding[] {
  const balancer = balancerOf(settings, framework)
  if (!balancer)
    return [
      ok(
        AREA,
        settings.loadBalancer
          ? 'Services get no addresses: --controllers leaves out service-lb-controller'
          : 'Services get no addresses: CHERRY_LOAD_BALANCER is not set',
      ),
    ]
  return [
    checkBgp(account.project, settings),
    checkRegion(account, settings, nodes),
    ...checkSelector(settings, nodes),
    ...saidBy(balancer),
  ]
}

function checkBgp({ bgpEnabled, localAsn }: Project, { projectId }: CherrySettings): Finding {
  if (!bgpEnabled)
    return ok(AREA, `BGP of project ${projectId} is off: it is switched on with the first Service of type LoadBalancer`)
  if (localAsn !== 0) return ok(AREA, `BGP of project ${projectId} is on, with ASN ${localAsn}`)
  return problem(
    AREA,
    `BGP of project ${projectId} is on, and Cherry Servers has given it no ASN: nodes have no BGP sessions, and Services wait`,
    'Wait if it was just switched on; else ask Cherry Servers for the ASN of the project',
  )
}

function checkRegion(
  { servers, addresses }: CherryAccount,
  { region, annotations }: CherrySettings,
  nodes: readonly NodeProjection[] | undefined,
): Finding {
  const onService = `annotation ${annotations.fipRegion}`
  if (region === undefined || region === '')
    return warning(
      AREA,
      'No region is set, so a Service without an address of its own gets one only where it names a region',
      `Set CHERRY_REGION_NAME to the region of the nodes, or give every Service the ${onService}`,
    )
  const known = regionsOf([...(servers ?? []), ...(addresses ?? [])])
  if (known.length === 0)
    return ok(
      AREA,
      `Nothing of the project tells whether region "${region}" exists: it has no servers and no addresses`,
    )
  if (!known.includes(region)) {
    const hint = nearest(region, known)
    return warning(
      AREA,
      `None of the project's servers and addresses is in region "${region}": they are in ${some(known)}`,
      hint === undefined
        ? 'Set CHERRY_REGION_NAME to the region of the nodes, as it is written there'
        : `Set CHERRY_REGION_NAME=${hint}, if that is what was meant`,
    )
  }
  const hosting = regionsOf((nodes ?? []).flatMap((node) => serverOf(node, servers ?? []) ?? []))
  if (hosting.length > 0 && !hosting.includes(region))
    return warning(
      AREA,
      `No node is in region "${region}", where addresses are made: the nodes are in ${some(hosting)}`,
      `Set CHERRY_REGION_NAME to a region that has nodes to announce its addresses, unless all Services have the ${onService}`,
    )
  return ok(AREA, `Addresses are made in region "${region}", where the project has servers or addresses`)
}

const regionsOf = (all: readonly { region: string }[]) =>
  [...new Set(all.map(({ region }) => region))].filter(Boolean).sort()

function checkSelector({ bgpNodeSelector }: CherrySettings, nodes: readonly NodeProjection[] | undefined): Finding[] {
  const selector = parseSelector(bgpNodeSelector ?? '')
  const able = eligibleNodes(nodes ?? []).filter(({ providerId }) => providerId === undefined || owns(providerId))
  if (!bgpNodeSelector || !('value' in selector) || able.length === 0) return []
  const selected = able.filter(({ labels }) => matches(selector.value, labels))
  if (selected.length > 0)
    return [
      ok(AREA, `CHERRY_BGP_NODE_SELECTOR selects ${selected.length} of ${able.length} nodes to announce addresses`),
    ]
  return [
    problem(
      AREA,
      `CHERRY_BGP_NODE_SELECTOR "${bgpNodeSelector}" selects none of the ${able.length} nodes that may announce addresses: no address is announced`,
      'Label nodes so that it selects them, or correct it',
    ),
  ]
}

/** MetalLB is looked at in the cluster. */
function saidBy(balancer: CherryLoadBalancer): Finding[] {
  switch (balancer.kind) {
    case 'metallb':
      return []
    case 'kube-vip':
      return [
        ok(AREA, 'kube-vip announces the addresses, by annotations of Services and nodes: nothing else is needed'),
      ]
    case 'empty':
      return [ok(AREA, 'Addresses are written into annotations, and whoever reads them announces them')]
  }
}
