import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { createCoalescedRead, createSharedRead } from '../../src/cloud/shared-read.ts'
import { startRedis } from '../redis.ts'
import { callOf } from './hcloud/bench.ts'

const redis = await startRedis()
const connections: Redis[] = []
t.teardown(async () => {
  for (const one of connections) one.disconnect()
  await redis.stop()
})
t.afterEach(() => redis.flush())

function connect(): Redis {
  const one = new Redis(redis.url)
  connections.push(one)
  return one
}

/** Reads that end when they are told to. */
function source() {
  const waiting: (() => void)[] = []
  let reads = 0
  return {
    get reads() {
      return reads
    },
    fetch: () =>
      new Promise<number>((resolve) => {
        const read = ++reads
        waiting.push(() => resolve(read))
      }),
    /** Ends reads, also those that only begin now, until nobody waits. */
    async until<T>(done: Promise<T>): Promise<T> {
      let over = false
      const end = done.finally(() => {
        over = true
      })
      end.catch(() => undefined)
      while (!over) {
        waiting.shift()?.()
        await new Promise((resolve) => setImmediate(resolve))
      }
      return end
    },
  }
}

t.test('who asks while a read is on its way shares the next one', async (t) => {
  const from = source()
  const read = createCoalescedRead(from.fetch)
  const first = read(callOf())
  const others = Array.from({ length: 40 }, () => read(callOf()))
  t.strictSame(await from.until(Promise.all([first, ...others])), [1, ...others.map(() => 2)])
  t.equal(from.reads, 2)
})

t.test('a read that a user waits for is a user’s, whoever asked for it first', async (t) => {
  const from = source()
  const urgencies: string[] = []
  const read = createCoalescedRead(({ urgency }) => {
    urgencies.push(urgency)
    return from.fetch()
  })
  const background = callOf({ urgency: 'background' })
  await from.until(Promise.all([background, background, callOf(), background].map((call) => read(call))))
  await from.until(Promise.all([background, background].map((call) => read(call))))
  t.strictSame(urgencies, ['background', 'user', 'background', 'background'])
})

t.test('a read that fails fails for those who waited for it, and the next one is a new one', async (t) => {
  let reads = 0
  const read = createCoalescedRead(async () => {
    if (++reads === 1) throw new Error('no')
    return reads
  })
  await t.rejects(read(callOf()), /no/)
  t.equal(await read(callOf()), 2)
})

t.test('a run that is stopped waits no longer, and the others get their answer', async (t) => {
  const from = source()
  const read = createCoalescedRead(from.fetch)
  const stop = new AbortController()
  const [stopped, other] = [read(callOf({ signal: stop.signal })), read(callOf())]
  stop.abort()
  await t.rejects(stopped, { kind: 'aborted', message: /stopped/ })
  t.equal(await from.until(other), 2)
})

t.test('a read serves everybody for its age, in this process and in others', async (t) => {
  const from = source()
  const make = () => createSharedRead({ redis: connect(), key: () => 'list', maxAgeMs: 60_000, fetch: from.fetch })
  const workers = [make(), make(), make()]
  const all = Promise.all(workers.flatMap((worker) => [worker.get(callOf()), worker.get(callOf())]))
  t.strictSame(await from.until(all), [1, 1, 1, 1, 1, 1])
  t.strictSame(
    workers.map((worker) => worker.peek()),
    [1, 1, 1],
  )
  t.equal(await from.until(workers[0]!.fresh(callOf())), 2)
  t.equal(await from.until(make().get(callOf())), 2, 'a fresh read serves the others too')
})

t.test(
  'a worker that died while it read holds up the others for seconds, and one that is slow as long as it lives',
  async (t) => {
    const dying = connect()
    const dead = source()
    const read = (from: ReturnType<typeof source>, on: Redis) =>
      createSharedRead({ redis: on, key: () => 'list', maxAgeMs: 60_000, fetch: from.fetch }).get(callOf())
    read(dead, dying).catch(() => {})
    while (dead.reads === 0) await delay(5)
    dying.disconnect()
    t.ok(Number(await redis.command('PTTL', 'list:lock')) <= 3000, 'a few seconds')
    // It is read by the first of two, which takes its time, longer than a lock lasts that nobody renews.
    const others = [source(), source()]
    const got = Promise.all(others.map((from) => read(from, connect())))
    while (others.every(({ reads }) => reads === 0)) await delay(20)
    await delay(4000)
    t.equal(others[0]!.reads + others[1]!.reads, 1, 'only one reads')
    t.strictSame(await Promise.race(others.map((from) => from.until(got))), [1, 1])
  },
)

