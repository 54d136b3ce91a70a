import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { SIGNATURE_TOLERANCE_MS } from '../../src/events/limits.ts'
import { sign } from '../../src/events/sign.ts'
import { verify } from '../../src/events/verify.ts'

const NOW = 1_800_000_000_000
const key = () => `whsec_${randomBytes(24).toString('base64')}`
const OLD = key()
const NEW = key()
const body = Buffer.from('[{"specversion":"1.0","id":"é"}]')
const signed = sign(OLD, 'batch_1', NOW, body.toString())

t.test('a body that one of the keys signed is let in, with its id and time', (t) => {
  for (const keys of [[OLD], [NEW, OLD], [OLD, NEW], [OLD.slice('whsec_'.length)]])
    t.strictSame(verify(keys, signed, body, NOW), { id: 'batch_1', timestamp: NOW / 1000 })
  t.match(verify([NEW], signed, body, NOW), { fault: 'bad-signature' })
  t.match(verify([], signed, body, NOW), { fault: 'bad-signature' })
  t.end()
})

t.test('any implementation of Standard Webhooks can sign', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fc.stringMatching(/^[\w-]{1,40}$/), (text, id) => {
      const headers = {
        'webhook-id': id,
        'webhook-timestamp': String(NOW / 1000),
        'webhook-signature': new Webhook(OLD).sign(id, new Date(NOW), text),
      }
      t.strictSame(sign(OLD, id, NOW, text), headers)
      return verify([OLD], headers, Buffer.from(text), NOW).fault === undefined
    }),
  )
  t.end()
})

t.test('any single changed byte is refused', (t) => {
  const flip = (text: Buffer, at: number, bits: number) => {
    const other = Buffer.from(text)
    other[at % text.length] = text[at % text.length]! ^ bits
    return other
  }
  const what = fc.constantFrom('body', 'webhook-id', 'webhook-timestamp', 'webhook-signature')
  fc.assert(
    fc.property(what, fc.nat(1000), fc.integer({ min: 1, max: 255 }), (part, at, bits) => {
      if (part === 'body') return verify([OLD], signed, flip(body, at, bits), NOW).fault === 'bad-signature'
      const headers = { ...signed, [part]: flip(Buffer.from(signed[part]!), at, bits).toString('latin1') }
      return verify([OLD], headers, body, NOW).fault !== undefined
    }),
    { numRuns: 2000 },
  )
  t.end()
})

t.test('bytes that are not UTF-8 do not pass as each other', (t) => {
  const text = Buffer.from([0x5b, 0xff, 0x5d])
  const asDecoded = sign(OLD, 'a', NOW, text.toString())
  t.match(verify([OLD], asDecoded, text, NOW), { fault: 'bad-signature' })
  t.match(verify([OLD], asDecoded, Buffer.from([0x5b, 0xfe, 0x5d]), NOW), { fault: 'bad-signature' })
  t.end()
})

t.test('one good signature among several is enough', (t) => {
  const other = sign(NEW, 'batch_1', NOW, body.toString())['webhook-signature']
  const both = { ...signed, 'webhook-signature': `v1a,xyz ${other} ${signed['webhook-signature']}` }
  t.equal(verify([OLD], both, body, NOW).fault, undefined)
  t.equal(verify([NEW], both, body, NOW).fault, undefined)
  t.equal(verify([key()], both, body, NOW).fault, 'bad-signature')
  t.end()
})

t.test('five minutes either way are allowed, and only a holder of a key hears that he is stale', (t) => {
  for (const away of [SIGNATURE_TOLERANCE_MS, -SIGNATURE_TOLERANCE_MS]) {
    t.equal(verify([OLD], signed, body, NOW + away).fault, undefined)
    const beyond = NOW + away + Math.sign(away) * 1000
    t.match(verify([OLD], signed, body, beyond), { fault: 'stale', message: /301 s away/ })
    t.equal(verify([NEW], signed, body, beyond).fault, 'bad-signature')
  }
  t.end()
})

t.test('headers that are absent, doubled or not of their form are missing', (t) => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    for (const value of [undefined, '', ['a', 'b']])
      t.match(verify([OLD], { ...signed, [name]: value }, body, NOW), {
        fault: 'missing',
        message: new RegExp(`header ${name}`),
      })
  for (const time of ['12abc', '0x10', '-1', '1e9', ' 1', '01'])
    t.match(verify([OLD], { ...signed, 'webhook-timestamp': time }, body, NOW), { fault: 'missing' }, time)
  t.end()
})

t.test('a dot in an id cannot move text from the time into the body', (t) => {
  const shifted = sign(OLD, `a.${NOW / 1000}`, NOW, 'body')
  t.match(verify([OLD], shifted, Buffer.from('body'), NOW), { fault: 'missing' })
  t.end()
})
