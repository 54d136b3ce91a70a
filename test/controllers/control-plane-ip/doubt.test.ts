import t from 'tap'
import { createDoubt } from '../../../src/controllers/control-plane-ip/doubt.ts'

const times = { doubtMs: 60_000, restMs: 600_000, gapMs: 30_000 }
const answers = true

t.test('an address leaves a machine that is silent at once, and one that answers after a while', async (t) => {
  const doubt = createDoubt(times)
  t.equal(doubt.waits(0, !answers), false)
  doubt.settled()
  for (const now of [100_000, 120_000, 140_000, 159_999]) t.equal(doubt.waits(now, answers), true)
  t.equal(doubt.waits(160_000, answers), false)
})

t.test('an answer in between begins it anew', async (t) => {
  const doubt = createDoubt(times)
  t.equal(doubt.waits(0, answers), true)
  doubt.settled()
  t.equal(doubt.waits(20_000, answers), true)
  t.equal(doubt.waits(50_000, answers), true)
  t.equal(doubt.waits(79_999, answers), true)
  t.equal(doubt.waits(80_000, answers), false)
})

t.test('so does a time in which nobody looked, as while another process has the lease', async (t) => {
  const doubt = createDoubt(times)
  t.equal(doubt.waits(0, answers), true)
  t.equal(doubt.waits(300_000, answers), true)
  t.equal(doubt.waits(330_000, answers), true)
  t.equal(doubt.waits(360_000, answers), false)
})

t.test('after a move on doubt the next one takes longer', async (t) => {
  const doubt = createDoubt({ ...times, gapMs: Number.POSITIVE_INFINITY })
  doubt.waits(0, answers)
  t.equal(doubt.waits(60_000, answers), false)
  doubt.settled()
  doubt.waits(70_000, answers)
  t.equal(doubt.waits(659_999, answers), true)
  t.equal(doubt.waits(659_999, !answers), false, 'unless the machine is silent')
  t.equal(doubt.waits(660_000, answers), false)
})
