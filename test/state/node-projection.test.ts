import fc from 'fast-check'
import t from 'tap'
import { nodeOf, storesFor } from './stores.ts'

const { stores, redis } = await storesFor(t)
const { nodes, outbox, epochs } = stores
let clusters = 0
const fresh = () => `c${++clusters}`
const epoch = await epochs.current()
await epochs.confirm(epoch.id)

const putOne = async (cluster: string, ...args: Parameters<typeof nodeOf>) =>
  (await nodes.put(cluster, [nodeOf(...args)]))[0]!
const drain = async (cluster: string) => {
  const entries = await outbox.read(cluster)
  await outbox.clear(cluster, entries)
  return entries.map(({ key }) => key).sort()
}
const end = (items: number, listVersion: number) => ({ items, listVersion: String(listVersion), epoch: epoch.id })

t.test('the newest version stands, compared as a number of any length', async (t) => {
  const c = fresh()
  t.equal((await putOne(c, 'a', 9, { labels: { v: '9' } })).outcome, 'changed')
  t.equal((await putOne(c, 'a', 10, { labels: { v: '10' } })).outcome, 'changed')
  t.equal((await putOne(c, 'a', 9, { labels: { v: '9' } })).outcome, 'stale')
  t.equal((await nodes.get(c, 'a')).node?.labels.v, '10')
  const long = { resourceVersion: '98765432109876543210' }
  t.equal((await putOne(c, 'a', 0, { ...long, labels: { v: 'long' } })).outcome, 'changed')
  t.equal((await putOne(c, 'a', 0, { resourceVersion: '98765432109876543209' })).outcome, 'stale')
  t.equal((await nodes.get(c, 'a')).node?.labels.v, 'long')
})

t.test('the same state at a newer version is unchanged, but carries the version on', async (t) => {
  const c = fresh()
  await putOne(c, 'a', 1)
  t.match(await putOne(c, 'a', 2), { outcome: 'unchanged', targetsChanged: false, routesChanged: false })
  t.equal((await nodes.get(c, 'a')).node?.resourceVersion, '2')
})

const changes: [string, Parameters<typeof nodeOf>[2], { targets: boolean; routes: boolean }][] = [
  ['Ready flaps', { ready: 'False' }, { targets: false, routes: false }],
  ['a taint comes', { taints: [{ key: 'x', effect: 'NoSchedule' }] }, { targets: false, routes: false }],
  [
    'the autoscaler will delete it',
    { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] },
    { targets: true, routes: false },
  ],
  ['it is being deleted', { deleting: true }, { targets: true, routes: false }],
  ['a label changes', { labels: { pool: 'b' } }, { targets: true, routes: false }],
  ['the provider id comes', { providerId: 'hcloud://2' }, { targets: true, routes: true }],
  ['an address changes', { addresses: [{ type: 'ExternalIP', address: '1.2.3.4' }] }, { targets: true, routes: true }],
  [
    'its host name changes',
    {
      addresses: [
        { type: 'InternalIP', address: '10.0.0.1' },
        { type: 'Hostname', address: 'x' },
      ],
    },
    { targets: false, routes: false },
  ],
  ['the network is not there yet', { networkUnavailable: { status: 'True' } }, { targets: true, routes: false }],
  ['the network is there', { networkUnavailable: { status: 'False' } }, { targets: false, routes: false }],
  ['its pod CIDR changes', { podCidrs: ['10.2.0.0/24'] }, { targets: false, routes: true }],
  ['it is another node of that name', { uid: 'other' }, { targets: true, routes: true }],
]
for (const [what, more, { targets, routes }] of changes)
  t.test(
    `when ${what}, targets ${targets ? '' : 'do not '}change, routes ${routes ? '' : 'do not '}change`,
    async (t) => {
      const c = fresh()
      await putOne(c, 'a', 1)
      await drain(c)
      t.match(await putOne(c, 'a', 2, more), { outcome: 'changed', targetsChanged: targets, routesChanged: routes })
      const asked = (await drain(c)).filter((key) => key.startsWith('Cluster/'))
      t.same(asked, [...(routes ? ['Cluster/routes'] : []), ...(targets ? ['Cluster/targets'] : [])])
    },
  )

t.test(
  'what a change asks for stays in the outbox until it is cleared, also when the change is repeated',
  async (t) => {
    const c = fresh()
    await putOne(c, 'a', 1)
    t.equal((await putOne(c, 'a', 1)).targetsChanged, false)
    const first = await outbox.read(c)
    t.same(first.map(({ key }) => key).sort(), ['Cluster/routes', 'Cluster/targets', 'Node/a'])
    await putOne(c, 'a', 2, { labels: { pool: 'b' } })
    await outbox.clear(c, first)
    t.same(await drain(c), ['Cluster/targets'], 'a change in between is not cleared with the older one')
  },
)

