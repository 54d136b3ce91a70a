import type { Call } from '../../call.ts'
import type { Announcement, ObjectQuery } from '../../cloud/provider.ts'
import { WindlassError } from '../../errors.ts'
import type { KubeObject } from '../../kubernetes/objects.ts'
import type { Cluster } from '../cluster.ts'

/** What the queries find now, one after the other: the order of reads carries meaning. Undefined for a kind that the cluster does not have. */
export async function observe(
  cluster: Cluster,
  { queries }: Announcement,
  call: Call,
): Promise<(KubeObject[] | undefined)[]> {
  const observed: (KubeObject[] | undefined)[] = []
  for (const query of queries) observed.push(await readTogether(cluster, query, call))
  return observed
}

interface Listing {
  started: boolean
  objects: Promise<KubeObject[] | undefined>
}

const listings = new WeakMap<Cluster, Map<string, Listing>>()

/** Lists that many Services ask for at one time are one list, as long as it begins after each has asked. */
async function readTogether(cluster: Cluster, query: ObjectQuery, call: Call): Promise<KubeObject[] | undefined> {
  const { kind, namespace = '', labelSelector = '' } = query
  const key = [kind.group, kind.version, kind.plural, namespace, labelSelector].join(' ')
  const ofCluster = listings.get(cluster) ?? new Map<string, Listing>()
  listings.set(cluster, ofCluster)
  const before = ofCluster.get(key)
  if (before && !before.started) return before.objects
  const next: Listing = { started: false, objects: Promise.resolve(undefined) }
  next.objects = (async () => {
    await before?.objects.catch(() => {})
    next.started = true
    return await list(cluster, query, call)
  })()
  ofCluster.set(key, next)
  next.objects.catch(() => {}).finally(() => ofCluster.get(key) === next && ofCluster.delete(key))
  return next.objects
}

async function list(cluster: Cluster, query: ObjectQuery, call: Call): Promise<KubeObject[] | undefined> {
  const { kind, namespace, labelSelector } = query
  // A read that several wait for does not end with the first of them.
  const detached: Call = { ...call, signal: new AbortController().signal, beforeWrite: call.beforeWrite.bind(call) }
  try {
    const options = { namespace, labelSelector, project }
    return (await cluster.kubernetes.list<KubeObject, KubeObject>(kind, options, detached)).items
  } catch (error) {
    if (error instanceof WindlassError && error.status === 404) return undefined
    throw error
  }
}

/** A Node has 10 KiB and more beside what is looked at here. */
function project({ metadata, spec }: KubeObject): KubeObject {
  const { managedFields: _, ...rest } = metadata
  return { metadata: rest, spec }
}
