import { once } from 'node:events'
import t from 'tap'
import { createHold } from '../../src/worker/hold.ts'

const far = () => performance.now() + 60_000

t.test('a write passes while the lock lasts and the fence is ours', async (t) => {
  const hold = createHold('Node/a', far(), async () => true)
  t.teardown(hold.end)
  await t.resolves(hold.beforeWrite('create server'))
  t.ok(hold.isAlive())
  t.notOk(hold.signal.aborted)
})

t.test('a moved fence ends the run, with a sentence', async (t) => {
  const hold = createHold('Node/a', far(), async () => false)
  t.teardown(hold.end)
  await t.rejects(hold.beforeWrite('create load balancer'), {
    kind: 'aborted',
    message:
      'create load balancer: not done, since the run on Node/a lost its claim to another worker, or could not renew it in time',
  })
  t.equal(hold.revoked, 'lost')
  t.ok(hold.signal.aborted)
})

t.test('past the deadline Redis is not even asked, and the signal fires by itself', async (t) => {
  let asked = 0
  const hold = createHold('Node/a', performance.now() + 20, async () => {
    asked++
    return true
  })
  await once(hold.signal, 'abort')
  await t.rejects(hold.beforeWrite('write'), { kind: 'aborted', message: /Node\/a/ })
  t.equal(asked, 0)
})

t.test('a loop that was blocked past the deadline does not write, though no timer has fired yet', async (t) => {
  const hold = createHold('Node/a', performance.now() + 20, async () => true)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40)
  await t.rejects(hold.beforeWrite('write'), { kind: 'aborted', message: /write/ })
})

t.test('a deadline that passes while Redis is asked counts', async (t) => {
  const hold = createHold('Node/a', performance.now() + 30, async () => {
    await new Promise((resolve) => setTimeout(resolve, 60))
    return true
  })
  await t.rejects(hold.beforeWrite('write'), { kind: 'aborted', message: /write/ })
})

t.test('renewals push the deadline on, and an older one does not pull it back', async (t) => {
  const hold = createHold('Node/a', performance.now() + 30, async () => true)
  t.teardown(hold.end)
  hold.extend(far())
  hold.extend(performance.now())
  await new Promise((resolve) => setTimeout(resolve, 60))
  await t.resolves(hold.beforeWrite('write'))
})

t.test('no answer about the fence is no permission', async (t) => {
  const hold = createHold('Node/a', far(), async () => {
    throw new Error('timed out')
  })
  t.teardown(hold.end)
  await t.rejects(hold.beforeWrite('write'), { kind: 'aborted', message: /Redis did not say.*timed out/ })
  t.equal(hold.revoked, undefined, 'which the next question may give')
})
