import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { sign } from '../../src/events/sign.ts'
import { BATCH_CONTENT_TYPE, eventsPath } from '../../src/events/types.ts'
import { nodeOf } from '../state/stores.ts'
import { harness, KEY, nodeChanged } from './harness.ts'

const h = await harness(t)
const garbage = fc.oneof(fc.string(), fc.json(), fc.string({ unit: 'binary' }), fc.constant('[{}]'))
const headerValue = fc.string({ unit: fc.constantFrom(...'aZ09 ,;=/+.-_v1'), maxLength: 60 })

t.test('whatever is sent unsigned, nothing is taken and nothing breaks', async (t) => {
  const request = fc.record({
    payload: garbage,
    url: fc.oneof(
      fc.constant(eventsPath('default')),
      fc.string({ unit: fc.constantFrom(...'ab/%.2F?&='), maxLength: 20 }).map((path) => `/v1/clusters/${path}/events`),
    ),
    type: fc.oneof(fc.constant(BATCH_CONTENT_TYPE), fc.constant('application/json'), headerValue),
    headers: fc.dictionary(
      fc.constantFrom(
        'webhook-id',
        'webhook-timestamp',
        'webhook-signature',
        'authorization',
        'content-encoding',
        'expect',
      ),
      headerValue,
    ),
  })
  await fc.assert(
    fc.asyncProperty(request, async ({ payload, url, type, headers }) => {
      const { statusCode } = await h.server.app.inject({
        method: 'POST',
        url,
        headers: { ...headers, ...(type ? { 'content-type': type } : {}) },
        payload,
      })
      return statusCode >= 400 && statusCode < 500
    }),
    { numRuns: 300 },
  )
  t.same(h.triggers(), [])
})

t.test('whatever is signed, a batch is taken as it should be or refused', async (t) => {
  const event = nodeChanged(nodeOf('a', 1))
  const broken = fc
    .tuple(fc.constantFrom(...Object.keys(event), ...Object.keys(event.data)), fc.jsonValue())
    .map(([field, value]) =>
      field in event.data ? { ...event, data: { ...event.data, [field]: value } } : { ...event, [field]: value },
    )
  const payloads = fc.oneof(
    garbage,
    fc.array(broken, { maxLength: 3 }).map((events) => JSON.stringify(events)),
  )
  await fc.assert(
    fc.asyncProperty(payloads, async (payload) => {
      const { statusCode, headers } = await h.server.app.inject({
        method: 'POST',
        url: eventsPath('default'),
        headers: { 'content-type': BATCH_CONTENT_TYPE, ...sign(KEY, randomUUID(), Date.now(), payload) },
        payload,
      })
      if (statusCode === 202) return Array.isArray(JSON.parse(payload)) && headers['windlass-epoch'] !== undefined
      return statusCode === 400
    }),
    { numRuns: 300 },
  )
  t.ok(await h.stores.epochs.current())
})

t.test('a flipped bit anywhere in a signed request is found', async (t) => {
  const payload = Buffer.from(JSON.stringify([nodeChanged(nodeOf('flipped', 1))]))
  await fc.assert(
    fc.asyncProperty(fc.nat(payload.length - 1), fc.integer({ min: 0, max: 7 }), async (at, bit) => {
      const headers = sign(KEY, randomUUID(), Date.now(), payload.toString())
      const flipped = Buffer.from(payload)
      flipped[at]! ^= 1 << bit
      const { statusCode } = await h.server.app.inject({
        method: 'POST',
        url: eventsPath('default'),
        headers: { 'content-type': BATCH_CONTENT_TYPE, ...headers },
        payload: flipped,
      })
      return statusCode === 401
    }),
    { numRuns: 200 },
  )
  t.equal((await h.stores.nodes.get('default', 'flipped')).node, undefined)
})
