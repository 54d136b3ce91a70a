/**
 * Promises 1 and 3 under every interleaving that a seeded generator finds: after each trigger a run starts that reads the object after it,
 * and no run passes the gate before writes once a newer run has begun. Backoffs of `service` work are an hour here, so that a trigger which
 * only gets its run by luck of a retry counts as lost.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { permanent, throttled, transient } from '../../src/errors.ts'
import type { Ledger } from '../../src/queue/ledger.ts'
import type { WorkKind } from '../../src/queue/types.ts'
import { type Handler, type Run, startWorker } from '../../src/worker/host.ts'
import { startRig } from './rig.ts'

const HOUR_MS = 3_600_000

/** What a run comes to. `die`: its worker is gone in the middle; `freeze`: it loses its lock, and goes on not knowing. */
const OUTCOMES = ['done', 'again', 'periodic', 'fail', 'throttled', 'permanent', 'die', 'freeze'] as const
type Ending = (typeof OUTCOMES)[number]
/** Where a worker can die besides: after the named step was done in Redis, before it knew. */
const CRASHES = ['claim', 'hold', 'fail', 'before release', 'release'] as const
type Crash = (typeof CRASHES)[number]
/** When a trigger comes: at a time, or at a point of the n-th run. */
type When = { atMs: number } | { run: number; point: 'start' | 'read' | 'end' | 'ended'; afterMs: number }

interface Plan {
  kind: WorkKind
  runs: { ending: Ending; beforeReadMs: number; afterReadMs: number; crash?: Crash }[]
  triggers: {
    when: When
    urgency: 'user' | 'background'
    how: 'event' | 'dashboard' | 'gathered' | 'behind our back'
  }[]
}

interface Subject {
  key: string
  plan: Plan
  /** Raised before each trigger: what a run reads is the object's state. */
  version: number
  acknowledged: number
  seen: number
  starts: number
  state: string
  crash?: Crash
}

t.setTimeout(180_000)

t.test('no interleaving loses a trigger, or lets two runs write', async (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  const played = await play(t, { objects: 1100, seed })
  t.comment(`seed ${seed}: ${played.interleavings} interleavings of ${played.triggers} triggers, ${played.runs} runs`)
  for (const [state, count] of Object.entries(played.states).sort()) t.comment(`${String(count).padStart(5)} ${state}`)
  t.ok(played.interleavings >= 1000)
  t.same(played.lost, [], 'each trigger was followed by a run that read after it')
  t.same(played.intrusions, [], 'no run passed the gate after a newer one had begun')
  t.ok(
    played.gatePasses > 0 && played.gateRefusals > 0,
    `${played.gatePasses} writes passed, ${played.gateRefusals} were refused`,
  )
})

t.test('a worker that does not look at what became due since a run began is caught', async (t) => {
  const played = await play(t, {
    objects: 100,
    seed: 7,
    // Each run fails, and the triggers come while it is at work.
    plan: (random) => ({
      ...makePlan(random),
      kind: 'service',
      runs: [{ ending: 'fail', beforeReadMs: 5, afterReadMs: 10 + Math.floor(random() * 30) }],
      triggers: [
        { when: { atMs: 0 }, urgency: 'user', how: 'event' },
        { when: { run: 0, point: 'read', afterMs: Math.floor(random() * 5) }, urgency: 'user', how: 'event' },
      ],
    }),
    ledger: (ledger) => ({
      ...ledger,
      hold: async (key, forMs) => ({ ...(await ledger.hold(key, forMs)), due: false }),
      release: async (...run) => ({ ...(await ledger.release(...run)), due: false }),
      overdue: async () => [],
    }),
  })
  t.ok(played.lost.length > 0, `${played.lost.length} of ${played.interleavings} objects lost a trigger`)
})

