import type { Redis } from 'ioredis'
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
  all(call: Call): Promise<readonly LoadBalancer[]>
  certificates(call: Call): Promise<readonly Certificate[]>
  /** The load balancer that was just made for an owner: lists may not show it for a while, and all workers shall know of it. */
  made(uid: string, id: number): Promise<void>
}

/** One page: up to here a list costs no more than a look for one. */
const FEW = 50

/** A look at everything takes Service after Service: they shall share their lists, and nobody waits for them. */
const GATHER_MS = { user: 0, background: 200 }

/** Longer than any list lags behind. */
const MADE_MS = 600_000

export function createLoadBalancerReads(options: {
  client: HcloudClient
  redis?: Redis
  prefix: string
}): LoadBalancerReads {
  const { client, redis, prefix } = options
  let count = 0
  let seeking = 0
  const madeHere = new Map<string, number>()
  const madeKey = (uid: string) => `${prefix}:hcloud:v1:made:${client.account()}:${uid}`

  /** One that was made a moment ago and is in no list yet, or has lost its label since. */
  async function justMade(uid: string, call: Call): Promise<LoadBalancer[]> {
    const known = madeHere.get(uid) ?? Number((await redis?.get(madeKey(uid)).catch(() => null)) ?? 0)
    const lb = known ? await client.loadBalancers.get(known, call) : undefined
    return lb && (lb.labels[OWNER_LABEL] ?? uid) === uid ? [lb] : []
  }

  const list = createCoalescedRead(
    async (call) => {
      const all = await client.loadBalancers.list(call)
      count = all.length
      return all
    },
    { gatherMs: GATHER_MS },
  )
  /** A list of all for many at once costs less than a look for each. */
  async function search(uid: string, name: string, call: Call) {
    if (count <= FEW * seeking) {
      const all = await list(call)
      const named = all.find((lb) => lb.name === name)
      const listed = all.filter(({ labels }) => labels[OWNER_LABEL] === uid)
      return { owned: listed.length > 0 ? listed : await justMade(uid, call), ...(named ? { named } : {}) }
    }
    const labelled = await client.loadBalancers.labelled(`${OWNER_LABEL}=${uid}`, call)
    const owned = labelled.length > 0 ? labelled : await justMade(uid, call)
    const named = owned.length === 0 ? await client.loadBalancers.named(name, call) : undefined
    return { owned, ...(named ? { named } : {}) }
  }

  return {
    async find(uid, name, call) {
      seeking++
      try {
        return await search(uid, name, call)
      } finally {
        seeking--
      }
    },
    async byId(id, call) {
      const listed = count <= FEW ? (await list(call)).find((lb) => lb.id === id) : undefined
      // A list may lag behind what has just been made.
      return listed ?? client.loadBalancers.get(id, call)
    },
    all: list,
    certificates: createCoalescedRead(client.certificates.list, { gatherMs: GATHER_MS }),
    async made(uid, id) {
      madeHere.set(uid, id)
      setTimeout(() => madeHere.delete(uid), MADE_MS).unref()
      await redis?.set(madeKey(uid), id, 'PX', MADE_MS).catch(() => undefined)
    },
  }
}
