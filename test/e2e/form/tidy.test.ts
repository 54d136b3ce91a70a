import t from 'tap'
import { sortByName, tidy } from './tidy.ts'

t.test('null, undefined and what is empty are left out, deep down too', async (t) => {
  t.strictSame(tidy({ b: 1, a: null, c: {}, d: [], e: { f: { g: undefined } }, h: '', i: false, j: 0 }), {
    b: 1,
    h: '',
    i: false,
    j: 0,
  })
})

t.test('keys are sorted, lists are not', async (t) => {
  t.equal(JSON.stringify(tidy({ b: [2, 1], a: 1 })), '{"a":1,"b":[2,1]}')
})

t.test('lists of named things are sorted as people count', async (t) => {
  t.strictSame(sortByName({ x: [{ name: 'w10' }, { name: 'w2' }] }), { x: [{ name: 'w2' }, { name: 'w10' }] })
  const mixed = [{ name: 'b' }, { id: 1 }]
  t.strictSame(sortByName(mixed), mixed, 'one without a name keeps the order')
})
