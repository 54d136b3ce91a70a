import { createHash } from 'node:crypto'
import type { KubeObject } from '../../../kubernetes/objects.ts'
import type { ObjectChange } from '../../provider.ts'
import {
  ADVERTISEMENT,
  type Observed,
  OUR_LABELS,
  POOL,
  type ServiceName,
  same,
  seen,
  specOf,
} from './metallb-kinds.ts'

/** The one advertisement for all pools, by the name that the replaced controller gave it. */
const ADVERTISEMENT_NAME = 'equinix-metal-bgp-adv'
const LONGEST_LABEL = 63

export const poolName = ({ namespace, name }: ServiceName) => `${bare(namespace)}.${bare(name)}`
const bare = (text: string) => text.replace(/[^a-zA-Z0-9-]/g, '')

/** Which Service a pool is for. Names that no label can hold are hashed. */
export function poolLabel(service: ServiceName): [key: string, value: string] {
  const plain = plainLabel(service)
  return plain[0].length <= LONGEST_LABEL && plain[1].length <= LONGEST_LABEL ? plain : hashedLabel(service)
}

const plainLabel = ({ namespace, name }: ServiceName): [string, string] => [`service-${name}`, `namespace-${namespace}`]

function hashedLabel({ namespace, name }: ServiceName): [string, string] {
  const hash = createHash('sha256').update(`${namespace}/${name}`).digest('hex').slice(0, 40)
  return [`service-${hash}`, 'namespace-hashed']
}

export const isPoolOf = (pool: KubeObject, service: ServiceName) =>
  [plainLabel(service), hashedLabel(service)].some(([key, value]) => pool.metadata.labels?.[key] === value)

/** All labels of a pool that say for whom it is, but those of this Service. */
function othersOf(pool: KubeObject, service: ServiceName): string[] {
  const own = [plainLabel(service), hashedLabel(service)]
  return Object.entries(pool.metadata.labels ?? {}).flatMap(([key, value]) =>
    key.startsWith('service-') && !own.some(([k, v]) => k === key && v === value) ? [key] : [],
  )
}

/**
 * Pool and advertisement of a Service with these addresses (`192.0.2.7/32`). MetalLB takes no address in two pools, so Services that
 * share one share its pool. `before` makes the way, `after` clears what is left once that is there.
 */
export function planPools(
  service: ServiceName,
  addresses: readonly string[],
  namespace: string,
  { pools, advertisements }: Observed,
): { before: ObjectChange[]; after: ObjectChange[] } {
  const holding = pools.find((pool) => addressesOf(pool).some((one) => addresses.includes(one)))
  const own = pools.filter((pool) => isPoolOf(pool, service))
  const named = pools.find(({ metadata }) => metadata.name === poolName(service))
  // Its own may be changed as long as nobody else counts on it.
  const changeable = [...own, ...(named ? [named] : [])].find((pool) => othersOf(pool, service).length === 0)
  const chosen = holding ?? changeable
  const before: ObjectChange[] = []
  const name = chosen?.metadata.name ?? freeName(service, pools)
  if (chosen) before.push(...changePool(chosen, service, addresses, namespace))
  else {
    const [key, value] = poolLabel(service)
    before.push({
      action: 'create',
      summary: `create address pool ${name} with ${addresses.join(', ')}`,
      object: POOL,
      namespace,
      name,
      essential: true,
      labels: { ...OUR_LABELS, [key]: value },
      spec: { addresses, autoAssign: false },
    })
  }
  const left = own.filter((pool) => pool !== chosen)
  const leaving = left.filter((pool) => othersOf(pool, service).length === 0).map(({ metadata }) => metadata.name)
  before.push(...planAdvertisement(name, leaving, namespace, advertisements))
  return { before, after: left.map((pool) => leavePool(pool, service, namespace)) }
}

