import t from 'tap'
import { permanent, throttled, transient } from '../../src/errors.ts'
import { eventually, startRig, trigger } from '../queue/rig.ts'
import { startWorkers } from './rig.ts'

t.test('objects that fail, in whatever way, keep no other one waiting', async (t) => {
  const rig = await startRig(t)
  const ways: Record<string, () => Error> = {
    passing: () => transient('no answer'),
    unclassified: () => new TypeError('a bug'),
    throttled: () => throttled('too many requests', Date.now() + 500),
    forGood: () => permanent('a bad annotation'),
  }
  const names = (of: string, count: number) => Array.from({ length: count }, (_, n) => `${of}-${n}`)
  const failing = Object.keys(ways).flatMap((way) => names(way, 5))
  const runs = new Map<string, number>()
  const good = new Set<string>()
  startWorkers(t, rig, async ({ key }) => {
    const name = key.split('/').at(-1) ?? ''
    runs.set(name, (runs.get(name) ?? 0) + 1)
    const way = ways[name.split('-')[0] ?? '']
    if (way) throw way()
    good.add(name)
    return {}
  })
  // The failing ones are first in the line, and there is one run at a time.
  await rig.enqueue(
    'c',
    failing.map((name) => trigger(name)),
  )
  await eventually(() => failing.every((name) => runs.has(name)))
  for (let round = 0; round < 4; round++) {
    await rig.enqueue(
      'c',
      names(`good-${round}`, 50).map((name) => trigger(name)),
    )
    await eventually(() => good.size === 50 * (round + 1))
  }
  await eventually(() => failing.every((name) => name.startsWith('forGood') || Number(runs.get(name)) > 1))
  t.ok(failing.filter((name) => name.startsWith('forGood')).every((name) => runs.get(name) === 1))
})

t.test('what a user waits for stays that until it is done, whatever asks for the same object meanwhile', async (t) => {
  const rig = await startRig(t)
  const seen: { urgency: string; cause: string }[] = []
  const ends = [
    () => throttled('too many requests', Date.now() + 200),
    () => transient('no answer'),
    () => undefined,
    () => undefined,
  ]
  const background = { urgency: 'background', cause: 'resync' } as const
  startWorkers(t, rig, async ({ urgency, cause }) => {
    seen.push({ urgency, cause })
    const error = ends[seen.length - 1]?.()
    await rig.enqueue('c', seen.length < 4 ? [trigger('web', background)] : [])
    if (error) throw error
    return {}
  })
  await rig.enqueue('c', [trigger('web', { cause: 'changed' })])
  await eventually(() => seen.length === 4)
  const asked = { urgency: 'user', cause: 'changed' }
  t.same(seen, [asked, asked, asked, background])
})
