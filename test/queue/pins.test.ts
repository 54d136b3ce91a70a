/** Facts about BullMQ that the queue leans on. When an upgrade breaks one, the code that names it must be looked at again. */
import { ErrorCode, type Job, UnrecoverableError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { bullPrefix } from '../../src/queue/keys.ts'
import { jobOptions } from '../../src/queue/names.ts'
import { workerConnection } from '../../src/queue/redis.ts'
import type { JobData, Trigger } from '../../src/queue/types.ts'
import { eventually, startRig, trigger } from './rig.ts'

class RetryIn extends Error {
  readonly waitMs: number
  constructor(waitMs: number) {
    super('later')
    this.waitMs = waitMs
  }
}

async function setUp(t: Test, options: { lockMs?: number; maxStalledCount?: number } = {}) {
  const rig = await startRig(t)
  const redis = workerConnection(rig.settings)
  const worker = new Worker<JobData>('c', null, {
    connection: redis,
    prefix: bullPrefix('windlass'),
    autorun: false,
    lockDuration: options.lockMs ?? 30_000,
    stalledInterval: 20,
    maxStalledCount: options.maxStalledCount ?? 10,
    settings: { backoffStrategy: (_attempts, _type, error) => (error instanceof RetryIn ? error.waitMs : -1) },
  })
  worker.on('error', () => {})
  t.teardown(async () => {
    await worker.close(true)
    redis.disconnect()
  })
  const { queue } = rig.queue
  const add = async (name: string, more: Partial<Trigger> = {}) => {
    const what = trigger(name, more)
    const [job] = await queue.addBulk([
      { name: what.kind, data: { ...what, v: 1, cluster: 'c', enqueuedAtMs: 0 }, opts: jobOptions(what) },
    ])
    return String(job?.id)
  }
  const take = async (token = 'token'): Promise<Job<JobData>> => {
    const job = await worker.getNextJob(token, { block: false })
    if (!job) throw new Error('no job')
    return job
  }
  return { ...rig, redis, worker, add, take, bull: rig.queue.ledger.keys.bull, bullQueue: queue }
}

const key = (name: string) => trigger(name).key
const ttl = (redis: Redis, name: string) => redis.pttl(name)

t.test(
  'a second add is folded into the job that stands, whose id the deduplication key holds without expiry',
  async (t) => {
    const { add, redis, bull, bullQueue } = await setUp(t)
    const first = await add('web')
    t.equal(await add('web'), first)
    t.equal(await redis.get(`${bull}de:${key('web')}`), first)
    t.equal(await ttl(redis, `${bull}de:${key('web')}`), -1)
    t.equal(await bullQueue.getWaitingCount(), 1)
  },
)

t.test('an add while the job is active becomes a job when that one ends', async (t) => {
  for (const end of ['completed', 'failed'] as const) {
    await t.test(end, async (t) => {
      const { add, take, redis, bull, bullQueue } = await setUp(t)
      const first = await add('web')
      const job = await take()
      t.equal(await add('web', { cause: 'second' }), first, 'answered with the active job')
      await add('web', { cause: 'third', delayMs: 50_000, urgency: 'background' })
      t.equal(await bullQueue.getWaitingCount(), 0)
      if (end === 'completed') await job.moveToCompleted(undefined, 'token', false)
      else await job.moveToFailed(new UnrecoverableError('no'), 'token', false)
      const [next] = await bullQueue.getDelayed()
      t.match(
        next,
        { data: { cause: 'third' }, delay: 50_000, priority: 10, attemptsMade: 0 },
        'only the last, as added',
      )
      t.equal(await redis.get(`${bull}de:${key('web')}`), next?.id)
    })
  }
})

t.test('an add while the job waits for its retry changes nothing', async (t) => {
  const { add, take, bullQueue } = await setUp(t)
  const first = await add('web')
  const job = await take()
  await job.moveToFailed(new RetryIn(50_000), 'token', false)
  t.equal(await add('web', { cause: 'second' }), first)
  const [waiting] = await bullQueue.getDelayed()
  t.match(waiting, { id: first, data: { cause: 'test' }, delay: 50_000 })
})

t.test('an add while the job is active does not cut the retry short when that run fails', async (t) => {
  const { add, take, bullQueue } = await setUp(t)
  await add('web')
  const job = await take()
  await add('web', { cause: 'second' })
  await job.moveToFailed(new RetryIn(50_000), 'token', false)
  t.equal(await bullQueue.getWaitingCount(), 0)
  t.equal(await bullQueue.getDelayedCount(), 1)
})

t.test(
  'the deduplication key goes when the job ends for good, and trimming an old job leaves the new one alone',
  async (t) => {
    const { add, take, redis, bull, bullQueue } = await setUp(t)
    const first = await add('web')
    await (await take()).moveToFailed(new UnrecoverableError('no'), 'token', false)
    t.equal(await redis.get(`${bull}de:${key('web')}`), null)
    const second = await add('web')
    t.not(second, first)
    await bullQueue.clean(0, 0, 'failed')
    t.equal(await redis.exists(`${bull}${first}`), 0)
    t.equal(await redis.get(`${bull}de:${key('web')}`), second)
  },
)

t.test('a deduplication key whose job is gone stands for nothing', async (t) => {
  const { add, redis, bull } = await setUp(t)
  await redis.set(`${bull}de:${key('web')}`, '77')
  const id = await add('web')
  t.not(id, '77')
  t.equal(await redis.exists(`${bull}${id}`), 1)
})

t.test('a person who retries an old failed job past us makes it run beside the newer one', async (t) => {
  const { add, take, bullQueue } = await setUp(t)
  const first = await add('web')
  await (await take()).moveToFailed(new UnrecoverableError('no'), 'token', false)
  const second = await add('web')
  t.equal((await take()).id, second)
  await (await bullQueue.getJob(first))?.retry('failed')
  t.equal((await take('other')).id, first)
})

t.test("a job's time is its score in the delayed set, in milliseconds times 4096", async (t) => {
  const { add, redis, bull } = await setUp(t)
  const before = Date.now()
  const id = await add('web', { delayMs: 5000 })
  const after = Date.now()
  const at = Math.floor(Number(await redis.zscore(`${bull}delayed`, id)) / 4096)
  t.ok(at >= before + 5000 && at <= after + 5000)
})

t.test('a taken job has a lock of its own that holds the token and expires', async (t) => {
  const { add, take, redis, bull } = await setUp(t, { lockMs: 10_000 })
  const id = await add('web')
  const job = await take('mine')
  t.equal(await redis.get(`${bull}${id}:lock`), 'mine')
  const left = await ttl(redis, `${bull}${id}:lock`)
  t.ok(left > 0 && left <= 10_000)
  await job.moveToDelayed(Date.now() + 60_000, 'mine')
  t.equal(await redis.exists(`${bull}${id}:lock`), 0, 'and none once it was moved')
})

t.test('renewing says which locks are not ours', async (t) => {
  const { add, take, worker, redis, bull } = await setUp(t)
  const [a, b, c] = [await add('a'), await add('b'), await add('c')]
  for (const token of ['ta', 'tb', 'tc']) await take(token)
  await redis.del(`${bull}${b}:lock`)
  await redis.set(`${bull}${c}:lock`, 'another')
  t.same(await worker.extendJobLocks([a, b, c], ['ta', 'tb', 'tc'], 1000), [b, c])
})

t.test('a job that is not ours any more can not be moved, and the error says so by its code', async (t) => {
  const { add, take, redis, bull } = await setUp(t)
  const id = await add('web')
  const job = await take()
  const moves: Record<string, () => Promise<unknown>> = {
    completed: () => job.moveToCompleted(undefined, 'token', false),
    failed: () => job.moveToFailed(new UnrecoverableError('no'), 'token', false),
    retried: () => job.moveToFailed(new RetryIn(10), 'token', false),
    again: () => job.moveToFailed(new RetryIn(0), 'token', false),
    delayed: () => job.moveToDelayed(Date.now() + 10, 'token'),
    waiting: () => job.moveToWait('token'),
  }
  await redis.set(`${bull}${id}:lock`, 'another')
  for (const [name, move] of Object.entries(moves)) await t.rejects(move(), { code: ErrorCode.JobLockMismatch }, name)
  await redis.del(`${bull}${id}:lock`)
  for (const [name, move] of Object.entries(moves)) await t.rejects(move(), { code: ErrorCode.JobLockNotExist }, name)
  t.equal(await redis.llen(`${bull}active`), 1)
})

t.test('only a failure spends an attempt', async (t) => {
  const { add, take, bullQueue, server: _ } = await setUp(t)
  const id = await add('web')
  const attempts = async () => (await bullQueue.getJob(id))?.attemptsMade
  await (await take()).moveToWait('token')
  t.equal(await attempts(), 0, 'handed back')
  await (await take()).moveToDelayed(Date.now() + 60_000, 'token')
  t.equal(await attempts(), 0, 'put off')
  await bullQueue.getBackend().promote(id)
  await (await take()).moveToFailed(new RetryIn(60_000), 'token', false)
  t.equal(await attempts(), 1, 'failed')
  await bullQueue.getBackend().promote(id)
  t.equal(await attempts(), 1, 'pulled forward')
  await (await take()).moveToFailed(new RetryIn(0), 'token', false)
  t.match(
    await bullQueue.getJob(id),
    { attemptsMade: 2, failedReason: 'later' },
    'a wait of nothing is a retry at once',
  )
  t.equal(await bullQueue.getWaitingCount(), 1)
})

t.test('a job that is handed back comes before those that waited', async (t) => {
  const { add, take } = await setUp(t)
  const first = await add('a')
  await add('b')
  await (await take()).moveToWait('token')
  t.equal((await take()).id, first)
})

t.test('jobs without priority come first, then low numbers, whatever came when', async (t) => {
  const { add, take } = await setUp(t)
  const ids = [
    await add('a', { kind: 'resync', urgency: 'background' }),
    await add('b', { urgency: 'background' }),
    await add('c', { urgency: 'user' }),
  ]
  const order = []
  for (const token of ['1', '2', '3']) order.push((await take(token)).id)
  t.same(order, ids.reverse())
})

t.test('a priority can be changed wherever the job is, and a job that waits is moved with it', async (t) => {
  const { add, take, bullQueue, redis, bull } = await setUp(t)
  const backend = bullQueue.getBackend()
  const [a, b, c] = [
    await add('a', { urgency: 'background' }),
    await add('b', { urgency: 'background' }),
    await add('c', { urgency: 'background', delayMs: 60_000 }),
  ]
  await backend.changePriority(b, 0)
  const job = await take()
  t.equal(job.id, b)
  await backend.changePriority(c, 0)
  t.equal(await redis.zcard(`${bull}delayed`), 1, 'a delayed job stays delayed')
  await backend.promote(c)
  t.equal((await take('second')).id, c, 'and comes first once it is not')
  await (await take('third')).moveToCompleted(undefined, 'third', false)
  await backend.changePriority(b, 20)
  t.equal(await redis.llen(`${bull}active`), 2, 'an active job stays active')
  await job.moveToFailed(new RetryIn(0), 'token', false)
  t.equal(await redis.zcard(`${bull}prioritized`), 1)
  t.ok(a)
})

t.test('a job that is not delayed can not be pulled forward, and the error says so by its code', async (t) => {
  const { add, take, bullQueue } = await setUp(t)
  const backend = bullQueue.getBackend()
  const id = await add('web')
  await t.rejects(backend.promote(id), { code: ErrorCode.JobNotInState })
  await take()
  await t.rejects(backend.promote(id), { code: ErrorCode.JobNotInState })
  await t.rejects(backend.changeDelay(id, 10), { code: ErrorCode.JobNotInState })
  await t.rejects(backend.changePriority('77', 0), { code: ErrorCode.JobNotExist })
})

t.test("a dead worker's job goes back to the front, and after too many deaths carries its failure", async (t) => {
  const { add, take, worker, redis, bull } = await setUp(t, { maxStalledCount: 1 })
  const id = await add('web')
  await add('other', { urgency: 'background' })
  await worker.startStalledCheckTimer()
  for (const stalls of [1, 2]) {
    t.equal((await take()).id, id)
    await redis.del(`${bull}${id}:lock`)
    await eventually(async () => (await redis.llen(`${bull}wait`)) === 1)
    t.equal(await redis.hget(`${bull}${id}`, 'stc'), `${stalls}`)
  }
  t.match(await take(), { id, deferredFailure: /stalled/, stalledCounter: 2 })
})

t.test('waiting for work ends with a marker: 0 for a job that can run, else the time of the next', async (t) => {
  const { add, worker } = await setUp(t)
  await worker.waitUntilReady()
  const backend = worker.getBackend()
  const at = Date.now() + 5000
  await add('later', { delayMs: 5000 })
  const later = await backend.waitForJob(1)
  t.ok(later && later.score >= at && later.score < at + 2000)
  const waiting = backend.waitForJob(5)
  await add('now')
  t.match(await waiting, { score: 0 })
  t.equal(await backend.waitForJob(0.01), null)
})

t.test('taking a job leaves a marker, so that the next idle worker looks too', async (t) => {
  const { add, take, worker } = await setUp(t)
  await worker.waitUntilReady()
  await add('a')
  await add('b')
  t.match(await worker.getBackend().waitForJob(1), { score: 0 })
  await take()
  t.match(await worker.getBackend().waitForJob(1), { score: 0 })
})

t.test('data that is too big, and custom ids, are refused where they are added', async (t) => {
  const { add, bullQueue } = await setUp(t)
  await t.rejects(add('web', { cause: 'x'.repeat(3000) }), /size/)
  await t.rejects(bullQueue.add('service', {} as JobData, { jobId: 'Service/ns:web' }), /Custom Id/)
})

t.test('finished jobs are trimmed by count, and return nothing', async (t) => {
  const { add, take, bullQueue, redis, bull } = await setUp(t)
  const id = await add('web')
  await (await take()).moveToCompleted(undefined, 'token', false)
  t.match(await bullQueue.getJob(id), { returnvalue: null })
  t.ok(Number(await redis.call('MEMORY', 'USAGE', `${bull}${id}`)) < 2048)
  const one = await bullQueue.add('x', {} as JobData, { removeOnComplete: { count: 1 } })
  await (await take()).moveToCompleted(undefined, 'token', false)
  t.same(
    (await bullQueue.getCompleted()).map((job) => job.id),
    [one.id],
  )
})
