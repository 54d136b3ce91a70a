import type { Redis } from 'ioredis'
import type { Call } from '../../../call.ts'
import type { Note } from '../../provider.ts'
import { createSharedRead } from '../../shared-read.ts'
import type { HcloudClient } from '../client.ts'
import type { LoadBalancer, LoadBalancerType } from '../model.ts'
import { DEFAULT_TYPE } from './desire.ts'

/** The types that can be ordered; they hardly ever change. */
export interface LoadBalancerTypes {
  find(name: string, call: Call): Promise<LoadBalancerType | undefined>
}

const MAX_AGE_MS = 3_600_000

export function createLoadBalancerTypes(options: {
  client: HcloudClient
  redis?: Redis
  prefix: string
}): LoadBalancerTypes {
  const { client, redis, prefix } = options
  const shared = createSharedRead<LoadBalancerType[]>({
    ...(redis ? { redis } : {}),
    key: () => `${prefix}:hcloud:v1:load-balancer-types:${client.account()}`,
    maxAgeMs: MAX_AGE_MS,
    fetch: client.loadBalancerTypes.list,
  })
  return {
    async find(name, call) {
      const named = (types: LoadBalancerType[]) => types.find((type) => type.name === name)
      return named(await shared.get(call)) ?? named(await shared.fresh(call))
    },
  }
}

/**
 * The type that a load balancer shall have; undefined leaves the one that it has. A type that does not exist is a fault, and so is one that
 * can't be ordered any more although a change to it is needed.
 */
export async function resolveType(
  { name: wanted, from }: { name: string | undefined; from: string },
  observed: LoadBalancer | undefined,
  types: LoadBalancerTypes,
  call: Call,
): Promise<{ type?: LoadBalancerType; notes: Note[]; faults: string[] }> {
  const faults: string[] = []
  const notes: Note[] = []
  if (wanted === undefined) {
    notes.push({
      type: 'Warning',
      reason: 'LoadBalancerTypeUnconfigured',
      message: `no load balancer type is configured, ${observed ? `${observed.type.name} stays` : `${DEFAULT_TYPE} is taken`}: name one in annotation load-balancer.hetzner.cloud/type or HCLOUD_LOAD_BALANCERS_TYPE`,
    })
    if (observed) return { notes, faults }
  }
  const name = wanted ?? DEFAULT_TYPE
  const type = await types.find(name, call)
  if (!type) {
    faults.push(`load balancer type not found: ${name}; correct ${from}`)
    return { notes, faults }
  }
  if (type.unavailableAfter === undefined) return { type, notes, faults }
  const until = Date.parse(type.unavailableAfter)
  if (until <= Date.now()) {
    if (observed?.type.name !== name)
      faults.push(`Load Balancer Type "${name}" is unavailable and can no longer be ordered: choose another in ${from}`)
    return { type, notes, faults }
  }
  notes.push({
    type: 'Warning',
    reason: 'LoadBalancerTypeDeprecated',
    message: `Load Balancer Type "${name}" is deprecated and will no longer be available for order as of ${type.unavailableAfter.slice(0, 10)}`,
  })
  return { type, notes, faults }
}
