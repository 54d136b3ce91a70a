import fc from 'fast-check'
import t from 'tap'
import { labelValue } from '../../../src/controllers/node/labels.ts'

/** As the API server checks the value of a label; empty is one, too. */
const VALID = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/
const isValid = (value: string) => value.length <= 63 && VALID.test(value)

t.test('whatever a cloud calls a thing, its label is one that the API server takes', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.string({ maxLength: 200 })), (name) =>
      isValid(labelValue(name)),
    ),
    { numRuns: 5000 },
  )
})

t.test('what is a label value is taken as it is', async () => {
  const letters = [...'abcXYZ019-_.']
  const values = fc.string({ unit: fc.constantFrom(...letters), maxLength: 63 }).filter(isValid)
  fc.assert(fc.property(values, (value) => labelValue(value) === value))
})

t.test('names of catalogues stay legible', async (t) => {
  const rows = {
    cx22: 'cx22',
    'fsn1-dc14': 'fsn1-dc14',
    'EX44 (Ü) #2': 'EX44--2',
    'LT-Siauliai': 'LT-Siauliai',
    'E5-1620v4, 32GB': 'E5-1620v4-32GB',
    'Server Auction ': 'Server-Auction',
    日本: '',
  }
  for (const [name, value] of Object.entries(rows)) t.equal(labelValue(name), value, name)
})
