import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import t from 'tap'
import { aborted, permanent, transient } from '../../src/errors.ts'
import type { WorkKind } from '../../src/queue/types.ts'
import type { Run, RunEnded } from '../../src/worker/host.ts'
import { eventually, startRig, trigger } from '../queue/rig.ts'
import { freePort } from '../redis.ts'
import { startWorkers } from './rig.ts'

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

t.test('a run is told what it is for, and its end is logged with what finds it again', async (t) => {
  const rig = await startRig(t)
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const runs: Run[] = []
  const ended: RunEnded[] = []
  const { host } = startWorkers(
    t,
    rig,
    async (run) => {
      runs.push(run)
      await run.call.beforeWrite('write')
      return {}
    },
    {},
    { log, onRun: (end) => ended.push(end) },
  )
  const [job] = await rig.enqueue('c', [trigger('web', { uid: 'u-1', eventId: 'e-1', traceparent: TRACEPARENT })])
  await eventually(() => ended.length === 1)
  const { call, ...run } = runs[0] as Run
  t.same(run, {
    cluster: 'c',
    kind: 'service',
    key: 'Service/default/web',
    uid: 'u-1',
    cause: 'test',
    urgency: 'user',
    traceparent: TRACEPARENT,
    eventId: 'e-1',
    jobId: job?.jobId,
    generation: job?.generation,
    attempt: 0,
  })
  t.equal(call.urgency, 'user')
  const where = { cluster: 'c', kind: 'service', key: 'Service/default/web', jobId: job?.jobId, attempt: 0 }
  const what = { traceId: TRACEPARENT.split('-')[1], generation: job?.generation }
  t.match(
    lines.find(({ msg }) => msg === 'run started'),
    { ...where, ...what },
  )
  t.match(
    lines.find(({ msg }) => msg === 'run ended'),
    { ...where, ...what, outcome: 'done', ms: Number },
  )
  t.match(ended, [{ cluster: 'c', kind: 'service', outcome: 'done', ms: Number, waitedMs: Number }])
  await eventually(() => host.stats().running === 0)
  t.match(host.stats(), { runs: { service: { done: 1 } } })
})

t.test('a folded trigger gives the run its words, and a run that fails keeps them', async (t) => {
  const rig = await startRig(t)
  const seen: unknown[] = []
  await rig.enqueue('c', [trigger('web', { uid: 'u-1', cause: 'first', traceparent: 'a' })])
  await rig.enqueue('c', [trigger('web', { cause: 'second', traceparent: 'b' })])
  await rig.enqueue('c', [trigger('web', { cause: 'resync', urgency: 'background' })])
  startWorkers(
    t,
    rig,
    async ({ cause, uid, traceparent, urgency, attempt }) => {
      seen.push({ cause, uid, traceparent, urgency, attempt })
      if (attempt === 0) throw transient('no answer')
      return {}
    },
    { backoffMs: () => 10 },
  )
  await eventually(() => seen.length === 2)
  const words = { cause: 'second', uid: 'u-1', traceparent: 'b', urgency: 'user' }
  t.same(seen, [
    { ...words, attempt: 0 },
    { ...words, attempt: 1 },
  ])
})

t.test('a cluster whose runs hang stops no other', async (t) => {
  const rig = await startRig(t)
  const done: string[] = []
  const { host } = startWorkers(
    t,
    rig,
    async ({ cluster, key, call }) => {
      if (cluster === 'c') await sleep(600_000, undefined, { signal: call.signal })
      done.push(key)
      return {}
    },
    {},
    { clusters: ['c', 'd'], concurrency: 4, graceMs: 10 },
  )
  await rig.enqueue(
    'c',
    Array.from({ length: 20 }, (_, n) => trigger(`hang-${n}`)),
  )
  await eventually(() => host.stats().running === 3)
  await rig.enqueue(
    'd',
    Array.from({ length: 20 }, (_, n) => trigger(`web-${n}`)),
  )
  await eventually(() => done.length === 20)
  await eventually(() => host.stats().running === 3)
  t.pass('and those still hang')
})

t.test('told to stop, a worker lets runs end that end in time', async (t) => {
  const rig = await startRig(t)
  let begun = false
  let aborts = 0
  const { host } = startWorkers(
    t,
    rig,
    async ({ call }) => {
      begun = true
      call.signal.addEventListener('abort', () => aborts++)
      await sleep(150)
      await call.beforeWrite('write')
      return {}
    },
    {},
    { graceMs: 5000 },
  )
  await rig.enqueue('c', [trigger('web'), trigger('next')])
  await eventually(() => begun)
  await host.stop()
  t.match(host.stats().runs, { service: { done: 1 } })
  t.match(await rig.queue.queue.getJobCounts('waiting', 'active', 'completed'), { waiting: 1, active: 0, completed: 1 })
  await t.resolves(host.stop(), 'and twice is once')
})

