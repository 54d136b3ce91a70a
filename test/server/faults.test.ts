import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import t from 'tap'
import { transient } from '../../src/errors.ts'
import { whenReady } from '../../src/queue/redis.ts'
import { nodeOf, serviceOf } from '../state/stores.ts'
import { type Harness, harness, nodeChanged, serviceChanged, snapshotBegin, snapshotEnd } from './harness.ts'

/** Until Redis is back and the connection with it. */
async function accepted(h: Harness, post: () => ReturnType<Harness['post']>) {
  for (let tries = 0; ; tries++) {
    const answer = await post()
    if (answer.status === 202 || tries === 100) return answer
    await whenReady(h.redis, 500).catch(() => new Promise((resolve) => setTimeout(resolve, 50)))
  }
}

const faults: [what: string, begin: (h: Harness) => unknown, end: (h: Harness) => unknown][] = [
  ['killed', (h) => h.fixture.kill9(), (h) => h.fixture.restart()],
  ['frozen', (h) => h.fixture.pause(), (h) => h.fixture.resume()],
  ['full', (h) => h.fixture.config('maxmemory', '1'), (h) => h.fixture.config('maxmemory', '0')],
  [
    'read-only',
    (h) => h.fixture.command('REPLICAOF', '127.0.0.1', 1),
    (h) => h.fixture.command('REPLICAOF', 'NO', 'ONE'),
  ],
]

t.test('while Redis is', async (t) => {
  t.jobs = 4
  for (const [what, begin, end] of faults)
    t.test(`${what}, changes are refused soon, and taken when it is back`, async (t) => {
      const h = await harness(t)
      t.equal((await h.post([nodeChanged(nodeOf('first', 1))])).status, 202)
      t.equal((await h.server.app.inject('/readyz')).statusCode, 200)
      await begin(h)
      for (const batch of [[nodeChanged(nodeOf('second', 2))], []]) {
        const begun = performance.now()
        const answer = await h.post(batch)
        t.equal(answer.status, 503)
        t.comment(`refused after ${Math.round(performance.now() - begun)} ms`)
        t.match(answer.headers['retry-after'], /^[1-9]/)
        t.match(answer.body.message, /Redis/)
      }
      const ready = await h.server.app.inject('/readyz')
      t.equal(ready.statusCode, 503)
      t.match(ready.json().problems[0], /Redis/)
      t.equal((await h.server.app.inject('/healthz')).statusCode, 200, 'a restart would not help')
      t.equal((await h.server.app.inject('/metrics')).statusCode, 200)
      await end(h)
      const answer = await accepted(h, () => h.post([nodeChanged(nodeOf('second', 2))]))
      t.equal(answer.status, 202)
      t.ok((await h.jobs()).has('Node/second'))
      t.equal((await h.server.app.inject('/readyz')).statusCode, 200)
    })
})