t.test('a late event does not raise the dead', async (t) => {
  const c = fresh()
  await putOne(c, 'a', 5)
  t.equal(await nodes.remove(c, 'a', 'uid-a', '7'), 'removed')
  t.equal((await putOne(c, 'a', 6)).outcome, 'stale')
  t.equal((await putOne(c, 'a', 7)).outcome, 'stale')
  t.equal((await nodes.get(c, 'a')).node, undefined)
  t.equal((await putOne(c, 'a', 8, { uid: 'next' })).outcome, 'changed')
  const [[, tombstone]] = [await redis.scan(0, 'MATCH', `*:${c}:*tombstone*`, 'COUNT', 1000)]
  t.same(tombstone, [], 'the tombstone went with the successor')
})

t.test('a deletion that comes before the last change also holds', async (t) => {
  const c = fresh()
  t.equal(await nodes.remove(c, 'a', 'uid-a', '7'), 'unknown')
  t.equal((await putOne(c, 'a', 6)).outcome, 'stale')
  const key = (await redis.keys(`*:${c}:*tombstone*`))[0]!
  const seconds = await redis.ttl(key)
  t.ok(seconds > 3500 && seconds <= 3600, 'for an hour')
})

t.test(
  'a deletion of an earlier node does not remove its successor, a later one removes what came before it',
  async (t) => {
    const c = fresh()
    await putOne(c, 'a', 10, { uid: 'second' })
    t.equal(await nodes.remove(c, 'a', 'first', '8'), 'stale')
    t.ok((await nodes.get(c, 'a')).node)
    t.equal(await nodes.remove(c, 'a', 'third', '20'), 'removed')
    t.equal((await nodes.get(c, 'a')).node, undefined)
  },
)

t.test('only a finished snapshot makes the projection complete, and what it did not name is gone', async (t) => {
  const c = fresh()
  await nodes.put(c, [nodeOf('old', 3), nodeOf('kept', 4), nodeOf('newer', 30)])
  await drain(c)
  t.equal((await nodes.all(c)).complete, false)
  await nodes.beginSnapshot(c, 's')
  await nodes.put(c, [nodeOf('kept', 4), nodeOf('seen', 9)], ['s', 's'])
  t.match(await nodes.endSnapshot(c, 's', end(3, 20)), { complete: false, vanished: [] }, 'an item was lost')
  t.equal((await nodes.all(c)).complete, false)
  await drain(c)
  const result = await nodes.endSnapshot(c, 's', end(2, 20))
  t.same(result.vanished, [{ name: 'old', uid: 'uid-old' }])
  t.equal(result.complete, true)
  const all = await nodes.all(c)
  t.equal(all.complete, true)
  t.same(all.nodes.map(({ name }) => name).sort(), ['kept', 'newer', 'seen'])
  t.same(await drain(c), ['Cluster/routes', 'Cluster/targets', 'Node/old'])
  t.match(await nodes.endSnapshot(c, 's', end(2, 20)), { complete: true, vanished: [] }, 'an end that comes twice')
  t.equal((await putOne(c, 'old', 20)).outcome, 'stale', 'the list was newer')
})

t.test('an end without a beginning is not believed', async (t) => {
  const c = fresh()
  await putOne(c, 'a', 1)
  t.match(await nodes.endSnapshot(c, 'unknown', end(0, 20)), { complete: false, vanished: [] })
  t.ok((await nodes.get(c, 'a')).node)
})

t.test('items named twice count once, stale ones count', async (t) => {
  const c = fresh()
  await putOne(c, 'a', 50)
  await nodes.beginSnapshot(c, 's')
  const [put] = await nodes.put(c, [nodeOf('a', 4), nodeOf('a', 4), nodeOf('b', 5)], ['s', 's', 's'])
  t.equal(put?.outcome, 'stale')
  t.match(await nodes.endSnapshot(c, 's', end(2, 20)), { complete: true, vanished: [] })
})

t.test('a list is behind when it is older than what was known as it began, and only then', async (t) => {
  const behind = async (c: string, listVersion: number, put: () => Promise<unknown> = async () => {}) => {
    await nodes.beginSnapshot(c, `s${listVersion}`)
    await nodes.put(c, [nodeOf('a', 4)], [`s${listVersion}`])
    await put()
    return (await nodes.endSnapshot(c, `s${listVersion}`, end(1, listVersion))).isBehind
  }
  const first = fresh()
  t.equal(await behind(first, 20), false, 'nothing was known')
  t.equal(await behind(first, 21, () => putOne(first, 'b', 90)), false, 'what happens meanwhile is newer than the list')
  t.equal(await behind(first, 89), true, 'an object is newer')
  t.equal(await behind(first, 91), false)
  t.equal(await behind(first, 90), true, 'another list was newer')
  const buried = fresh()
  await nodes.remove(buried, 'gone', 'uid', '50')
  t.equal(await behind(buried, 49), true, 'a deletion was newer')
  const contradicted = fresh()
  await putOne(contradicted, 'a', 30)
  t.equal(await behind(contradicted, 40), true, 'an object is older in it than it was before')
  const late = fresh()
  t.equal(await behind(late, 40, () => nodes.put(late, [nodeOf('a', 50)])), false)
})

