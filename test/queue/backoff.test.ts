import t from 'tap'
import { backoffMs, throttleMs } from '../../src/queue/backoff.ts'

t.test('failures wait twice as long each time, up to five minutes, with some jitter on top', async (t) => {
  const rows = [
    { kind: 'service', attempt: 1, waitMs: 1000 },
    { kind: 'service', attempt: 2, waitMs: 2000 },
    { kind: 'route', attempt: 6, waitMs: 32_000 },
    { kind: 'service', attempt: 10, waitMs: 300_000 },
    { kind: 'resync', attempt: 1, waitMs: 5000 },
    { kind: 'service', attempt: 100_000, waitMs: 300_000 },
    { kind: 'node', attempt: 1, waitMs: 250 },
    { kind: 'node', attempt: 3, waitMs: 1000 },
    { kind: 'node', attempt: 40, waitMs: 300_000 },
  ] as const
  for (const { kind, attempt, waitMs } of rows) {
    t.equal(backoffMs(kind, attempt, 0), waitMs, `${kind}, failure ${attempt}`)
    t.equal(backoffMs(kind, attempt, 0.999_999), Math.round(waitMs * 1.2))
  }
})

t.test("a throttled object waits for the cloud's reset, between a floor and a cap", async (t) => {
  const now = 1_000_000
  t.equal(throttleMs(now + 20_000, now, 1000, 0), 20_000)
  t.equal(throttleMs(now + 20_000, now, 1000, 0.5), 22_000)
  t.equal(throttleMs(now - 5000, now, 1000, 0), 1000, 'a reset in the past')
  t.equal(throttleMs(now + 1e12, now, 1000, 0), 3_600_000, 'a clock that is wrong')
  t.equal(throttleMs(now + 600_000, now, 1000, 1), 605_000, 'spread over seconds, not minutes')
})
