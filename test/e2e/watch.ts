import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, Json } from '../apiserver/admin.ts'
import type { Settle, Until } from './case.ts'
import type { SimulatedCloud } from './clouds/cloud.ts'
import type { Controller } from './controller.ts'

/** For slow machines: no settle is shorter than `minQuietS`; limits, but not quiet times, are multiplied by `patience`. */
export interface Pace {
  minQuietS: number
  patience: number
}

/** What a wait looks at. */
export interface Watched {
  admin: Admin
  cloud: SimulatedCloud
  controller: Controller | undefined
  /** How many requests the cloud had had when the controller started. */
  requestsAtStart: number
  log: (line: string) => void
}

/**
 * Waits until neither cloud nor Nodes and Services have changed for `quiet` seconds, beginning with the controller's
 * first request if `waitFirst`. An ended controller changes nothing any more. Resolves to what was wrong, if anything.
 */
export async function settle(
  watched: Watched,
  { waitFirst = false, ...limits }: Settle & { waitFirst?: boolean },
  pace: Pace,
): Promise<string | undefined> {
  const { controller, requestsAtStart, log } = watched
  const { quiet, max, first, mayTimeout } = { ...defaults, ...limits, ...limits.product }
  const quietMs = Math.max(quiet, pace.minQuietS) * 1000
  const maxMs = max * pace.patience * 1000
  const firstMs = first * pace.patience * 1000

  const startedAt = performance.now()
  let since = startedAt
  let last = (await look(watched)).text
  let seen = !waitFirst
  for (;;) {
    await delay(200)
    if (controller?.exit !== undefined) return undefined
    const now = await look(watched)
    const at = performance.now()
    if (!seen && now.requests > requestsAtStart) {
      seen = true
      since = at
    }
    if (now.text !== last || now.inflight > 0) {
      since = at
      last = now.text
    }
    if (seen && at - since >= quietMs) break
    if (!seen && at - startedAt > firstMs) {
      log(`no cloud request from the controller in ${firstMs / 1000} s`)
      break
    }
    if (at - startedAt > maxMs) {
      log(`not settled after ${maxMs / 1000} s`)
      return mayTimeout ? undefined : `not settled after ${maxMs / 1000} s`
    }
  }
  log(`settled in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  return undefined
}

/** Waits until all conditions hold. Resolves to what was wrong, if anything. */
export async function until(watched: Watched, condition: Until, pace: Pace): Promise<string | undefined> {
  const { controller, log } = watched
  const text = JSON.stringify(condition)
  const maxMs = (condition.max ?? 30) * 1000 * pace.patience
  const startedAt = performance.now()
  while (!(await holds(watched, condition))) {
    // A wait that may be in vain ends with the controller.
    const inVain = (condition.mayTimeout || condition.product) && controller?.exit !== undefined
    if (inVain || performance.now() - startedAt > maxMs) {
      log(`until ${text}: NOT met`)
      return condition.mayTimeout ? undefined : `until not met: ${text}`
    }
    await delay(100)
  }
  log(`until ${text}: after ${Math.round(performance.now() - startedAt)} ms`)
  return undefined
}

const defaults = { quiet: 3, max: 40, first: 25, mayTimeout: false }

async function look({ cloud, admin }: Watched): Promise<{ text: string; inflight: number; requests: number }> {
  const [{ revision, inflight, requests }, nodes, services] = await Promise.all([
    cloud.activity(),
    admin.listMetadata('Node'),
    admin.listMetadata('Service'),
  ])
  const versions = [...nodes, ...services].map(({ metadata: m }) => `${m.namespace}/${m.name}@${m.resourceVersion}`)
  return { text: [revision, ...versions].join(' '), inflight, requests }
}

async function holds({ admin, cloud, controller, requestsAtStart }: Watched, wanted: Until): Promise<boolean> {
  if (wanted.exit && controller?.exit === undefined) return false
  if (wanted.requests && (await cloud.activity()).requests < requestsAtStart + wanted.requests) return false
  if (wanted.calls) {
    const calls = await cloud.calls()
    if (Object.entries(wanted.calls).some(([call, times]) => (calls[call] ?? 0) < times)) return false
  }
  if (wanted.event && !(await admin.list('Event')).some((event) => event.reason === wanted.event)) return false
  return !wanted.object || objectFits(await objectAt(admin, wanted.object), wanted)
}

async function objectAt(admin: Admin, name: string): Promise<Json> {
  const [kind = '', ...rest] = name.split('/')
  return await admin.get(kind, rest.length > 1 ? rest[0] : undefined, rest.at(-1) ?? '')
}

function objectFits(object: Json, { path, equals, absent, gone }: Until): boolean {
  if (gone) return object === undefined
  const value = path ? path.split('.').reduce((at, key) => at?.[key] ?? undefined, object) : object
  if (equals !== undefined) return JSON.stringify(value) === JSON.stringify(equals)
  if (absent) return value === undefined || (Array.isArray(value) && value.length === 0)
  return value !== undefined
}
