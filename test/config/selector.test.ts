import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { matches, parseSelector, type Requirement } from '../../src/config/selector.ts'

function selects(text: string, labels: Record<string, string>): boolean {
  const parsed = parseSelector(text)
  if ('fault' in parsed) throw new Error(`${text} ${parsed.fault}`)
  return matches(parsed.value, labels)
}

t.test('what Kubernetes takes for a selector is one', async (t) => {
  const cases: [string, Requirement[]][] = [
    ['', []],
    ['  ', []],
    ['a', [{ key: 'a', operator: 'exists', values: [] }]],
    ['!a', [{ key: 'a', operator: '!', values: [] }]],
    ['! a', [{ key: 'a', operator: '!', values: [] }]],
    ['a=b', [{ key: 'a', operator: '=', values: ['b'] }]],
    ['a == b', [{ key: 'a', operator: '=', values: ['b'] }]],
    ['a!=b', [{ key: 'a', operator: '!=', values: ['b'] }]],
    ['a=', [{ key: 'a', operator: '=', values: [''] }]],
    [
      'a=,b',
      [
        { key: 'a', operator: '=', values: [''] },
        { key: 'b', operator: 'exists', values: [] },
      ],
    ],
    ['a>1', [{ key: 'a', operator: '>', values: ['1'] }]],
    ['a < 10', [{ key: 'a', operator: '<', values: ['10'] }]],
    ['a in (x,y)', [{ key: 'a', operator: 'in', values: ['x', 'y'] }]],
    ['a in(x)', [{ key: 'a', operator: 'in', values: ['x'] }]],
    ['a notin ( x , x )', [{ key: 'a', operator: 'notin', values: ['x'] }]],
    ['a in (x,)', [{ key: 'a', operator: 'in', values: ['x', ''] }]],
    ['a in (,x)', [{ key: 'a', operator: 'in', values: ['', 'x'] }]],
    ['in in (in,notin)', [{ key: 'in', operator: 'in', values: ['in', 'notin'] }]],
    ['a=in', [{ key: 'a', operator: '=', values: ['in'] }]],
    ['example.org/a_b.C-d=v', [{ key: 'example.org/a_b.C-d', operator: '=', values: ['v'] }]],
    [
      'a=1,\tb in (c)\n,!d',
      [
        { key: 'a', operator: '=', values: ['1'] },
        { key: 'b', operator: 'in', values: ['c'] },
        { key: 'd', operator: '!', values: [] },
      ],
    ],
  ]
  for (const [text, value] of cases) t.same(parseSelector(text), { value }, JSON.stringify(text))
})

t.test('what Kubernetes refuses is refused', async (t) => {
  const texts = [
    'a in b)',
    'a in (b',
    'a in b',
    'a in ()',
    'a in',
    'a in (b c)',
    'a b',
    'a,',
    ',a',
    'a,,b',
    '!',
    '!a=b',
    '=b',
    'a=b=c',
    'a===b',
    'a=!b',
    'a>b',
    'a>',
    'a>-1',
    'a>1.5',
    'a>=1',
    '(a)',
    'a/b/c',
    '/a',
    'a/',
    '-a=b',
    'a=-b',
    `a=${'x'.repeat(64)}`,
    `${'k'.repeat(64)}=b`,
    'A.b/c',
    'Ünicode',
    'a=b c',
  ]
  for (const text of texts) t.match(parseSelector(text), { fault: /^is not a label selector/ }, JSON.stringify(text))
})

t.test('labels are matched as Kubernetes does', async (t) => {
  t.ok(selects('', {}))
  t.ok(selects('a=1,b', { a: '1', b: '' }))
  t.notOk(selects('a=1,b', { a: '1' }))
  t.ok(selects('a!=1', {}), 'an object without the label has another value')
  t.ok(selects('a notin (1)', {}))
  t.notOk(selects('a notin (1,2)', { a: '2' }))
  t.ok(selects('a in (1,2)', { a: '2' }))
  t.notOk(selects('a in (1)', {}))
  t.ok(selects('!a', {}))
  t.notOk(selects('!a', { a: '' }))
  t.ok(selects('a=', { a: '' }))
  t.notOk(selects('a=', {}))
  t.ok(selects('a>9', { a: '10' }), 'numbers are compared as numbers')
  t.notOk(selects('a>9', { a: '9' }))
  t.notOk(selects('a>9', { a: 'ten' }))
  t.notOk(selects('a<9', {}))
  t.ok(selects('a<9223372036854775807', { a: '9223372036854775806' }), 'beyond what a double can tell apart')
  t.notOk(selects('toString', {}), 'what every object has is no label')
})

const word = fc.stringMatching(/^[a-z0-9]([-a-z0-9_.]{0,8}[a-z0-9])?$/)

t.test('a requirement and its opposite never hold together, and one of them does', async () => {
  const labels = fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('x', 'y', ''))
  fc.assert(
    fc.property(labels, fc.array(fc.constantFrom('x', 'y', 'z'), { minLength: 1 }), (labels, values) => {
      const list = values.join(',')
      return (
        selects(`a in (${list})`, labels) !== selects(`a notin (${list})`, labels) &&
        selects('a', labels) !== selects('!a', labels) &&
        selects(`a=${values[0]}`, labels) !== selects(`a!=${values[0]}`, labels)
      )
    }),
  )
})

t.test('blanks around tokens change nothing', async () => {
  const requirement = fc.oneof(
    fc.tuple(word, fc.constantFrom('=', '==', '!='), word).map((parts) => [...parts]),
    fc
      .tuple(word, fc.constantFrom(' in ', ' notin '), word, word)
      .map(([key, operator, a, b]) => [key, operator, '(', a, ',', b, ')']),
    word.map((key) => ['!', key]),
  )
  fc.assert(
    fc.property(
      fc.array(requirement, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(' ', '\t', ' \n '),
      (requirements, blank) => {
        const tokens = requirements.flatMap((tokens, index) => (index === 0 ? tokens : [',', ...tokens]))
        const dense = parseSelector(tokens.join(''))
        return 'value' in dense && isDeepStrictEqual(parseSelector(tokens.join(blank)), dense)
      },
    ),
    { numRuns: 50 },
  )
})

t.test('no text makes it throw', async () => {
  const soup = fc.string({
    unit: fc.constantFrom('a', '1', '/', '-', ' ', '(', ')', ',', '=', '!', '<', '>', ' in ', ' notin '),
    maxLength: 20,
  })
  fc.assert(fc.property(soup, (text) => 'value' in parseSelector(text) || 'fault' in parseSelector(text)))
})