/** Takes a Service out: its pools go unless others share them, and the advertisement lets go of those first. */
export function planPoolsGone(
  service: ServiceName,
  namespace: string,
  { pools, advertisements }: Observed,
): ObjectChange[] {
  const own = pools.filter((pool) => isPoolOf(pool, service))
  const leaving = own.filter((pool) => othersOf(pool, service).length === 0).map(({ metadata }) => metadata.name)
  // After a crash the pool may be gone and still be advertised.
  if (!pools.some(({ metadata }) => metadata.name === poolName(service))) leaving.push(poolName(service))
  return [
    ...planAdvertisement(undefined, leaving, namespace, advertisements),
    ...own.map((pool) => leavePool(pool, service, namespace)),
  ]
}

const addressesOf = (pool: KubeObject) => (specOf(pool).addresses ?? []) as string[]

function freeName(service: ServiceName, pools: readonly KubeObject[]): string {
  const taken = new Set(pools.map(({ metadata }) => metadata.name))
  const name = poolName(service)
  return taken.has(name) ? `${name}.${poolLabel(service)[0].slice(-8)}` : name
}

function changePool(
  pool: KubeObject,
  service: ServiceName,
  addresses: readonly string[],
  namespace: string,
): ObjectChange[] {
  const [key, value] = poolLabel(service)
  // Two Services of one name in two namespaces can't have the same key.
  const [label, text] = othersOf(pool, service).includes(key) ? hashedLabel(service) : [key, value]
  const labels = isPoolOf(pool, service) ? {} : { [label]: text }
  const shared = othersOf(pool, service).length > 0
  const present = addressesOf(pool)
  const wanted = shared ? [...new Set([...present, ...addresses])] : [...addresses]
  const spec = {
    ...(same([...present].sort(), [...wanted].sort()) ? {} : { addresses: wanted }),
    ...(specOf(pool).autoAssign === false ? {} : { autoAssign: false }),
  }
  if (Object.keys(labels).length === 0 && Object.keys(spec).length === 0) return []
  return [
    {
      action: 'patch',
      summary: `change address pool ${pool.metadata.name}`,
      object: POOL,
      namespace,
      name: pool.metadata.name,
      essential: true,
      body: { metadata: { ...seen(pool), labels }, spec },
    },
  ]
}

function leavePool(pool: KubeObject, service: ServiceName, namespace: string): ObjectChange {
  const { name, labels = {} } = pool.metadata
  const where = { object: POOL, namespace, name, essential: true }
  if (othersOf(pool, service).length === 0)
    return { ...where, action: 'delete', summary: `delete address pool ${name}`, ...seen(pool) }
  const others = othersOf(pool, service)
  const own = Object.keys(labels).filter((key) => key.startsWith('service-') && !others.includes(key))
  const body = { metadata: { ...seen(pool), labels: Object.fromEntries(own.map((key) => [key, null])) } }
  return { ...where, action: 'patch', summary: `leave address pool ${name} to others`, body }
}

function planAdvertisement(
  joining: string | undefined,
  leaving: readonly string[],
  namespace: string,
  advertisements: readonly KubeObject[],
): ObjectChange[] {
  const where = { object: ADVERTISEMENT, namespace, name: ADVERTISEMENT_NAME, essential: true }
  const present = advertisements.find(({ metadata }) => metadata.name === ADVERTISEMENT_NAME)
  if (!present) {
    if (joining === undefined) return []
    const spec = { ipAddressPools: [joining] }
    return [{ ...where, action: 'create', summary: `advertise pool ${joining}`, labels: { ...OUR_LABELS }, spec }]
  }
  const listed = (specOf(present).ipAddressPools ?? []) as string[]
  const wanted = [...new Set([...listed, ...(joining === undefined ? [] : [joining])])].filter(
    (pool) => !leaving.includes(pool) || pool === joining,
  )
  if (same(listed, wanted)) return []
  if (wanted.length === 0)
    return [{ ...where, action: 'delete', summary: 'delete the advertisement of no pools', ...seen(present) }]
  const body = { metadata: seen(present), spec: { ipAddressPools: wanted } }
  return [{ ...where, action: 'patch', summary: `advertise pools ${wanted.join(', ')}`, body }]
}