t.test('another credential sees nothing of the old one', async (t) => {
  let key = 'a'
  const from = source()
  const read = createSharedRead({ key: () => key, maxAgeMs: 60_000, fetch: from.fetch })
  t.equal(await from.until(read.get(callOf())), 1)
  key = 'b'
  t.equal(read.peek(), undefined)
  t.equal(await from.until(read.get(callOf())), 2)
})

t.test('nothing is kept when nothing shall be, or when it was forgotten', async (t) => {
  const from = source()
  const read = createSharedRead({ redis: connect(), key: () => 'list', maxAgeMs: 0, fetch: from.fetch })
  t.strictSame([await from.until(read.get(callOf())), await from.until(read.get(callOf()))], [1, 2])
  const kept = createSharedRead({ redis: connect(), key: () => 'kept', maxAgeMs: 60_000, fetch: from.fetch })
  await from.until(kept.get(callOf()))
  await kept.forget()
  t.equal(await from.until(kept.get(callOf())), 4)
})

t.test('a read waits a moment for others who want it, and begins after all of them have asked', async (t) => {
  const began: number[] = []
  const fresh = createCoalescedRead(
    async () => {
      began.push(performance.now())
      return began.length
    },
    { gatherMs: 50 },
  )
  const first = fresh(callOf())
  await new Promise((resolve) => setTimeout(resolve, 10))
  const askedMs = performance.now()
  const second = fresh(callOf())
  t.same(await Promise.all([first, second]), [1, 1])
  t.ok((began[0] ?? 0) >= askedMs)
})

t.test(
  'a read that nobody waits for gathers longer, and a user who comes ends that and has it as a user’s',
  async (t) => {
    const from = source()
    const urgencies: string[] = []
    const fresh = createCoalescedRead(
      ({ urgency }) => {
        urgencies.push(urgency)
        return from.fetch()
      },
      { gatherMs: { user: 0, background: 60_000 } },
    )
    const background = () => fresh(callOf({ urgency: 'background' }))
    const all = [background(), background()]
    await delay(20)
    t.equal(from.reads, 0)
    all.push(fresh(callOf()), background())
    t.strictSame(await from.until(Promise.all(all)), [1, 1, 1, 1])
    t.strictSame(urgencies, ['user'])
  },
)

t.test('what is urgent waits for nobody', async (t) => {
  const s = source()
  const fresh = createCoalescedRead(s.fetch, { gatherMs: 1000 })
  const waiting = fresh(callOf())
  waiting.catch(() => undefined)
  t.equal(await s.until(fresh({ ...callOf(), urgency: 'urgent' })), 1)
  t.equal(s.reads, 1, 'while the other has not begun')
})

t.test('a read that began after a time serves who asks for one since then, and an older one does not', async (t) => {
  let reads = 0
  const read = createSharedRead({ key: () => 'k', maxAgeMs: 10_000, fetch: async () => ++reads })
  const before = performance.now()
  await read.get(callOf())
  t.equal(await read.since(before, callOf()), 1)
  t.equal(await read.since(performance.now(), callOf()), 2)
})

t.test('what is known here may be put right by who wrote it', async (t) => {
  const shared = () =>
    createSharedRead<string[]>({ redis: connect(), key: () => 'k', maxAgeMs: 10_000, fetch: async () => ['off'] })
  const [one, other] = [shared(), shared()]
  one.amend(() => ['never read'])
  t.same(await one.get(callOf()), ['off'])
  one.amend(() => ['on'])
  t.same(await one.get(callOf()), ['on'])
  t.same(await other.get(callOf()), ['off'], 'others see what was read')
})
