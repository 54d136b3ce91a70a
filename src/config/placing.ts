import type { Fault } from './fault.ts'
import type { Command, Values } from './setting.ts'
import type { CLUSTER } from './table/windlass.ts'
import type { ClusterSettings, Placing } from './types.ts'

/** In place of a cloud: Services without a class are somebody else's. */
export const NOWHERE = 'none'

/** How Services find their cloud. What a server knows is enough to tell ours from others'; where they go is for those who know the clouds. */
export function placingOf(
  {
    hcloudLoadBalancerClass: hcloud,
    cherryLoadBalancerClass: cherry,
    defaultLoadBalancer: unclassed,
  }: Pick<Values<typeof CLUSTER>, 'hcloudLoadBalancerClass' | 'cherryLoadBalancerClass' | 'defaultLoadBalancer'>,
  clouds: ClusterSettings['clouds'],
  { command, place, faults }: { command: Command; place: (key: string) => string | undefined; faults: Fault[] },
): Placing {
  if (hcloud === cherry)
    faults.push({
      name: place('cherryLoadBalancerClass') ?? 'WINDLASS_CHERRY_LOAD_BALANCER_CLASS',
      message: `is ${JSON.stringify(cherry)}, as the class of Hetzner is: give each cloud a class of its own`,
    })
  const why = unclassed === undefined || command === 'doctor' ? undefined : lackOf(unclassed, clouds)
  if (why !== undefined)
    faults.push({ name: place('defaultLoadBalancer') ?? 'WINDLASS_DEFAULT_LOAD_BALANCER', message: why })
  return {
    classes: { [hcloud]: 'hcloud', [cherry]: 'cherryservers' },
    ...(unclassed === undefined ? {} : { unclassed }),
  }
}

/** Why no load balancer can be made at a cloud. */
function lackOf(cloud: string, { hcloud, cherry }: ClusterSettings['clouds']): string | undefined {
  if (cloud === NOWHERE) return undefined
  if (cloud === 'hcloud') {
    if (hcloud === undefined) return 'names hcloud, which is not set up: set HCLOUD_TOKEN'
    return hcloud.loadBalancers.enabled
      ? undefined
      : 'names hcloud, whose load balancers are off: set HCLOUD_LOAD_BALANCERS_ENABLED=true'
  }
  if (cherry === undefined) return 'names cherryservers, which is not set up: set CHERRY_API_KEY'
  return cherry.loadBalancer ? undefined : 'names cherryservers, which has no load balancers: set CHERRY_LOAD_BALANCER'
}
