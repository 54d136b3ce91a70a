import t from 'tap'
import { storesFor } from './stores.ts'

const { stores } = await storesFor(t)
const { sightings, deletions } = stores
let clusters = 0
const fresh = () => `c${++clusters}`
const MINUTE = 60_000
const NOW = 1_800_000_000_000

t.test('the last sighting is remembered with its credential, and never moves back', async (t) => {
  const c = fresh()
  t.equal(await sightings.lastSeen(c, 'hcloud://1'), undefined)
  await sightings.seen(c, ['hcloud://1', 'hcloud://2'], 'first', NOW)
  await sightings.seen(c, ['hcloud://1'], 'second', NOW - 1)
  t.same(await sightings.lastSeen(c, 'hcloud://1'), { atMs: NOW, credentialId: 'first' })
  await sightings.seen(c, ['hcloud://1'], 'second', NOW + 1)
  t.same(await sightings.lastSeen(c, 'hcloud://1'), { atMs: NOW + 1, credentialId: 'second' })
  t.same(await sightings.seen(c, ['hcloud://1', 'hcloud://3'], 'second', NOW + 2), [NOW + 1, 0], 'and told to the next')
  t.equal(await sightings.lastSeen(fresh(), 'hcloud://1'), undefined, 'by cluster')
})

t.test('a credential is known by any machine that it showed', async (t) => {
  const c = fresh()
  t.notOk(await sightings.knows(c, 'first'))
  await sightings.seen(c, ['hcloud://1', 'hcloud://2'], 'first', NOW)
  t.ok(await sightings.knows(c, 'first'))
  t.notOk(await sightings.knows(c, 'second'))
  t.notOk(await sightings.knows(fresh(), 'first'), 'by cluster')
})

t.test('an absence lasts from its first to its last answer', async (t) => {
  const c = fresh()
  t.equal(await sightings.absence(c, 'x'), undefined)
  t.same(await sightings.notFound(c, 'x', NOW), { firstAtMs: NOW, lastAtMs: NOW })
  t.same(await sightings.notFound(c, 'x', NOW + 5000), { firstAtMs: NOW, lastAtMs: NOW + 5000 })
  t.same(await sightings.notFound(c, 'x', NOW + 2000), { firstAtMs: NOW, lastAtMs: NOW + 5000 }, 'out of order')
  t.same(await sightings.absence(c, 'x'), { firstAtMs: NOW, lastAtMs: NOW + 5000 })
})

t.test('a success between ends it', async (t) => {
  const c = fresh()
  await sightings.notFound(c, 'x', NOW)
  await sightings.seen(c, ['x'], 'k', NOW + 1)
  t.equal(await sightings.absence(c, 'x'), undefined)
  t.same(await sightings.notFound(c, 'x', NOW + 2), { firstAtMs: NOW + 2, lastAtMs: NOW + 2 })
  await sightings.seen(c, ['x'], 'k', NOW + 1)
  t.ok(await sightings.absence(c, 'x'), 'a success from before it does not')
})

t.test('answers hours apart are two absences', async (t) => {
  const c = fresh()
  await sightings.notFound(c, 'x', NOW)
  t.same(await sightings.notFound(c, 'x', NOW + 61 * MINUTE), {
    firstAtMs: NOW + 61 * MINUTE,
    lastAtMs: NOW + 61 * MINUTE,
  })
})

t.test('what nobody saw for a month is forgotten', async (t) => {
  const c = fresh()
  await sightings.seen(c, ['old'], 'k', NOW)
  await sightings.seen(c, ['new'], 'k', NOW + 31 * 24 * 60 * MINUTE)
  t.equal(await sightings.lastSeen(c, 'old'), undefined)
})

const limits: [nodes: number, limit: number][] = [
  [1, 2],
  [3, 2],
  [14, 2],
  [15, 3],
  [100, 20],
]
for (const [nodes, limit] of limits)
  t.test(
    `of ${nodes} nodes, ${limit} may go in ten minutes, then one at a time until a human releases the hold`,
    async (t) => {
      const c = fresh()
      for (let i = 1; i <= limit; i++)
        t.same(await deletions.allow(c, `u${i}`, nodes, NOW + i), { allowed: true, used: i, limit })
      t.same(await deletions.allow(c, 'u1', nodes, NOW + 50), { allowed: true, used: limit, limit }, 'asked for again')
      const refused = { allowed: false, used: limit, limit, heldSinceMs: NOW + 100 }
      t.same(await deletions.allow(c, 'more', nodes, NOW + 100), refused)
      t.equal(await deletions.heldSinceMs(c), NOW + 100)
      t.match(await deletions.allow(c, 'more', nodes, NOW + 11 * MINUTE), { allowed: true, used: 1 })
      t.match(await deletions.allow(c, 'another', nodes, NOW + 12 * MINUTE), { allowed: false, used: 1 })
      await deletions.release(c)
      t.equal(await deletions.heldSinceMs(c), undefined)
      t.match(await deletions.allow(c, 'another', nodes, NOW + 13 * MINUTE), { allowed: true, used: 1 })
    },
  )

t.test('many workers that ask at once get no more than the limit', async (t) => {
  const c = fresh()
  const verdicts = await Promise.all(Array.from({ length: 20 }, (_, i) => deletions.allow(c, `u${i}`, 10, NOW + i)))
  t.equal(verdicts.filter(({ allowed }) => allowed).length, 2)
})
