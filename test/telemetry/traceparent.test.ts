import t from 'tap'
import { newTraceparent, traceIdOf } from '../../src/telemetry/traceparent.ts'

t.test('each trace has an id of its own, which is read back', (t) => {
  const made = Array.from({ length: 100 }, newTraceparent)
  for (const one of made) t.match(one, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  t.equal(new Set(made.map(traceIdOf)).size, 100)
  t.equal(traceIdOf('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'), '0af7651916cd43dd8448eb211c80319c')
  t.end()
})

t.test('what is no trace context has no trace id', (t) => {
  for (const text of [undefined, '', 'x', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`, '00-0af7-b7ad-01'])
    t.equal(traceIdOf(text), undefined)
  t.end()
})