for (const manners of ['heeds the signal', 'heeds nothing'] as const) {
  t.test(
    `told to stop, a run that ${manners} is handed to another worker at once, with no attempt spent`,
    async (t) => {
      const rig = await startRig(t)
      let late: Promise<void> | undefined
      let begun = false
      const { host } = startWorkers(
        t,
        rig,
        async ({ call }) => {
          begun = true
          late = call.signal.aborted
            ? undefined
            : new Promise((resolve) => call.signal.addEventListener('abort', resolve)).then(() =>
                call.beforeWrite('late write'),
              )
          late?.catch(() => {})
          if (manners === 'heeds the signal') await late
          else await new Promise<never>(() => {})
          return {}
        },
        {},
        { graceMs: 50 },
      )
      await rig.enqueue('c', [trigger('web')])
      await eventually(() => begun)
      await host.stop()
      await t.rejects(late ?? Promise.resolve(), { kind: 'aborted', message: /is being shut down/ })
      t.match(await rig.queue.queue.getJobCounts('waiting', 'active'), { waiting: 1, active: 0 })
      const attempts: number[] = []
      startWorkers(t, rig, async ({ attempt }) => {
        attempts.push(attempt)
        return {}
      })
      await eventually(() => attempts.length === 1)
      t.same(attempts, [0])
    },
  )
}

t.test('a worker can be stopped although Redis is gone, or was never there', async (t) => {
  const rig = await startRig(t)
  let begun = false
  const { host } = startWorkers(t, rig, async () => {
    begun = true
    await sleep(100)
    return {}
  })
  await rig.enqueue('c', [trigger('web')])
  await eventually(() => begun)
  await rig.server.kill9()
  await host.stop()
  const never = startWorkers(
    t,
    { ...rig, settings: { url: `redis://127.0.0.1:${await freePort()}`, prefix: 'windlass' } },
    async () => ({}),
  )
  await never.host.stop()
  t.pass()
})

t.test('until idle, a worker ends when nothing is due or active, and leaves what is due later', async (t) => {
  const rig = await startRig(t)
  const done: string[] = []
  await rig.enqueue('c', [trigger('web'), trigger('more'), trigger('later', { delayMs: 60_000 })])
  await rig.queue.ledger.raise([trigger('half-done')])
  const { host } = startWorkers(
    t,
    rig,
    async ({ key }) => {
      done.push(key.split('/')[2] ?? '')
      if (key.endsWith('web')) await rig.enqueue('c', [trigger('follow-up')])
      return {}
    },
    {},
    { untilIdle: true },
  )
  await host.idle
  t.same(done.sort(), ['follow-up', 'half-done', 'more', 'web'])
  t.equal(await rig.queue.queue.getDelayedCount(), 1)
})

t.test(
  'workers fetch again after Redis was restarted, was frozen, and after a run lost its claim with it',
  async (t) => {
    const rig = await startRig(t)
    const done: string[] = []
    const { host } = startWorkers(t, rig, async ({ key }) => {
      done.push(key)
      return {}
    })
    const canary = async (name: string) => {
      await eventually(() => rig.enqueue('c', [trigger(name)]).catch(() => undefined))
      await eventually(() => done.includes(trigger(name).key))
      t.pass(name)
    }
    await canary('before')
    await rig.server.stop()
    const deafMs = host.stats().lastProgressMs
    await sleep(300)
    t.ok(host.stats().lastProgressMs <= deafMs + 250, 'no sign of life while it is gone')
    await rig.server.restart()
    await canary('restarted')
    await rig.server.kill9()
    await rig.server.restart()
    await canary('killed')
    rig.server.pause()
    await sleep(300)
    rig.server.resume()
    await canary('frozen')
    await rig.server.flush()
    await canary('flushed')
    await rig.server.command('CLIENT', 'KILL', 'TYPE', 'normal')
    await canary('cut')
    await eventually(() => Date.now() - host.stats().lastProgressMs < 1000)
  },
)

t.test('a run whose claim is gone is told so, and what it comes to changes nothing', async (t) => {
  const rig = await startRig(t)
  const outcomes: string[] = []
  let runs = 0
  startWorkers(
    t,
    rig,
    async ({ call, jobId }) => {
      if (runs++ > 0) return {}
      await rig.server.command('SET', `${rig.queue.ledger.keys.bull}${jobId}:lock`, 'another', 'PX', 300)
      await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
      throw permanent('too late')
    },
    { timings: { lockMs: 400, renewMs: 100, stalledMs: 50 } },
    { concurrency: 2, onRun: ({ outcome }) => outcomes.push(outcome) },
  )
  await rig.enqueue('c', [trigger('web')])
  await eventually(() => outcomes.includes('done'))
  t.same(outcomes, ['lost', 'done'])
  t.equal(await rig.queue.queue.getFailedCount(), 0)
})

