import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { permanent, throttled, transient } from '../../src/errors.ts'
import { openClusterQueues } from '../../src/queue/cluster-queue.ts'
import { createEnqueuer } from '../../src/queue/enqueue.ts'
import { producerConnection } from '../../src/queue/redis.ts'
import type { Trigger } from '../../src/queue/types.ts'
import type { Run } from '../../src/worker/host.ts'
import { freePort } from '../redis.ts'
import { startWorkers } from '../worker/rig.ts'
import { eventually, startRig, trigger } from './rig.ts'

const many = (count: number, more: Partial<Trigger> = {}) =>
  Array.from({ length: count }, (_, n) => trigger(`web-${n}`, more))

t.test('each trigger is answered with its job and a generation that only rises', async (t) => {
  const { enqueue } = await startRig(t)
  const first = await enqueue('c', [trigger('a'), trigger('b'), trigger('a', { cause: 'twice' })])
  t.match(first, [{ key: trigger('a').key }, { key: trigger('b').key }, { key: trigger('a').key }])
  t.equal(first[0]?.jobId, first[2]?.jobId)
  const [again] = await enqueue('c', [trigger('a')])
  t.equal(again?.jobId, first[0]?.jobId)
  t.ok((again?.generation ?? 0) > Math.max(...first.map(({ generation }) => generation)))
  t.same(await enqueue('c', []), [])
})

t.test('generations do not repeat when Redis lost the newest', async (t) => {
  const { enqueue, server } = await startRig(t)
  const [before] = await enqueue('c', [trigger('a')])
  await server.flush()
  const [after] = await enqueue('c', [trigger('a')])
  t.ok((after?.generation ?? 0) > (before?.generation ?? Infinity))
})

t.test('500 triggers go into Redis at once, and once more change nothing', async (t) => {
  const { enqueue, queue } = await startRig(t)
  const triggers = many(500)
  const begunMs = performance.now()
  await enqueue('c', triggers)
  t.comment(`500 triggers in ${Math.round(performance.now() - begunMs)} ms`)
  await enqueue('c', triggers)
  t.equal(await queue.queue.getWaitingCount(), 500)
})

t.test('a long list is not taken for a Redis that is away, however slowly Redis takes it', async (t) => {
  const { queues, queue } = await startRig(t)
  const { ledger } = queue
  const slow = {
    ...ledger,
    async raise(triggers: readonly Trigger[]) {
      await sleep(4 * triggers.length)
      return ledger.raise(triggers)
    },
  }
  const { enqueue } = createEnqueuer({ ...queues, of: () => ({ ...queue, ledger: slow }) })
  const enqueued = await enqueue('c', [...many(600), trigger('web-0', { cause: 'twice' })])
  t.equal(enqueued.length, 601)
  t.equal(enqueued[600]?.jobId, enqueued[0]?.jobId)
  t.equal(await queue.queue.getWaitingCount(), 600)
})

t.test("a user's trigger overtakes a thousand jobs of a resync, its own among them", async (t) => {
  const rig = await startRig(t)
  await rig.enqueue('c', many(1000, { kind: 'service', urgency: 'background', cause: 'resync' }))
  await rig.enqueue('c', [trigger('web-999', { cause: 'changed' }), trigger('new')])
  await rig.enqueue('c', [trigger('web-999', { urgency: 'background', cause: 'resync' })])
  const order: string[] = []
  const { host } = startWorkers(t, rig, async ({ key, cause, urgency }) => {
    order.push(`${key.split('/')[2]} ${cause} ${urgency}`)
    return {}
  })
  await eventually(() => order.length >= 2)
  await host.stop()
  t.same(order.slice(0, 2).sort(), ['new test user', 'web-999 changed user'])
})

