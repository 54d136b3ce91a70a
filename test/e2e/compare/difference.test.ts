import t from 'tap'
import { differences } from './difference.ts'

t.test('what is empty equals what is absent', async (t) => {
  t.strictSame(differences({ a: [], b: {}, c: null, d: undefined }, {}), [])
  t.strictSame(differences({}, { a: [], b: {} }), [])
})

t.test('each difference is one line with its path', async (t) => {
  t.strictSame(differences({ a: [{ name: 'x', v: 1 }], b: 'k' }, { a: [{ name: 'x', v: 2 }], c: 0 }), [
    'a[0 x].v: want 1, got 2',
    'b: want "k", got (absent)',
    'c: want (absent), got 0',
  ])
})

t.test('a longer or shorter list differs at its end', async (t) => {
  t.strictSame(differences([1, 2], [1]), ['[1]: want 2, got (absent)'])
  t.strictSame(differences([1], [1, 2]), ['[1]: want (absent), got 2'])
})

t.test('a list is no object', async (t) => {
  t.equal(differences({ 0: 'a' }, ['a']).length, 1)
})

t.test('anything goes where it is ignored, even nothing', async (t) => {
  t.strictSame(differences({ a: { $ignore: true } }, { a: [1, { b: 2 }] }), [])
  t.strictSame(differences({ a: { b: { $ignore: true } } }, {}), [], 'an object of which nothing must be there')
})

t.test('any: one of the values has to fit, null meaning absent', async (t) => {
  const want = { a: { $any: [1, { x: [2] }, null] } }
  t.strictSame(differences(want, { a: 1 }), [])
  t.strictSame(differences(want, { a: { x: [2] } }), [])
  t.strictSame(differences(want, {}), [])
  t.strictSame(differences(want, { a: 3 }), ['a: want one of [1,{"x":[2]},null], got 3'])
  t.strictSame(differences({ a: { $any: [1, 2] } }, {}), ['a: want one of [1,2], got (absent)'])
  t.strictSame(differences({ a: { $any: [{ x: { $ignore: true } }] } }, { a: { x: 9 } }), [], 'ignore inside of any')
})

t.test('subset: what is there must fit, only the required must be there', async (t) => {
  const want = {
    $subset: [
      { name: 'a', v: 1 },
      { name: 'b', v: 2 },
      { name: 'c', v: 3 },
    ],
    required: ['b'],
    loose: ['c'],
  }
  t.strictSame(differences(want, [{ name: 'b', v: 2 }]), [])
  t.strictSame(
    differences(want, [
      { name: 'c', v: 99 },
      { name: 'b', v: 2 },
    ]),
    [],
    'the loose are not looked into',
  )
  t.strictSame(differences(want, undefined), ['[b]: (absent)'])
  t.strictSame(
    differences(want, [
      { name: 'a', v: 9 },
      { name: 'b', v: 2 },
    ]),
    ['[a].v: want 1, got 9'],
  )
  t.strictSame(differences(want, [{ name: 'b', v: 2 }, { name: 'z' }]), ['[z]: not wanted'])
})

t.test('long values are cut', async (t) => {
  const [line = ''] = differences('x'.repeat(1000), 1)
  t.ok(line.length < 500)
})
