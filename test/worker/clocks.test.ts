import t from 'tap'
import { eventually, startRig, trigger } from '../queue/rig.ts'
import { startWorkers } from './rig.ts'

for (const [what, skewMs] of Object.entries({ ahead: 600_000, behind: -600_000 }))
  t.test(`a server whose clock is ten minutes ${what} asks for work that is done soon, each once`, async (t) => {
    const rig = await startRig(t)
    const runs: string[] = []
    startWorkers(t, rig, async ({ key }) => {
      runs.push(key)
      return {}
    })
    const clock = Date.now
    t.teardown(() => {
      Date.now = clock
    })
    Date.now = () => clock() + skewMs
    const asked = await rig.enqueue('c', [trigger('soon', { delayMs: 200 }), trigger('now')])
    Date.now = clock
    t.equal(asked.length, 2)
    await eventually(() => runs.length === 2)
    t.same(runs.sort(), ['Service/default/now', 'Service/default/soon'])
    t.match(await rig.queue.queue.getJobCounts('waiting', 'active', 'delayed'), { waiting: 0, delayed: 0 })
  })