t.test('a trigger with a delay gathers others, and one without a delay does not wait for it', async (t) => {
  const { enqueue, queue } = await startRig(t)
  const delayed = async () => (await queue.queue.getDelayed()).map(({ data }) => data.cause)
  await enqueue('c', [trigger('a', { delayMs: 60_000, cause: 'first' })])
  await enqueue('c', [trigger('a', { delayMs: 90_000, cause: 'second' })])
  t.same(await delayed(), ['first'])
  const score = async () =>
    Number((await queue.redis.zrange(`${queue.ledger.keys.bull}delayed`, 0, '0', 'WITHSCORES'))[1]) / 4096
  const first = await score()
  await enqueue('c', [trigger('a', { delayMs: 30_000 })])
  t.ok((await score()) < first - 20_000, 'the earliest time counts')
  await enqueue('c', [trigger('a')])
  t.same(await delayed(), [])
  t.equal(await queue.queue.getWaitingCount(), 1)
})

t.test('a retry that waits is pulled forward, with the attempts it has made', async (t) => {
  const rig = await startRig(t)
  const attempts: number[] = []
  startWorkers(
    t,
    rig,
    async ({ attempt }) => {
      attempts.push(attempt)
      throw transient('no answer')
    },
    { timings: { floorMs: 50 } },
  )
  for (const failed of [1, 2, 3]) {
    await rig.enqueue('c', [trigger('web', { cause: `change ${failed}` })])
    await eventually(async () => attempts.length === failed && (await rig.queue.queue.getDelayedCount()) === 1)
  }
  t.same(attempts, [0, 1, 2])
  t.match((await rig.queue.queue.getDelayed())[0], { data: { cause: 'change 3' }, failedReason: 'no answer' })
})

t.test('what a cloud throttles is not pulled forward, and spends no attempt', async (t) => {
  const rig = await startRig(t)
  const runs: { attempt: number; atMs: number }[] = []
  let resetMs = 0
  startWorkers(t, rig, async ({ attempt }) => {
    runs.push({ attempt, atMs: Date.now() })
    if (runs.length > 1) return {}
    resetMs = Date.now() + 600
    throw throttled('too many requests', resetMs)
  })
  await rig.enqueue('c', [trigger('web')])
  await eventually(async () => (await rig.queue.queue.getDelayedCount()) === 1)
  await rig.enqueue('c', [trigger('web')])
  t.equal(await rig.queue.queue.getDelayedCount(), 1, 'it stays put off')
  await eventually(() => runs.length === 2)
  t.equal(runs[1]?.attempt, 0)
  t.ok((runs[1]?.atMs ?? 0) >= resetMs)
})

t.test('what is put off since nobody waits for it is pulled forward by a user, and by then is a user’s', async (t) => {
  const rig = await startRig(t)
  const runs: Run['urgency'][] = []
  startWorkers(t, rig, async ({ urgency }) => {
    runs.push(urgency)
    const now = Date.now()
    // As an account says that has some requests left.
    if (runs.length < 3) throw throttled('few requests are left', now + 3_600_000, { userRetryAtMs: now })
    return {}
  })
  const background = trigger('web', { urgency: 'background', cause: 'resync' })
  await rig.enqueue('c', [background])
  await eventually(async () => runs.length === 1 && (await rig.queue.queue.getDelayedCount()) === 1)
  await rig.enqueue('c', [trigger('web', { urgency: 'user', cause: 'a change' })])
  // What a user waits for is not put off for as long as other work either.
  await eventually(() => runs.length === 3)
  t.same(runs, ['background', 'user', 'user'])
})

t.test('what failed for good runs again when it is triggered, and a success clears its failed job away', async (t) => {
  const rig = await startRig(t)
  let good = false
  startWorkers(
    t,
    rig,
    async () => {
      if (!good) throw permanent('annotation x says y: write z')
      return {}
    },
    { timings: { floorMs: 10 } },
  )
  for (const failures of [1, 2]) {
    await rig.enqueue('c', [trigger('web')])
    await eventually(async () => {
      const jobs = await rig.queue.queue.getFailed()
      return jobs.length === 1 && Number(jobs[0]?.id) >= failures
    })
  }
  t.equal((await rig.queue.queue.getFailed())[0]?.failedReason, 'annotation x says y: write z')
  good = true
  await rig.enqueue('c', [trigger('web', { cause: 'dashboard' })])
  await eventually(async () => (await rig.queue.queue.getFailedCount()) === 0)
  t.equal(await rig.queue.queue.getCompletedCount(), 1)
})