t.test('what somebody else wrote under our keys is told in the words of Redis, and taking it away heals', async (t) => {
  const h = await harness(t)
  t.equal((await h.post([nodeChanged(nodeOf('first', 1))])).status, 202)
  const keys = (await h.redis.keys('*')).filter((key) => key.endsWith(':outbox') || key.includes(':nodes'))
  t.ok(keys.length > 0)
  for (const key of keys) {
    // Text in place of text is no wrong type; a version that is none is forgotten with the next list.
    if ((await h.redis.type(key)) === 'string') continue
    await h.redis.del(key)
    await h.redis.set(key, 'garbage')
    const answer = await h.post([nodeChanged(nodeOf('second', 2))])
    t.equal(answer.status, 503, key)
    t.match(answer.body.message, /WRONGTYPE.*nothing else writes under Windlass' keys/)
    await h.redis.del(key)
  }
  t.equal((await h.post([nodeChanged(nodeOf('second', 2))])).status, 202)
  t.ok((await h.jobs()).has('Node/second'))
})

t.test('a Redis that was never there is no reason to hang', async (t) => {
  const h = await harness(t, {}, false)
  const begun = performance.now()
  t.equal((await h.post([nodeChanged(nodeOf('a', 1))])).status, 503)
  t.comment(`refused after ${Math.round(performance.now() - begun)} ms`)
  await h.fixture.restart()
  t.equal((await accepted(h, () => h.post([nodeChanged(nodeOf('a', 1))]))).status, 202)
})

t.test('a Redis that may evict jobs is not ready', async (t) => {
  const h = await harness(t)
  await h.fixture.config('maxmemory-policy', 'allkeys-lru')
  const ready = await h.server.app.inject('/readyz')
  t.equal(ready.statusCode, 503)
  t.match(ready.json().problems, [/noeviction/])
})

t.test('a flushed Redis begins a new epoch, in which everything is taken anew', async (t) => {
  const h = await harness(t)
  const batch = [nodeChanged(nodeOf('a', 1))]
  const first = await h.post(batch)
  await h.fixture.flush()
  h.triggers()
  const second = await h.post([])
  t.equal(second.status, 202)
  t.not(second.body.epoch, first.body.epoch)
  t.equal(h.asserted(), 2)
  await h.post([
    snapshotBegin('Node', 's'),
    nodeChanged(nodeOf('a', 1), { snapshot: 's' }),
    snapshotEnd('Node', 's', 1, 9),
  ])
  t.match(h.triggers(), [{ key: 'Node/a' }, { key: 'Cluster/targets' }, { key: 'Cluster/routes' }])
  t.equal((await h.stores.nodes.all('default')).complete, true)
})

t.test('another Redis process is another epoch, and what it remembers as handled is not trusted', async (t) => {
  const h = await harness(t)
  const first = await h.post([nodeChanged(nodeOf('a', 1))])
  await h.stores.handled.record('default', 'Node/a', await h.stores.handled.begin('default', 'Node/a'), 'x')
  await h.stores.epochs.confirm('as of before a fail-over')
  await h.post([])
  t.equal(await h.stores.handled.begin('default', 'Node/a'), '')
  t.equal(h.asserted(), 2)
  t.equal((await h.post([])).body.epoch, first.body.epoch)
})

t.test('schedules that can not be asserted keep the epoch new', async (t) => {
  let fail = true
  const h = await harness(t, {
    assertSchedules: async () => {
      if (fail) throw transient('no')
    },
  })
  t.equal((await h.post([])).status, 503)
  fail = false
  t.equal((await h.post([])).status, 202)
})

t.test(
  'when the queue does not take a batch after the state did, the batch coming again finds all its work',
  async (t) => {
    const h = await harness(t)
    await h.post([
      nodeChanged(nodeOf('gone', 1)),
      nodeChanged(nodeOf('a', 2)),
      serviceChanged(serviceOf('gone', 3)),
      serviceChanged(serviceOf('was-ours', 4)),
    ])
    h.triggers()
    const { enqueue } = h.deps.enqueuer
    h.deps.enqueuer.enqueue = async () => {
      throw transient('the queue does not take it')
    }
    const batch = [
      nodeChanged(nodeOf('a', 5, { labels: { pool: 'b' } })),
      serviceChanged(serviceOf('was-ours', 6, { type: 'ClusterIP' })),
      snapshotBegin('Node', 'n'),
      nodeChanged(nodeOf('a', 5, { labels: { pool: 'b' } }), { snapshot: 'n' }),
      snapshotEnd('Node', 'n', 1, 50),
      snapshotBegin('Service', 's'),
      serviceChanged(serviceOf('was-ours', 6, { type: 'ClusterIP' }), { snapshot: 's' }),
      snapshotEnd('Service', 's', 1, 50),
    ]
    const id = randomUUID()
    t.equal((await h.post(batch, { id })).status, 503)
    h.deps.enqueuer.enqueue = enqueue
    t.equal((await h.post(batch, { id })).status, 202)
    t.same(
      h
        .triggers()
        .map(({ key }) => key)
        .sort(),
      ['Cluster/routes', 'Cluster/targets', 'Node/a', 'Node/gone', 'Service/default/gone', 'Service/default/was-ours'],
    )
    t.same(await h.stores.outbox.read('default'), [])
  },
)

t.test('when the batch does not come again, the next one of any content does its work', async (t) => {
  const h = await harness(t)
  await h.post([])
  const { enqueue } = h.deps.enqueuer
  h.deps.enqueuer.enqueue = async () => {
    throw transient('the queue does not take it')
  }
  t.equal((await h.post([nodeChanged(nodeOf('a', 1))])).status, 503)
  h.deps.enqueuer.enqueue = enqueue
  t.equal((await h.post([])).status, 202)
  t.same(
    h
      .triggers()
      .map(({ key }) => key)
      .sort(),
    ['Cluster/routes', 'Cluster/targets', 'Node/a'],
  )
})
