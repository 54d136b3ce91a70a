import { once } from 'node:events'
import t from 'tap'
import { eventually, startRig, trigger } from '../queue/rig.ts'
import { children } from './children.ts'

const TIMINGS = { lockMs: 600, renewMs: 200, stalledMs: 100, blockMs: 500 }

t.test('an object whose worker was killed is run by another one, and no attempt is lost with it', async (t) => {
  const rig = await startRig(t)
  const workers = children(rig.server.url)
  t.teardown(() => workers.end())
  const first = workers.start('first', TIMINGS)
  await rig.enqueue('c', [trigger('web', { cause: 'hang' })])
  await eventually(async () => (await workers.log()).includes('write first'))
  workers.start('second', TIMINGS)
  const gone = once(first, 'exit')
  first.kill('SIGKILL')
  await gone
  await eventually(async () => (await workers.log()).includes('write second'))
  const [job] = await rig.queue.queue.getActive()
  t.match(job, { attemptsMade: 0, stalledCounter: 1 })
})

t.test('an object that kills its workers again and again ends in the failed list, until it is triggered', async (t) => {
  const rig = await startRig(t)
  const workers = children(rig.server.url)
  t.teardown(() => workers.end())
  await rig.enqueue('c', [trigger('web', { cause: 'hang' })])
  const started = async () => (await workers.log()).filter((line) => line.startsWith('start '))
  const byName = new Map(['a', 'b', 'c'].map((name) => [name, workers.start(name, { ...TIMINGS, maxStalls: 1 })]))
  for (const deaths of [1, 2]) {
    const lines = await eventually(async () => {
      const seen = await started()
      return seen.length >= deaths ? seen : undefined
    })
    byName.get(lines.at(-1)?.slice('start '.length) ?? '')?.kill('SIGKILL')
  }
  const failed = await eventually(async () => (await rig.queue.queue.getFailed())[0])
  t.match(failed.failedReason, /Service\/default\/web: the worker died 2 times/)
  t.equal((await started()).length, 2, 'the third did not run it')
  const gaveUp = async () => (await workers.log()).filter((line) => line.startsWith('gave-up '))
  await eventually(async () => (await gaveUp()).length === 1)
  await rig.enqueue('c', [trigger('web', { cause: 'dashboard' })])
  await eventually(async () => (await started()).length === 3)
  await eventually(async () => (await rig.queue.queue.getFailedCount()) === 0)
  t.pass('and the failed job goes with the success')
})
