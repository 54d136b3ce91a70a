import t from 'tap'
import { parseAddress, parseServer } from '../../../src/cloud/cherry/parse.ts'

const server = {
  id: 7,
  hostname: 'w1',
  tags: {},
  region: { slug: 'LT', bgp: { hosts: ['10.1.1.1', '10.1.1.2'], asn: 16125 } },
}
const address = { id: 'a', address: '5.199.170.1', tags: {} }

t.test('tags that are not there come in many forms', async (t) => {
  for (const tags of [null, [], {}, '']) {
    t.same(parseServer({ ...server, tags }).tags, {}, JSON.stringify(tags))
    t.same(parseAddress({ ...address, tags }).tags, {}, JSON.stringify(tags))
  }
  t.equal(parseServer({ ...server, tags: undefined }).tags, undefined, 'and what is left out is not known')
  t.same(parseServer({ ...server, tags: { a: 1, b: true, c: null } }).tags, { a: '1', b: 'true', c: '' })
})

t.test('what is no mapping of texts is not taken for no tags', async (t) => {
  for (const tags of ['blue', 7, [{ key: 'team', value: 'blue' }], { team: { name: 'blue' } }]) {
    t.throws(() => parseServer({ ...server, tags }), { message: /belong|no text/ }, JSON.stringify(tags))
    t.throws(() => parseAddress({ ...address, tags }), { message: /belong|no text/ }, JSON.stringify(tags))
  }
})

t.test('routers are known when all of them are good', async (t) => {
  const routers = (bgp: unknown) => parseServer({ ...server, region: { slug: 'LT', bgp } }).routers
  t.same(routers({ hosts: ['10.1.1.1'], asn: '16125' }), { hosts: ['10.1.1.1'], asn: 16125 })
  for (const bgp of [
    { hosts: ['10.1.1.1', '; rm'], asn: 16125 },
    { hosts: ['10.1.1.1'], asn: 9e15 },
    { hosts: ['10.1.1.1'], asn: 0 },
    { hosts: 'x', asn: 1 },
    null,
  ])
    t.equal(routers(bgp), undefined, JSON.stringify(bgp))
})

t.test('an address is one, or is not there yet', async (t) => {
  t.equal(parseAddress({ ...address, address: undefined, cidr: '5.199.171.0/32' }).address, '5.199.171.0')
  t.equal(parseAddress({ ...address, address: '' }).address, '')
  for (const wrong of ['x'.repeat(3_000_000), '10.1', 'none', 7])
    t.equal(parseAddress({ ...address, address: wrong }).address, '', 'and one odd entry spoils no list')
  t.throws(() => parseServer({ ...server, hostname: 'x'.repeat(254) }), { message: /that is none|too long/ })
})