t.test('an old failed job that a person retries past us does not run beside the newer one', async (t) => {
  const rig = await startRig(t)
  let running = 0
  let most = 0
  let runs = 0
  let good = false
  startWorkers(
    t,
    rig,
    async () => {
      runs++
      if (!good) throw permanent('a bad annotation')
      most = Math.max(most, ++running)
      await sleep(150)
      running--
      return {}
    },
    { timings: { floorMs: 10 } },
    { concurrency: 3 },
  )
  await rig.enqueue('c', [trigger('web')])
  const failed = await eventually(async () => (await rig.queue.queue.getFailed())[0])
  good = true
  await rig.enqueue('c', [trigger('web')])
  await eventually(() => running === 1)
  await failed.retry('failed')
  await eventually(() => runs === 3)
  await eventually(async () => running === 0 && (await rig.queue.queue.getActiveCount()) === 0)
  t.equal(most, 1)
})

t.test('a run that gives up by itself is put off, and an unknown error is tried again', async (t) => {
  const rig = await startRig(t)
  const outcomes: string[] = []
  startWorkers(
    t,
    rig,
    async ({ attempt }) => {
      if (outcomes.length === 0) throw aborted('could not ask')
      if (attempt === 0) throw new TypeError('x is not a function')
      return {}
    },
    { timings: { floorMs: 30 }, backoffMs: () => 10 },
    { onRun: ({ outcome }) => outcomes.push(outcome) },
  )
  await rig.enqueue('c', [trigger('web')])
  await eventually(() => outcomes.length === 3)
  t.same(outcomes, ['aborted', 'retry', 'done'])
})

t.test('a run that fails in passing says by when it comes again, however long the backoff is', async (t) => {
  const rig = await startRig(t)
  let runs = 0
  startWorkers(
    t,
    rig,
    async () => {
      runs++
      if (runs < 3) throw transient('in part', { retryByMs: Date.now() + 20 })
      return {}
    },
    { timings: { floorMs: 10 }, backoffMs: () => 600_000 },
  )
  await rig.enqueue('c', [trigger('web')])
  await eventually(() => runs === 3)
  t.equal(runs, 3)
})

t.test('a run that takes too long is told to stop, and tried again', async (t) => {
  const rig = await startRig(t)
  const outcomes: string[] = []
  startWorkers(
    t,
    rig,
    async ({ attempt, call }) => {
      if (attempt === 0) await sleep(600_000, undefined, { signal: call.signal })
      return {}
    },
    { timings: { overrunMs: 50 }, backoffMs: () => 10 },
    { onRun: ({ outcome }) => outcomes.push(outcome) },
  )
  await rig.enqueue('c', [trigger('web')])
  await eventually(() => outcomes.length === 2)
  t.same(outcomes, ['retry', 'done'])
})

t.test('a job of a newer release is left to workers that know it', async (t) => {
  const rig = await startRig(t)
  let runs = 0
  startWorkers(t, rig, async () => {
    runs++
    return {}
  })
  const next = { v: 2, kind: 'service', key: 'Service/default/new' }
  await rig.queue.queue.add('service', { ...trigger('new'), ...next } as never, {})
  await rig.enqueue('c', [{ ...trigger('odd'), kind: 'future' as WorkKind }])
  await eventually(async () => (await rig.queue.queue.getDelayedCount()) === 2)
  t.equal(runs, 0)
  await sleep(200)
  const jobs = (await rig.queue.queue.getDelayed()).map(({ attemptsMade, attemptsStarted }) => ({
    attemptsMade,
    attemptsStarted,
  }))
  const once = { attemptsMade: 0, attemptsStarted: 1 }
  t.same(jobs, [once, once], 'put off, with no attempt spent and no loop')
})

t.test('runs leave no trace in Redis but their finished jobs', async (t) => {
  const rig = await startRig(t)
  await rig.enqueue(
    'c',
    Array.from({ length: 600 }, (_, n) => trigger(`web-${n}`)),
  )
  const { host } = startWorkers(t, rig, async () => ({}), {}, { concurrency: 20, untilIdle: true })
  await host.idle
  await host.stop()
  const keys = (await rig.server.command('KEYS', '*')) as string[]
  const odd = keys.filter((key) => !/:(\d+|id|meta|events|completed|stalled-check|clock|sweep|marker|pc)$/.test(key))
  t.same(odd, [])
  t.equal(await rig.queue.queue.getCompletedCount(), 600)
  const [first] = await rig.queue.queue.getCompleted(0, 0)
  const { bull } = rig.queue.ledger.keys
  // What is in it, since how Redis lays it out depends on what else it keeps.
  const fields = (await rig.server.command('HGETALL', `${bull}${first?.id}`)) as string[]
  t.ok(fields.join('').length < 1024, 'which are small')
  // On a busy machine it is known only after some of them how long the trail may be; the next event cuts it.
  await eventually(async () => await rig.server.command('HGET', `${bull}meta`, 'opts.maxLenEvents'))
  await rig.enqueue('c', [trigger('one-more')])
  t.ok(Number(await rig.server.command('XLEN', `${bull}events`)) < 1500, 'and the end of a trail of events')
})
