import t from 'tap'
import { permanent } from '../../src/errors.ts'
import { backlog } from '../../src/queue/backlog.ts'
import { startWorkers } from '../worker/rig.ts'
import { eventually, startRig, trigger } from './rig.ts'

t.test('a queue without work has no backlog', async (t) => {
  const { queue } = await startRig(t)
  t.same(await backlog(queue), {
    cluster: 'c',
    waiting: 0,
    active: 0,
    dueSoon: 0,
    delayed: 0,
    failed: 0,
    oldestWaitingMs: 0,
  })
})

t.test('jobs are counted by state, and the oldest tells how long it has waited', async (t) => {
  const rig = await startRig(t)
  await rig.enqueue('c', [
    trigger('user'),
    trigger('background', { urgency: 'background' }),
    trigger('soon', { delayMs: 50_000 }),
    trigger('later', { delayMs: 90_000 }),
  ])
  const counted = await backlog(rig.queue, Date.now() + 7000)
  t.match(counted, { waiting: 2, active: 0, delayed: 2, dueSoon: 1, failed: 0 })
  t.ok(counted.oldestWaitingMs >= 7000 && counted.oldestWaitingMs < 20_000)
})

t.test('a delayed job that nobody is there to run waits from when it was due', async (t) => {
  const rig = await startRig(t)
  await rig.enqueue('c', [trigger('web', { delayMs: 30_000 })])
  t.equal((await backlog(rig.queue)).oldestWaitingMs, 0)
  const later = await backlog(rig.queue, Date.now() + 40_000)
  t.match(later, { delayed: 1, dueSoon: 1 })
  t.ok(later.oldestWaitingMs > 5000 && later.oldestWaitingMs <= 11_000)
})

t.test('what runs and what failed is counted', async (t) => {
  const rig = await startRig(t)
  let finish = () => {}
  startWorkers(
    t,
    rig,
    async ({ key }) => {
      if (key === trigger('bad').key) throw permanent('a bad annotation')
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      return {}
    },
    {},
    { concurrency: 2 },
  )
  await rig.enqueue('c', [trigger('bad'), trigger('web')])
  await eventually(async () => {
    const { active, failed, waiting } = await backlog(rig.queue)
    return active === 1 && failed === 1 && waiting === 0
  })
  finish()
  await eventually(async () => (await backlog(rig.queue)).active === 0)
  t.pass()
})