async function play(
  t: Test,
  options: {
    objects: number
    seed: number
    plan?: (random: () => number) => Plan
    ledger?: (ledger: Ledger) => Ledger
  },
): Promise<{
  interleavings: number
  triggers: number
  runs: number
  lost: string[]
  intrusions: string[]
  gatePasses: number
  gateRefusals: number
  states: Record<string, number>
}> {
  const rig = await startRig(t)
  const random = generator(options.seed)
  const subjects = new Map<string, Subject>()
  const states: Record<string, number> = {}
  const intrusions: string[] = []
  let runs = 0
  let triggers = 0
  let gatePasses = 0
  let gateRefusals = 0
  let lastStartMs = performance.now()
  /** A run that outlasts its worker comes to its points when Redis is gone already. */
  let over = false

  async function fire(subject: Subject, index: number): Promise<void> {
    const asked = subject.plan.triggers[index]
    if (!asked) return
    const version = ++subject.version
    triggers++
    states[subject.state] = (states[subject.state] ?? 0) + 1
    if (asked.how === 'behind our back') {
      for (const job of await rig.queue.queue.getFailed(0, 20)) {
        if (job.data.key === subject.key) await job.retry('failed').catch(() => {})
      }
    }
    const delay = asked.how === 'gathered' ? { delayMs: 30 } : {}
    const wanted = { kind: subject.plan.kind, key: subject.key, cause: asked.how, urgency: asked.urgency, ...delay }
    // As a forwarder does, until Redis has it: on a machine that is busy enough an answer may come too late.
    while (!over && !(await rig.enqueue('c', [wanted]).catch(() => undefined))) await sleep(50)
    subject.acknowledged = Math.max(subject.acknowledged, version)
  }

  const pending = new Set<Promise<void>>()
  const track = (work: Promise<void>) => {
    const tracked = work.finally(() => pending.delete(tracked))
    pending.add(tracked)
  }
  const reach = (subject: Subject, run: number, point: string) => {
    if (over) return
    for (const [index, { when }] of subject.plan.triggers.entries()) {
      if ('run' in when && when.run === run && when.point === point) {
        track(when.afterMs > 0 ? sleep(when.afterMs).then(() => fire(subject, index)) : fire(subject, index))
      }
    }
  }

  const handler: Handler = async (run: Run) => {
    const subject = subjects.get(run.key)
    if (!subject) throw permanent(`unknown ${run.key}`)
    const index = subject.starts++
    const { ending, beforeReadMs, afterReadMs, crash } = subject.plan.runs[index] ?? {
      ending: 'done',
      beforeReadMs: 0,
      afterReadMs: 1,
    }
    runs++
    lastStartMs = performance.now()
    subject.state = `active, then ${ending}`
    reach(subject, index, 'start')
    await sleep(beforeReadMs)
    const seen = subject.version
    reach(subject, index, 'read')
    if (ending === 'die' || ending === 'freeze')
      await rig.server.command('DEL', `${rig.queue.ledger.keys.bull}${run.jobId}:lock`)
    else subject.seen = Math.max(subject.seen, seen)
    if (ending === 'die') {
      subject.state = 'its worker died'
      const { signal } = run.call
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw signal.reason
    }
    await sleep(ending === 'freeze' ? 600 : afterReadMs)
    const overtaken = subject.starts > index + 1
    try {
      await run.call.beforeWrite('write')
      gatePasses++
      if (overtaken) intrusions.push(`${run.key} run ${index}`)
    } catch (error) {
      gateRefusals++
      if (ending !== 'freeze') throw error
    }
    if (subject.starts === index + 1) {
      if (crash) subject.crash = crash
      subject.state = `after ${ending}${crash ? `, died at ${crash}` : ''}`
    }
    reach(subject, index, 'end')
    setImmediate(() => reach(subject, index, 'ended'))
    if (ending === 'fail') throw transient('no answer')
    if (ending === 'permanent') throw permanent('a bad annotation')
    if (ending === 'throttled') throw throttled('too many requests', Date.now() + 40 + Math.floor(random() * 150))
    if (ending === 'again') return { requeueAfterMs: 20 }
    if (ending === 'periodic') return { requeueAfterMs: HOUR_MS }
    return {}
  }

  /** Dies at the point that the object's run has set. */
  const mortal = (ledger: Ledger): Ledger => {
    const dies = (key: string, at: Crash) => {
      const subject = subjects.get(key)
      if (subject?.crash !== at) return
      delete subject.crash
      throw new Error(`died at ${at}`)
    }
    return {
      ...ledger,
      async claim(key, ...rest) {
        const subject = subjects.get(key)
        if (subject?.plan.runs[subject.starts]?.crash === 'claim' && random() < 0.5) subject.crash = 'claim'
        const claim = await ledger.claim(key, ...rest)
        dies(key, 'claim')
        return claim
      },
      async hold(key, forMs) {
        const held = await ledger.hold(key, forMs)
        dies(key, 'hold')
        return held
      },
      async fail(key, jobId) {
        const before = await ledger.fail(key, jobId)
        dies(key, 'fail')
        return before
      },
      async release(key, ...rest) {
        dies(key, 'before release')
        const released = await ledger.release(key, ...rest)
        dies(key, 'release')
        return released
      },
    }
  }

  const hosts = [0, 1].map(() =>
    startWorker(
      {
        redis: rig.settings,
        clusters: ['c'],
        handlers: {
          node: handler,
          service: handler,
          targets: handler,
          route: handler,
          addresses: handler,
          resync: handler,
        },
        concurrency: 60,
        log: pino({ level: 'silent' }),
        graceMs: 1000,
      },
      {
        timings: { lockMs: 400, renewMs: 120, stalledMs: 60, blockMs: 200, sweepMs: 150, floorMs: 40, maxStalls: 50 },
        backoffMs: (kind) => (kind === 'node' ? 50 : HOUR_MS),
        ledger: (ledger) => (options.ledger ?? ((one) => one))(mortal(ledger)),
      },
    ),
  )

  for (let n = 0; n < options.objects; n++) {
    const plan = (options.plan ?? makePlan)(random)
    const subject = {
      key: `Service/n/${n}`,
      plan,
      version: 0,
      acknowledged: 0,
      seen: 0,
      starts: 0,
      state: 'waiting for its first run',
    }
    subjects.set(subject.key, subject)
  }
  const started: Promise<void>[] = []
  for (const subject of subjects.values()) {
    // A steady stream rather than one wave, so that the machine is busy and not choked.
    await sleep(9)
    started.push(
      ...subject.plan.triggers.map(async ({ when }, index) => {
        if (!('atMs' in when)) return
        await sleep(when.atMs)
        await fire(subject, index)
      }),
    )
  }
  await Promise.all(started)
  const unseen = () => [...subjects.values()].filter(({ seen, acknowledged }) => seen < acknowledged)
  // Ends as soon as all is well; what is not well yet has as long as workers find anything to do, and some.
  while (pending.size > 0 || (unseen().length > 0 && performance.now() - lastStartMs < 4000)) await sleep(20)
  const lost = unseen().map(
    ({ key, seen, acknowledged, state, plan }) =>
      `${key}: saw ${seen} of ${acknowledged}, ${state}: ${JSON.stringify(plan)}`,
  )
  over = true
  await Promise.all(hosts.map((host) => host.stop()))
  return { interleavings: subjects.size, triggers, runs, lost, intrusions, gatePasses, gateRefusals, states }
}

function makePlan(random: () => number): Plan {
  const upTo = (n: number) => Math.floor(random() * n)
  const pick = <T>(from: readonly T[]) => from[upTo(from.length)] as T
  const runs = Array.from({ length: 1 + upTo(4) }, () => ({
    ending: pick(OUTCOMES),
    beforeReadMs: upTo(15),
    afterReadMs: upTo(25),
    ...(random() < 0.2 ? { crash: pick(CRASHES) } : {}),
  }))
  const first = { when: { atMs: 0 }, urgency: pick(['user', 'background'] as const), how: 'event' as const }
  const more = Array.from({ length: 1 + upTo(4) }, () => ({
    when:
      random() < 0.3
        ? { atMs: upTo(250) }
        : {
            run: upTo(runs.length),
            point: pick(['start', 'read', 'end', 'ended'] as const),
            afterMs: random() < 0.6 ? 0 : upTo(8),
          },
    urgency: pick(['user', 'background'] as const),
    how: pick(['event', 'event', 'dashboard', 'gathered', 'behind our back'] as const),
  }))
  return { kind: random() < 0.75 ? 'service' : 'node', runs, triggers: [first, ...more] }
}

/** Random numbers in [0, 1) that a seed determines. */
function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
