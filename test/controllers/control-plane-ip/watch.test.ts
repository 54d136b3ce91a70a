import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createPause } from '../../../src/controllers/control-plane-ip/pause.ts'
import { PROBES, startWatch, type WatchTimes } from '../../../src/controllers/control-plane-ip/watch.ts'

const times: WatchTimes = { everyMs: 20, gapMs: 10, timeoutMs: 1000, settleMs: 100_000 }
const place = { at: '192.0.2.1', port: 6443, holder: 'a' }

/** An API server that answers as it is told to; `silent` never does. */
function watched(t: Test, more: Partial<WatchTimes> = {}) {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const state = { answer: true as boolean | 'silent', asked: 0, told: 0 }
  const watch = startWatch(
    async () => {
      state.asked++
      return state.answer === 'silent' ? await new Promise<boolean>(() => {}) : state.answer
    },
    { ...times, ...more },
    stop.signal,
    () => state.told++,
  )
  const until = async (what: () => boolean) => {
    while (!what()) await delay(5)
  }
  return { watch, state, until, see: () => watch.see(place.at, place.port) }
}

t.test('one that answers is sound, and one that fails several times in a row is told of once', async (t) => {
  const { watch, state, until, see } = watched(t)
  t.equal(see(), 'unknown')
  watch.follow(place)
  await until(() => see() === 'sound')
  state.answer = false
  await until(() => see() === 'failing')
  const asked = state.asked
  await until(() => state.asked > asked + 3)
  t.equal(state.told, 1)
  state.answer = true
  await until(() => see() === 'sound')
  state.answer = false
  await until(() => state.told === 2)
  t.pass('and again after it was sound')
})

t.test('fewer failures than that are none', async (t) => {
  let left = PROBES - 1
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  let told = 0
  const watch = startWatch(
    async () => left-- <= 0,
    times,
    stop.signal,
    () => told++,
  )
  watch.follow(place)
  while (watch.see(place.at, place.port) !== 'sound') await delay(5)
  t.equal(told, 0)
})

t.test('the next is asked while the one before hangs', async (t) => {
  const { watch, state, until } = watched(t)
  state.answer = 'silent'
  watch.follow(place)
  await until(() => state.asked >= 3)
  t.pass()
})

t.test('after a move, also by somebody else, silence says nothing for a while', async (t) => {
  const { watch, state, until, see } = watched(t)
  watch.follow(place)
  await until(() => see() === 'sound')
  watch.moved()
  state.answer = false
  const asked = state.asked
  await until(() => state.asked > asked + 2 * PROBES)
  t.equal(see(), 'settling')
  t.equal(state.told, 0)
  watch.follow({ ...place, holder: 'b' })
  t.equal(see(), 'settling')

  const other = watched(t, { settleMs: 60 })
  other.watch.follow(place)
  await other.until(() => other.see() === 'sound')
  other.state.answer = false
  other.watch.follow({ ...place, holder: 'c' })
  t.equal(other.see(), 'settling')
  await other.until(() => other.see() === 'failing' && other.state.told === 1)
  t.pass('and then counts')
})

t.test('what was asked of another place does not count', async (t) => {
  const { watch, state, until, see } = watched(t)
  state.answer = false
  watch.follow(place)
  await until(() => see() === 'failing')
  watch.follow(undefined)
  t.equal(see(), 'unknown')
  const asked = state.asked
  await delay(100)
  t.equal(state.asked, asked, 'nobody is asked')
  t.equal(watch.see('192.0.2.9', place.port), 'unknown')
})

t.test('a pause ends at its time, when woken, also from before, or when all is over', async (t) => {
  const stop = new AbortController()
  const pause = createPause(stop.signal)
  t.equal(await pause.until(performance.now() + 5), 'over')
  pause.wake()
  t.equal(await pause.until(performance.now() + 100_000), 'woken')
  const waiting = pause.until(performance.now() + 100_000)
  pause.wake()
  t.equal(await waiting, 'woken')
  const last = pause.until(performance.now() + 100_000)
  stop.abort()
  t.equal(await last, 'over')
  t.equal(await pause.until(performance.now() + 100_000), 'over')
})
