import t, { type Test } from 'tap'
import { eventually, startRig, trigger } from '../queue/rig.ts'
import { children } from './children.ts'

const LOCK_MS = 500
const TIMINGS = { lockMs: LOCK_MS, renewMs: 150, stalledMs: 100, blockMs: 300 }

async function setUp(t: Test) {
  const rig = await startRig(t)
  const workers = children(rig.server.url)
  t.teardown(() => workers.end())
  const done = (name: string) => eventually(async () => (await workers.log()).some((line) => line === name))
  return { rig, workers, done }
}

/** How often somebody wrote after another worker had begun. */
function intrusions(log: string[]): number {
  let owner = ''
  let count = 0
  for (const line of log) {
    const [what, name = ''] = line.split(' ')
    if (what === 'start') owner = name
    if (what === 'write' && name !== owner) count++
  }
  return count
}

t.test('a worker that was frozen for three times the lock writes no more', async (t) => {
  const { rig, workers, done } = await setUp(t)
  const first = workers.start('first', TIMINGS)
  await rig.enqueue('c', [trigger('web', { cause: 'steps' })])
  await done('write first')
  first.kill('SIGSTOP')
  workers.start('second', TIMINGS)
  await done('start second')
  await new Promise((resolve) => setTimeout(resolve, 3 * LOCK_MS))
  first.kill('SIGCONT')
  await done('refused first')
  await eventually(async () => (await rig.queue.queue.getCompletedCount()) > 0)
  const log = await workers.log()
  t.ok(intrusions(log) <= 1, `but for one write that was past the gate when it froze: ${log.join(', ')}`)
})

t.test('a worker whose event loop was blocked for three times the lock writes no more', async (t) => {
  const { rig, workers, done } = await setUp(t)
  const names = ['first', 'second']
  for (const name of names) workers.start(name, TIMINGS)
  await rig.enqueue('c', [trigger('web', { cause: `block ${3 * LOCK_MS}` })])
  await eventually(async () => (await rig.queue.queue.getCompletedCount()) > 0)
  const [frozen = ''] = (await workers.log()).map((line) => line.split(' ')[1] ?? '')
  await done(`refused ${frozen}`)
  t.equal(intrusions(await workers.log()), 0)
})
