import t from 'tap'
import type { Case, Deviation, RecordedEvent, Result } from '../case.ts'
import { compare } from './compare.ts'

const event = (reason: string, type = 'Normal', object = 'Service/default/web'): RecordedEvent => ({
  object,
  type,
  reason,
})

function definition(expect: Result, rest: Partial<Case> = {}): Case {
  return { id: 'x', cloud: 'hcloud', about: '', expect, ...rest }
}

t.test('a result like the recorded one has no differences', async (t) => {
  const world: Result = { controller: { running: true }, objects: { 'Node/a': { labels: { x: '1' } } }, events: [] }
  t.strictSame(compare(definition(world), structuredClone(world)), [])
})

t.test('any non-zero exit is the same refusal, but zero is not', async (t) => {
  const wanted = definition({ controller: { exit: 255 } })
  t.strictSame(compare(wanted, { controller: { exit: 1 } }), [])
  t.strictSame(compare(wanted, { controller: { exit: 'SIGABRT' } }), [])
  t.equal(compare(wanted, { controller: { exit: 0 } }).length, 1)
  t.equal(compare(wanted, { controller: { running: true } }).length, 2)
})

t.test('blocks that a case ignores are not compared', async (t) => {
  const got = { account: { a: 2 }, events: [event('EnsuredLoadBalancer')] }
  t.strictSame(compare(definition({ account: { a: 1 } }, { ignore: ['account', 'events'] }), got), [])
})

t.test('notes with our name in the key are our own business', async (t) => {
  const got = {
    objects: { 'Node/a': { labels: { x: '1', 'windlass.dev/y': '2' }, annotations: { 'Windlass/z': '3' } } },
    account: {
      load_balancers: [{ name: 'a', labels: { 'windlass-x': '1' } }],
      servers: { s: { tags: { windlass: '' } } },
    },
  }
  const wanted = { objects: { 'Node/a': { labels: { x: '1' } } }, account: { load_balancers: [{ name: 'a' }] } }
  t.strictSame(compare(definition(wanted), got), [])
  const foreign = { objects: { 'Node/a': { labels: { x: '1', other: '2' } } } }
  t.strictSame(compare(definition({ objects: wanted.objects }), foreign), [
    'objects.Node/a.labels.other: want (absent), got "2"',
  ])
})

t.test('deviations change the expectation in their order', async (t) => {
  const expect: Result = {
    account: {
      list: [
        { name: 'a', v: 1 },
        { name: 'b', v: 2 },
        { name: 'c', v: 3 },
      ],
      gone: 1,
    },
  }
  const deviates: Deviation[] = [
    { why: 'a remark only' },
    { at: ['account', 'list', 0], absent: true },
    {
      changes: [
        { at: ['account', 'list', 0, 'v'], value: 20 },
        { at: ['account', 'list', 1, 'v'], any: [30, null] },
        { at: ['account', 'gone'], absent: true },
        { at: ['account', 'new', 0, 'deep'], value: 'made on the way' },
        { at: ['account', 'free'], ignore: true },
      ],
    },
  ]
  const wanted = definition(expect, { deviates })
  const got = (v: unknown, free: unknown): Result => ({
    account: {
      list: [
        { name: 'b', v: 20 },
        { name: 'c', v },
      ],
      new: [{ deep: 'made on the way' }],
      free,
    },
  })
  t.strictSame(compare(wanted, got(30, 'x')), [])
  t.strictSame(compare(wanted, got(undefined, undefined)), [])
  t.equal(compare(wanted, got(3, 'x')).length, 1)
  t.equal(expect.account.gone, 1, 'the case itself is left as it was')
})

t.test('either: one of the results has to fit as a whole', async (t) => {
  const wanted = definition(
    { account: { a: 1, b: 1 }, events: [] },
    {
      deviates: [
        {
          either: [
            {},
            {
              changes: [
                { at: ['account', 'a'], value: 2 },
                { at: ['account', 'b'], value: 2 },
              ],
              events: { add: [event('EnsuredLoadBalancer')] },
            },
          ],
        },
      ],
    },
  )
  t.strictSame(compare(wanted, { account: { a: 1, b: 1 } }), [])
  t.strictSame(compare(wanted, { account: { a: 2, b: 2 }, events: [event('EnsuredLoadBalancer')] }), [])
  t.strictSame(compare(wanted, { account: { a: 1, b: 2 } }), [
    '(nearest of 2 accepted results)',
    'account.b: want 1, got 2',
  ])
})