t.test('an object that fails and is changed all the time is tried once per floor at most', async (t) => {
  for (const kind of ['transient', 'permanent'] as const) {
    await t.test(kind, async (t) => {
      const rig = await startRig(t)
      const starts: number[] = []
      startWorkers(
        t,
        rig,
        async () => {
          starts.push(performance.now())
          throw kind === 'transient' ? transient('no answer') : permanent('a bad annotation')
        },
        { timings: { floorMs: 300 } },
      )
      const endMs = performance.now() + 1500
      while (performance.now() < endMs) {
        await rig.enqueue('c', [trigger('web')])
        await new Promise((resolve) => setTimeout(resolve, 30))
      }
      await eventually(() => starts.length >= 2)
      const gaps = starts.slice(1).map((at, index) => at - (starts[index] ?? 0))
      t.ok(Math.min(...gaps) >= 200, `gaps of ${gaps.map(Math.round).join(', ')} ms`)
    })
  }
})

t.test('a trigger whose server died before it was added is found by a worker', async (t) => {
  const rig = await startRig(t)
  await rig.queue.ledger.raise([trigger('web', { cause: 'half done' })])
  const causes: string[] = []
  startWorkers(
    t,
    rig,
    async ({ cause }) => {
      causes.push(cause)
      return {}
    },
    { timings: { sweepMs: 100 } },
  )
  await eventually(() => causes.length > 0)
  t.same(causes, ['half done'])
})

t.test('jobs name an object: too much data is refused before anything is in Redis', async (t) => {
  const { enqueue, server } = await startRig(t)
  await t.rejects(enqueue('c', [trigger('a'), trigger('b', { cause: 'x'.repeat(2100) })]), {
    kind: 'permanent',
    message: /Service\/default\/b has 2\d+ bytes/,
  })
  t.equal(await server.command('DBSIZE'), 0)
})

t.test(
  'a Redis that does not take jobs is told within two seconds, and takes them when it is well again',
  async (t) => {
    const rig = await startRig(t)
    const attempt = async (t: Test, name: string) => {
      const begunMs = performance.now()
      await t.rejects(rig.enqueue('c', [trigger(name)]), { kind: 'transient', message: /Redis/ }, name)
      t.comment(`${name}: refused after ${Math.round(performance.now() - begunMs)} ms`)
    }
    const works = () => eventually(() => rig.enqueue('c', [trigger('web')]).catch(() => undefined))
    rig.server.pause()
    await attempt(t, 'frozen')
    rig.server.resume()
    await works()
    await rig.server.config('maxmemory', '1')
    await attempt(t, 'full')
    await rig.server.config('maxmemory', '0')
    await works()
    await rig.server.command('REPLICAOF', '127.0.0.1', await freePort())
    await attempt(t, 'read-only')
    await rig.server.command('REPLICAOF', 'NO', 'ONE')
    await works()
    await rig.server.kill9()
    await attempt(t, 'dead')
    await rig.server.restart()
    await works()
    t.equal(await rig.queue.queue.getWaitingCount(), 1, 'with scripts that the new life did not know')
  },
)

t.test('a Redis that was never there is told, too', async (t) => {
  const redis = producerConnection({ url: `redis://127.0.0.1:${await freePort()}`, prefix: 'windlass' })
  const queues = openClusterQueues(redis, 'windlass')
  t.teardown(async () => {
    await queues.close()
    redis.disconnect()
  })
  await t.rejects(createEnqueuer(queues).enqueue('c', [trigger('web')]), {
    kind: 'transient',
    message: /not reachable/,
  })
})
