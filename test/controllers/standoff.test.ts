import t, { type Test } from 'tap'
import { createStandoffs } from '../../src/controllers/standoff.ts'

const MINUTE = 60_000

function open() {
  let now = 1_000_000
  const standoffs = createStandoffs(() => now)
  return {
    standoffs,
    pass: (ms: number) => {
      now += ms
    },
    /** One round: seen at a version, written, and the object has another version by that. */
    round(seen: number, after: number, text = 'right'): boolean {
      const told = standoffs.writes('status', text, String(seen))
      standoffs.wrote('status', String(after))
      return told
    },
  }
}

const held = ({ standoffs }: ReturnType<typeof open>, text?: string) => standoffs.heldMs('status', 5 * MINUTE, text)

t.test('what is undone twice is told with the third write, and left for a while then', (t: Test) => {
  const world = open()
  t.same([world.round(8, 9), world.round(10, 11)], [false, false])
  t.equal(held(world), 0)
  t.equal(world.round(12, 13), true)
  t.equal(held(world, 'right'), 5 * MINUTE)
  t.equal(held(world, 'other'), 0, 'another text may be written')
  world.pass(5 * MINUTE)
  t.equal(held(world), 0)
  t.end()
})

t.test('runs that saw the object as it was before the first of their writes show nobody who undoes it', (t: Test) => {
  const world = open()
  // Numbers, not texts: 10 is later than 9.
  t.same(
    [8, 8, 9, 8, 9].map((seen) => world.round(seen, 10)),
    [false, false, false, false, false],
  )
  t.equal(held(world), 0)
  t.same([world.round(11, 12), world.round(13, 14)], [false, true], 'those after it do')
  t.end()
})

t.test('a write that came to no end shows nothing, and the next that does counts again', (t: Test) => {
  const world = open()
  for (const seen of [1, 3, 5, 7]) t.equal(world.standoffs.writes('status', 'right', String(seen)), false)
  t.equal(held(world), 0)
  world.standoffs.wrote('status', '8')
  t.same([world.round(9, 10), world.round(11, 12)], [false, true])
  t.end()
})

t.test('what is the same for long is no standoff, nor what was forgotten, nor a write of something else', (t: Test) => {
  const world = open()
  world.round(1, 2)
  world.round(3, 4)
  world.pass(21 * MINUTE)
  t.equal(world.round(5, 6), false)
  t.equal(world.round(7, 8), false)
  world.standoffs.forget('status')
  t.equal(world.round(9, 10), false)
  t.equal(world.round(11, 12), false)
  t.equal(world.round(13, 14, 'other'), false)
  t.end()
})
