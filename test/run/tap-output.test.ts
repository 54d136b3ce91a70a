import t from 'tap'
import { TapOutput } from './tap-output.ts'

function read(text: string): { printed: string[]; count: TapOutput['count'] } {
  const printed: string[] = []
  const output = new TapOutput((line) => printed.push(line))
  for (const line of text.trim().split('\n')) output.line(line)
  return { printed, count: output.count }
}

const mixed = `
TAP version 14
1..2
# Subtest: test/a.test.ts
    ok 1 - fine
    1..1
ok 1 - test/a.test.ts # time=5ms

# Subtest: test/b.test.ts
    # Subtest: inner
        ok 1 - fine
        not ok 2 - broken
          ---
          found: 1
          wanted: 2
          ...
        1..2
    not ok 1 - inner # time=1ms
    1..1
not ok 2 - test/b.test.ts # time=9ms
  ---
  args:
    - test/b.test.ts
  exitCode: 1
  ...

# { total: 3, pass: 2, fail: 1 }
# time=20ms
`

t.test('the run is counted as it counted itself', async (t) => {
  t.strictSame(read(mixed).count, { passed: 2, failed: 1 })
  t.strictSame(read('# { total: 7, pass: 7 }').count, { passed: 7, failed: 0 })
  t.strictSame(read('# { total: 4, pass: 1, fail: 1, skip: 2 }').count, { passed: 1, failed: 3 }, 'a skip is no pass')
})

t.test('a run that broke off has no count', async (t) => {
  t.equal(read('TAP version 14\n1..2\nok 1 - test/a.test.ts').count, undefined)
})

t.test('what a test logs in the form of a summary is not one', async (t) => {
  t.equal(read('TAP version 14\n    # { total: 1, pass: 1 }').count, undefined)
})

t.test('of a file that passed one line is printed, of one that failed all that is wrong', async (t) => {
  t.strictSame(read(mixed).printed, [
    'ok 1 - test/a.test.ts # time=5ms',
    '        not ok 2 - broken',
    '          ---',
    '          found: 1',
    '          wanted: 2',
    '          ...',
    '    not ok 1 - inner # time=1ms',
    'not ok 2 - test/b.test.ts # time=9ms',
    '  ---',
    '  args:',
    '    - test/b.test.ts',
    '  exitCode: 1',
    '  ...',
  ])
})
