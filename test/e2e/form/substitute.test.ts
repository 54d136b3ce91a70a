import t from 'tap'
import { substitute } from './substitute.ts'

t.test('names take the place of values, in keys and lists too', async (t) => {
  t.strictSame(substitute({ 'at 10.0.0.2': [{ ip: '10.0.0.2' }, 7, null, true] }, [['10.0.0.2', '{ip}']]), {
    'at {ip}': [{ ip: '{ip}' }, 7, null, true],
  })
})

t.test('only whole tokens are replaced', async (t) => {
  const take = (text: string) => substitute(text, [['10.0.0.2', 'X']])
  t.equal(take('10.0.0.20'), '10.0.0.20')
  t.equal(take('110.0.0.2'), '110.0.0.2')
  t.equal(take('1.10.0.0.2'), '1.10.0.0.2')
  t.equal(take('10.0.0.2.1'), '10.0.0.2.1')
  t.equal(take('10.0.0.2/32'), 'X/32')
  t.equal(take('10.0.0.2.'), 'X.', 'a full stop may follow')
  t.equal(take('10.0.0.2, 10.0.0.2'), 'X, X')
})

t.test('of IPv6 addresses the longer is not taken for the shorter', async (t) => {
  const names: [string, string][] = [
    ['2001:db8::1', 'one'],
    ['2001:db8::11', 'eleven'],
  ]
  t.equal(substitute('2001:db8::1 2001:db8::11 2001:db8::1:1', names), 'one eleven 2001:db8::1:1')
})

t.test('longer values go first, and an empty one replaces nothing', async (t) => {
  const names: [string, string][] = [
    ['a', 'short'],
    ['a-b', 'long'],
    ['', 'never'],
  ]
  t.equal(substitute('a-b a', names), 'long short')
})

t.test('a name is put in as it is, though it looks like a pattern', async (t) => {
  t.equal(substitute('id-1', [['id-1', '$& $1 {x}']]), '$& $1 {x}')
  t.equal(substitute('axb a.b', [['a.b', 'dot']]), 'axb dot')
})
