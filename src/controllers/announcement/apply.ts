import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../call.ts'
import type { Announcement, AnnouncementPlan, ObjectChange } from '../../cloud/provider.ts'
import { kindOf, permanent, WindlassError } from '../../errors.ts'
import { projectService, type ServiceProjection } from '../../events/projection.ts'
import { SERVICES } from '../../kubernetes/resources.ts'
import type { Cluster } from '../cluster.ts'
import { observe } from './observe.ts'

export interface Announced {
  /** Changes that were made, the Service's annotations among them. */
  changed: number
  /** What the load balancer can't work without. */
  essential: Error[]
  /** Single items; all others are as they shall be. */
  faults: Error[]
}

/** Objects are shared by Services, and decided on from one version of them: who comes second, in another process, looks again. */
const TRIES = 8
const PAUSE_MS = 50

/** What an announcement comes to now, for showing it. */
export async function planAnnouncement(
  cluster: Cluster,
  announcement: Announcement,
  call: Call,
): Promise<AnnouncementPlan> {
  return announcement.plan(await observe(cluster, announcement, call))
}

/** Brings the cluster to what is announced, each object on its own. */
export async function applyAnnouncement(cluster: Cluster, announcement: Announcement, call: Call): Promise<Announced> {
  // What is as it shall be already needs no turn.
  const { changes, fault } = await planAnnouncement(cluster, announcement, call)
  if (changes.length === 0) return { changed: 0, essential: fault ? [fault] : [], faults: [] }
  return await inTurn(cluster, () => makeAll(cluster, announcement, call))
}

const turns = new WeakMap<Cluster, Promise<unknown>>()

/** One after the other: each would undo the base of what the others have decided. */
function inTurn<T>(cluster: Cluster, work: () => Promise<T>): Promise<T> {
  const before = turns.get(cluster) ?? Promise.resolve()
  const mine = before.then(work, work)
  turns.set(cluster, mine)
  return mine
}

async function makeAll(cluster: Cluster, announcement: Announcement, call: Call): Promise<Announced> {
  let changed = 0
  for (let tries = 1; ; tries++) {
    const { changes, fault } = await planAnnouncement(cluster, announcement, call)
    const failures: { change: ObjectChange; error: Error }[] = []
    for (const change of changes) {
      try {
        await make(cluster, change, call)
        changed++
        call.log.info({ change: change.action, summary: change.summary }, 'changed an announcement')
      } catch (error) {
        if (kindOf(error) === 'aborted' || !(error instanceof Error)) throw error
        failures.push({ change, error })
      }
    }
    if (failures.some(({ error }) => isConflict(error)) && tries < TRIES) {
      await delay(Math.random() * PAUSE_MS * tries, undefined, { signal: call.signal }).catch(() => {})
      continue
    }
    const named = failures.map(({ change, error }) => ({
      essential: change.essential,
      error: explained(change, error),
    }))
    return {
      changed,
      essential: [...(fault ? [fault] : []), ...named.flatMap(({ essential, error }) => (essential ? [error] : []))],
      faults: named.flatMap(({ essential, error }) => (essential ? [] : [error])),
    }
  }
}

/** The Service's own annotations, through its status, which is what we may write. Undefined when the Service is gone. */
export async function annotateService(
  cluster: Cluster,
  service: ServiceProjection,
  wanted: Announcement['serviceAnnotations'],
  call: Call,
): Promise<ServiceProjection | undefined> {
  const annotations = differing(service, wanted)
  if (Object.keys(annotations).length === 0) return service
  const body = { metadata: { uid: service.uid, annotations } }
  const patch = { type: 'merge', subresource: 'status', body } as const
  const patched = await cluster.kubernetes.patch(SERVICES, service, patch, call)
  return patched && projectService(patched)
}

/** Those annotations that the Service does not have as they are wanted. */
export function differing(
  service: Pick<ServiceProjection, 'annotations'>,
  wanted: Announcement['serviceAnnotations'],
): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(wanted).filter(([key, value]) => (service.annotations[key] ?? null) !== value),
  )
}

async function make(cluster: Cluster, change: ObjectChange, call: Call): Promise<void> {
  const { object, namespace, name } = change
  const at = { namespace, name }
  switch (change.action) {
    case 'create': {
      const { labels, spec } = change
      const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels }
      await cluster.kubernetes.create(object, { metadata, spec }, call)
      return
    }
    case 'patch':
      await cluster.kubernetes.patch(object, at, { type: 'merge', body: change.body }, call)
      return
    case 'delete': {
      const { uid, resourceVersion } = change
      await cluster.kubernetes.delete(object, at, call, { preconditions: { uid, resourceVersion } })
    }
  }
}

const isConflict = (error: Error) =>
  error instanceof WindlassError && (error.code === 'Conflict' || error.code === 'AlreadyExists')

function explained({ object, namespace, name }: ObjectChange, error: Error): Error {
  if (!(error instanceof WindlassError) || error.code !== 'AlreadyExists') return error
  return permanent(
    `${object.kind} ${namespace === undefined ? '' : `${namespace}/`}${name} is there already and is not ours: rename or delete it, so that it can be made.`,
    { cause: error, code: 'foreign_object' },
  )
}
