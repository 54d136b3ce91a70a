import t from 'tap'
import { permanent } from '../../src/errors.ts'
import { createLogger } from '../../src/telemetry/log.ts'

function logged(fields: object): string {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  createLogger({ destination }).info(fields, 'here')
  return lines.join('')
}

t.test('secrets are not told, whatever is logged by mistake', async (t) => {
  const line = logged({
    token: 'planted',
    cloud: { apiKey: 'planted' },
    request: { headers: { authorization: 'planted' } },
  })
  t.notMatch(line, /planted/)
  t.match(line, /\[redacted\]/)
})

t.test('what somebody wrote at length is told in part, alone, in a message and in each of its faults', async (t) => {
  const written = 'x'.repeat(250_000)
  const error = permanent(`annotation a: ${written}`, { faults: [written] })
  for (const line of [
    logged({ value: written }),
    logged({ error: error.message }),
    logged({ error: error.faults?.[0] }),
  ]) {
    t.ok(line.length < 9000)
    t.match(JSON.parse(line), { msg: 'here' })
    t.ok(/… \(2\d{5} characters more\)/.test(line))
  }
})

t.test('what is no longer than usual is told whole', async (t) => {
  const value = 'x'.repeat(4096)
  t.match(JSON.parse(logged({ value, count: 3, list: [value] })), { value, count: 3, list: [value] })
})
