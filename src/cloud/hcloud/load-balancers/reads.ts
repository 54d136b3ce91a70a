import type { Call } from '../../../call.ts'
import { createCoalescedRead } from '../../shared-read.ts'
import type { HcloudClient } from '../client.ts'
import type { Certificate, LoadBalancer } from '../model.ts'
import { OWNER_LABEL } from './names.ts'

/** Reads that began after they were asked for; in a project of usual size, those of many Services at once are one list. */
export interface LoadBalancerReads {
  /** All that carry the owner's label, and that of the name. */
  find(uid: string, name: string, call: Call): Promise<{ owned: LoadBalancer[]; named?: LoadBalancer }>
  byId(id: number, call: Call): Promise<LoadBalancer | undefined>
  certificates(call: Call): Promise<readonly Certificate[]>
}

/** One page: up to here a list costs no more than a look for one. */
const FEW = 50

export function createLoadBalancerReads(client: HcloudClient): LoadBalancerReads {
  let count = 0
  const list = createCoalescedRead(async (call) => {
    const all = await client.loadBalancers.list(call)
    count = all.length
    return all
  })
  return {
    async find(uid, name, call) {
      if (count <= FEW) {
        const all = await list(call)
        const named = all.find((lb) => lb.name === name)
        return { owned: all.filter(({ labels }) => labels[OWNER_LABEL] === uid), ...(named ? { named } : {}) }
      }
      const owned = await client.loadBalancers.labelled(`${OWNER_LABEL}=${uid}`, call)
      const named = owned.length === 0 ? await client.loadBalancers.named(name, call) : undefined
      return { owned, ...(named ? { named } : {}) }
    },
    async byId(id, call) {
      const listed = count <= FEW ? (await list(call)).find((lb) => lb.id === id) : undefined
      // A list may lag behind what has just been made.
      return listed ?? client.loadBalancers.get(id, call)
    },
    certificates: createCoalescedRead(client.certificates.list),
  }
}