t.test('in a new life lower versions count, and what depended on the former one is asked for', async (t) => {
  const c = fresh()
  await nodes.beginSnapshot(c, 's')
  await nodes.put(c, [nodeOf('a', 900), nodeOf('b', 901)], ['s', 's'])
  await nodes.endSnapshot(c, 's', end(2, 910))
  await nodes.remove(c, 'b', 'uid-b', '950')
  t.same(await nodes.versions(c), { highest: '950', byName: new Map([['a', '900']]) })
  await drain(c)
  await nodes.beginLife(c)
  t.same(await drain(c), ['Cluster/routes', 'Cluster/targets', 'Node/a'])
  t.same(await nodes.versions(c), { highest: undefined, byName: new Map() })
  t.same(await nodes.all(c), { complete: false, nodes: [] })
  t.equal((await putOne(c, 'a', 5)).outcome, 'changed')
  t.equal((await putOne(c, 'b', 6)).outcome, 'changed', 'its former deletion is forgotten')
  t.equal((await putOne(c, 'a', 4)).outcome, 'stale', 'late events are late in this life, too')
  t.equal((await nodes.versions(c)).highest, '6')
})

t.test('an empty cluster is complete', async (t) => {
  const c = fresh()
  await putOne(c, 'a', 1)
  await nodes.beginSnapshot(c, 's')
  t.match(await nodes.endSnapshot(c, 's', end(0, 20)), { complete: true, vanished: [{ name: 'a' }] })
  t.same(await nodes.all(c), { complete: true, nodes: [] })
})

t.test('the mark does not outlive its epoch', async (t) => {
  const c = fresh()
  await nodes.beginSnapshot(c, 's')
  await nodes.endSnapshot(c, 's', end(0, 20))
  t.equal((await nodes.all(c)).complete, true)
  await epochs.confirm('another')
  t.equal((await nodes.all(c)).complete, false)
  await epochs.confirm(epoch.id)
})

t.test('once in doubt, nothing counts as complete until the next snapshot, and everything stays', async (t) => {
  const c = fresh()
  const told = async (snapshot: string) => {
    await nodes.beginSnapshot(c, snapshot)
    await nodes.put(c, [nodeOf('a', 1)], [snapshot])
    await nodes.endSnapshot(c, snapshot, end(1, 20))
  }
  await told('first')
  t.match(await nodes.get(c, 'a'), { complete: true, node: { name: 'a' } })
  t.same(await nodes.get(c, 'b'), { complete: true, node: undefined })
  await nodes.doubt(c)
  t.match(await nodes.get(c, 'a'), { complete: false, node: { name: 'a' } })
  t.match(await nodes.all(c), { complete: false, nodes: [{ name: 'a' }] })
  await told('second')
  t.equal((await nodes.all(c)).complete, true)
})

t.test('one snapshot in ten minutes looks at everything again', async (t) => {
  const c = fresh()
  const put = async (snapshot: string) => (await nodes.put(c, [nodeOf('a', 1)], [snapshot]))[0]?.recheck
  await nodes.beginSnapshot(c, 'first')
  await nodes.beginSnapshot(c, 'second')
  await nodes.beginSnapshot(c, 'first')
  t.equal(await put('first'), true)
  t.equal(await put('second'), false)
  t.equal(await put('never begun'), true)
  t.equal((await nodes.put(c, [nodeOf('a', 1)]))[0]?.recheck, false)
})

t.test('500 nodes go in one call', async (t) => {
  const c = fresh()
  const many = Array.from({ length: 500 }, (_, i) => nodeOf(`n${i}`, i + 1, { labels: { a: 'x'.repeat(1000) } }))
  await redis.config('RESETSTAT')
  const puts = await nodes.put(c, many)
  t.equal(puts.filter(({ outcome }) => outcome === 'changed').length, 500)
  t.equal((await nodes.all(c)).nodes.length, 500)
  t.match(await redis.info('commandstats'), /cmdstat_eval(sha)?:calls=1,/)
})

t.test('in whatever order events arrive, the newest is what stands', async () => {
  type Step = { version: number; gone: boolean }
  const step: fc.Arbitrary<Step> = fc.record({ version: fc.integer({ min: 1, max: 1200 }), gone: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(step, { selector: (s) => s.version, minLength: 1, maxLength: 8 }),
      async (steps) => {
        const c = fresh()
        for (const { version, gone } of steps)
          if (gone) await nodes.remove(c, 'a', 'uid-a', String(version))
          else await putOne(c, 'a', version, { labels: { v: String(version) } })
        const newest = steps.reduce((a, b) => (a.version > b.version ? a : b))
        const { node: stands } = await nodes.get(c, 'a')
        return newest.gone ? stands === undefined : stands?.labels.v === String(newest.version)
      },
    ),
    { numRuns: 100 },
  )
})
