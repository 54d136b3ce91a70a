import fc from 'fast-check'
import t from 'tap'
import { type ObjectRef, parseSubject, subjectOf } from '../../src/events/subject.ts'

const part = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?$/)
const ref: fc.Arbitrary<ObjectRef> = fc.oneof(
  fc.record({ kind: fc.constant('Node' as const), name: part }),
  fc.record({ kind: fc.constant('Service' as const), namespace: part, name: part }),
)

t.test('a subject names its object, and nothing else does', (t) => {
  fc.assert(fc.property(ref, (object) => t.strictSame(parseSubject(subjectOf(object)), { ...object })))
  fc.assert(
    fc.property(fc.string(), (text) => {
      const parsed = parseSubject(text)
      return parsed === undefined || subjectOf(parsed) === text
    }),
  )
  for (const text of [
    '',
    'Node',
    'Node/',
    'Node/a/b',
    'Service/a',
    'Service//a',
    'Service/a/',
    'Service/a/b/c',
    'Pod/a',
  ])
    t.equal(parseSubject(text), undefined, text)
  t.end()
})
