import t from 'tap'
import { createSlots } from '../../src/worker/slots.ts'

/** Lets promises that are resolved be heard. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

t.test('one cluster may take all slots, and no more', async (t) => {
  const slots = createSlots(2, 1)
  t.ok(await slots.acquire('a'))
  t.ok(await slots.acquire('a'))
  let third = false
  void slots.acquire('a').then(() => {
    third = true
  })
  await settle()
  t.notOk(third)
  slots.release('a')
  await settle()
  t.ok(third)
  t.equal(slots.taken, 2)
})

t.test('a cluster whose runs hang leaves slots to each of the others', async (t) => {
  const slots = createSlots(10, 2)
  let a = 0
  for (let n = 0; n < 20; n++) void slots.acquire('a').then(() => a++)
  await settle()
  t.equal(a, 8)
  t.ok(await slots.acquire('b'))
  t.ok(await slots.acquire('b'))
})

t.test('who has fewer comes first when one gets free', async (t) => {
  const slots = createSlots(4, 2)
  const got: string[] = []
  const ask = (cluster: string) => void slots.acquire(cluster).then(() => got.push(cluster))
  for (const cluster of ['a', 'a', 'a', 'b']) ask(cluster)
  await settle()
  t.same(got, ['a', 'a', 'a', 'b'])
  ask('a')
  ask('b')
  slots.release('a')
  await settle()
  t.same(got.slice(4), ['b'])
  slots.release('b')
  await settle()
  t.same(got.slice(4), ['b', 'a'])
})

t.test('more clusters than slots take turns', async (t) => {
  const slots = createSlots(1, 3)
  t.ok(await slots.acquire('a'))
  const got: string[] = []
  for (const cluster of ['a', 'b', 'c']) void slots.acquire(cluster).then(() => got.push(cluster))
  for (const cluster of ['a', 'a', 'b']) {
    slots.release(got.at(-1) ?? cluster)
    await settle()
  }
  t.same(got, ['a', 'b', 'c'])
})

t.test('closing sends away who waits', async (t) => {
  const slots = createSlots(1, 1)
  t.ok(await slots.acquire('a'))
  const waiting = slots.acquire('a')
  slots.close()
  t.notOk(await waiting)
  t.notOk(await slots.acquire('b'))
  slots.release('a')
  t.equal(slots.taken, 0)
})