t.test('subset needs only what is required', async (t) => {
  const wanted = definition(
    { account: { list: [{ name: 'a' }, { name: 'b', v: 1 }] } },
    { deviates: [{ changes: [{ at: ['account', 'list'], subset: true, required: ['b'] }] }] },
  )
  t.strictSame(compare(wanted, { account: { list: [{ name: 'b', v: 1 }] } }), [])
  t.strictSame(compare(wanted, { account: { list: [{ name: 'a' }] } }), ['account.list[b]: (absent)'])
})

t.test('Events', async (t) => {
  const wanted = (events: RecordedEvent[], rest: Partial<Case> = {}) => definition({ events }, rest)

  t.test('an outcome must be there, and an unexpected one must not', async (t) => {
    t.equal(compare(wanted([event('EnsuredLoadBalancer')]), { events: [] }).length, 1)
    t.equal(compare(wanted([]), { events: [event('EnsuredLoadBalancer')] }).length, 1)
    t.equal(compare(wanted([]), { events: [event('SyncLoadBalancerFailed', 'Warning')] }).length, 1)
  })

  t.test('a step on the way may be left out, or said beside its outcome', async (t) => {
    const outcome = event('EnsuredLoadBalancer')
    const step = event('EnsuringLoadBalancer')
    t.strictSame(compare(wanted([step, outcome]), { events: [outcome] }), [])
    t.strictSame(compare(wanted([outcome]), { events: [step, outcome] }), [])
    t.equal(compare(wanted([]), { events: [step] }).length, 1, 'but not where nothing was to come of it')
    const elsewhere = event('EnsuringLoadBalancer', 'Normal', 'Service/default/other')
    t.equal(compare(wanted([outcome]), { events: [elsewhere, outcome] }).length, 1, 'nor at another object')
  })

  t.test("a reason of the controller's own is free, a recorded one is not", async (t) => {
    t.strictSame(compare(wanted([]), { events: [event('ServerNotFound', 'Warning')] }), [])
    t.equal(compare(wanted([]), { events: [event('AddressesDisputed', 'Warning')] }).length, 1, 'a false alarm is not')
    const recorded = event('LoadBalancerTypeUnconfigured', 'Warning')
    t.equal(compare(wanted([recorded]), { events: [] }).length, 1)
    t.equal(
      compare(wanted([recorded]), { events: [event('LoadBalancerTypeUnconfigured')] }).length,
      2,
      'its type counts',
    )
  })

  t.test('optional ones may be there or not, by reason or by object and reason', async (t) => {
    const failed = event('SyncLoadBalancerFailed', 'Warning')
    t.strictSame(compare(wanted([], { optional_events: ['SyncLoadBalancerFailed'] }), { events: [failed] }), [])
    t.strictSame(compare(wanted([failed], { optional_events: ['SyncLoadBalancerFailed'] }), { events: [] }), [])
    const deviates = [{ events: { optional: [{ object: failed.object, reason: failed.reason }] } }]
    t.strictSame(compare(wanted([], { deviates }), { events: [failed] }), [])
    const elsewhere = { ...failed, object: 'Service/default/other' }
    t.equal(compare(wanted([], { deviates }), { events: [elsewhere] }).length, 1)
  })

  t.test('a deviation adds and takes away', async (t) => {
    const deviates = [{ events: { remove: [event('Synced')], add: [event('DeletingNode')] } }]
    t.strictSame(compare(wanted([event('Synced')], { deviates }), { events: [event('DeletingNode')] }), [])
    t.equal(
      compare(wanted([event('Synced')], { deviates }), { events: [event('Synced'), event('DeletingNode')] }).length,
      1,
    )
  })
})
