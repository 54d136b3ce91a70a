import t from 'tap'
import { permanent } from '../../src/errors.ts'
import { ensureStanding } from '../../src/queue/schedulers.ts'
import type { Trigger } from '../../src/queue/types.ts'
import { startWorkers } from '../worker/rig.ts'
import { eventually, startRig, trigger } from './rig.ts'

const WORK: Trigger[] = [
  { kind: 'resync', key: 'Cluster/resync', cause: 'standing', urgency: 'background' },
  { kind: 'addresses', key: 'Cluster/addresses', cause: 'standing', urgency: 'background', delayMs: 60_000 },
]

t.test('however many assert it at once, there is one of each', async (t) => {
  const { queue } = await startRig(t)
  await Promise.all(Array.from({ length: 20 }, () => ensureStanding(queue, WORK)))
  t.equal(await queue.queue.getJobCountByTypes('prioritized'), 1)
  t.equal(await queue.queue.getDelayedCount(), 1)
})

t.test(
  'periodic work goes on as one job, which a trigger pulls forward, and asserting it again changes nothing',
  async (t) => {
    const rig = await startRig(t)
    const causes: string[] = []
    startWorkers(t, rig, async ({ cause }) => {
      causes.push(cause)
      return { requeueAfterMs: causes.length < 3 ? 20 : 3_600_000 }
    })
    const [work] = WORK
    if (!work) return
    await ensureStanding(rig.queue, [work])
    await eventually(() => causes.length === 3)
    await eventually(async () => (await rig.queue.queue.getDelayedCount()) === 1)
    await ensureStanding(rig.queue, [work])
    t.match(await rig.queue.queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed'), {
      waiting: 0,
      prioritized: 0,
      active: 0,
      delayed: 1,
    })
    t.match((await rig.queue.queue.getDelayed())[0], { attemptsMade: 0, delay: 3_600_000 })
    await rig.enqueue('c', [{ ...work, cause: 'dashboard', urgency: 'user' }])
    await eventually(() => causes.length === 4)
    t.equal(causes[3], 'dashboard')
    await eventually(async () => (await rig.queue.queue.getDelayedCount()) === 1)
  },
)

t.test('a worker asserts it by itself, also after Redis lost everything', async (t) => {
  const rig = await startRig(t)
  let runs = 0
  startWorkers(
    t,
    rig,
    async () => {
      runs++
      return { requeueAfterMs: 3_600_000 }
    },
    { timings: { sweepMs: 50 } },
    { standing: WORK.slice(0, 1) },
  )
  await eventually(() => runs === 1)
  await eventually(async () => (await rig.queue.queue.getDelayedCount()) === 1)
  await rig.server.flush()
  await eventually(() => runs === 2)
  t.pass()
})

t.test('one that failed for good is tried again, and not in a loop', async (t) => {
  const rig = await startRig(t)
  startWorkers(
    t,
    rig,
    async () => {
      throw permanent('no rights')
    },
    { timings: { sweepMs: 50, floorMs: 10 } },
    { standing: WORK.slice(0, 1) },
  )
  await eventually(async () => (await rig.queue.queue.getFailedCount()) === 1)
  await eventually(async () => (await rig.queue.queue.getDelayedCount()) === 1)
  t.match((await rig.queue.queue.getDelayed())[0], { delay: 60_000, name: 'resync' })
  await rig.enqueue('c', [trigger('unrelated')])
})
