import fc from 'fast-check'
import t from 'tap'
import { storesFor } from './stores.ts'

const { stores } = await storesFor(t)
const { handled } = stores
let counter = 0
const fresh = () => `c${++counter}`
const nonce = () => `n${++counter}`
const subject = 'Node/a'
const event = async (c: string, fingerprint: string) => (await handled.check(c, nonce(), [{ subject, fingerprint }]))[0]

t.test('the echo of the state that a run left is handled', async (t) => {
  const c = fresh()
  t.equal(await event(c, 'A'), false)
  const token = await handled.begin(c, subject)
  t.equal(await handled.record(c, subject, token, 'B'), true)
  t.equal(await event(c, 'B'), true)
  t.equal(await event(c, 'B'), true)
})

t.test('any other state is not, and the old one is not any more either', async (t) => {
  const c = fresh()
  await handled.record(c, subject, await handled.begin(c, subject), 'A')
  t.equal(await event(c, 'B'), false)
  t.equal(await event(c, 'A'), false, 'the run for B may have failed half way')
})

t.test('a run that began before an event can not make that event look handled', async (t) => {
  const c = fresh()
  const token = await handled.begin(c, subject)
  t.equal(await event(c, 'B'), false)
  t.equal(await handled.record(c, subject, token, 'A'), false)
  t.equal(await event(c, 'A'), false)
})

t.test('a run that began before a flush records nothing once events came', async (t) => {
  const c = fresh()
  await event(c, 'A')
  const token = await handled.begin(c, subject)
  await handled.reset(c)
  await event(c, 'B')
  t.equal(await handled.record(c, subject, token, 'A'), false)
})

t.test('forgetting one leaves the others', async (t) => {
  const c = fresh()
  for (const one of ['Node/a', 'Node/b'] as const) await handled.record(c, one, await handled.begin(c, one), 'A')
  await handled.forget(c, ['Node/a'])
  t.same(
    await handled.check(c, nonce(), [
      { subject: 'Node/a', fingerprint: 'A' },
      { subject: 'Node/b', fingerprint: 'A' },
    ]),
    [false, true],
  )
})

t.test(
  'whatever happens in whatever order: a state is handled only if nothing else was seen since the run began',
  async () => {
    type Step = { kind: 'event' | 'begin' | 'record'; state: string }
    const step: fc.Arbitrary<Step> = fc.record({
      kind: fc.constantFrom('event', 'begin', 'record'),
      state: fc.constantFrom('A', 'B'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const c = fresh()
        let token: string | undefined
        let clean = false // no event that was not handled came since the run began
        let left: string | undefined
        for (const { kind, state } of steps) {
          if (kind === 'begin') {
            token = await handled.begin(c, subject)
            clean = true
          } else if (kind === 'record' && token !== undefined) {
            const recorded = await handled.record(c, subject, token, state)
            if (recorded !== clean) return false
            if (recorded) left = state
            else left = undefined
          } else if (kind === 'event') {
            const skipped = await event(c, state)
            if (skipped !== (left === state)) return false
            if (!skipped) {
              clean = false
              left = undefined
            }
          }
        }
        return true
      }),
      { numRuns: 150 },
    )
  },
)
