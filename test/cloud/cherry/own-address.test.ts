import t from 'tap'
import {
  ADDRESS_NOTE,
  addressAnnotations,
  annotationsFor,
  wishOf,
} from '../../../src/cloud/cherry/load-balancers/own-address.ts'
import { service, UID } from './bench.ts'

const NEW = 'metallb.io/loadBalancerIPs'
const OLD = 'metallb.universe.tf/loadBalancerIPs'
const keys = addressAnnotations({ kind: 'metallb', namespace: 'metallb-system', bgpPeerMode: 'native' })
const own = '5.199.171.77'
const noted = { [ADDRESS_NOTE]: `${UID} ${own}` }

t.test('an address is written where nothing says it yet, and once', async (t) => {
  t.same(annotationsFor(service(), keys, own), { [NEW]: own, ...noted })
  t.same(annotationsFor(service({ [NEW]: own }), keys, own), noted)
  t.same(annotationsFor(service({ [OLD]: own }), keys, own), noted, 'as a release of long ago wrote it')
  t.same(annotationsFor(service({}, { loadBalancerIp: own }), keys, own), noted, 'as one before that did')
  t.same(annotationsFor(service({ [NEW]: own, ...noted }), keys, own), {})
})

t.test('what we wrote before goes, where another address is said', async (t) => {
  const next = '5.199.171.78'
  const note = { [ADDRESS_NOTE]: `${UID} ${next}` }
  t.same(annotationsFor(service({ [NEW]: own, ...noted }), keys, next), { [NEW]: next, ...note })
  t.same(annotationsFor(service({ [OLD]: own, ...noted }), keys, next), { [OLD]: null, [NEW]: next, ...note })
  const inField = service({ [NEW]: own, ...noted }, { loadBalancerIp: next })
  t.same(annotationsFor(inField, keys, next), { [NEW]: null, ...note }, 'MetalLB takes no Service that has both')
  t.same(annotationsFor(service({ [NEW]: own, [OLD]: own, ...noted }), keys, undefined), {
    [NEW]: null,
    [OLD]: null,
    [ADDRESS_NOTE]: null,
  })
  t.same(annotationsFor(service({ [NEW]: '192.0.2.9', ...noted }), keys, undefined), { [ADDRESS_NOTE]: null })
})

t.test('the first word counts, and ours is no wish', async (t) => {
  const wish = (annotations: Record<string, string>, loadBalancerIp?: string) =>
    wishOf(service(annotations, loadBalancerIp === undefined ? {} : { loadBalancerIp }), keys, [own])?.addresses
  t.same(wish({ [NEW]: '192.0.2.1', [OLD]: '192.0.2.2' }, '192.0.2.3'), ['192.0.2.1'])
  t.same(wish({ [NEW]: '', [OLD]: '192.0.2.2' }, '192.0.2.3'), ['192.0.2.2'])
  t.same(wish({}, '192.0.2.3'), ['192.0.2.3'])
  t.same(wish({ [NEW]: own }, '192.0.2.3'), ['192.0.2.3'])
  t.equal(wish({ [NEW]: own }), undefined)
  t.same(wish({ [NEW]: '192.0.2.1, 2001:db8::1' }), ['192.0.2.1', '2001:db8::1'])
  for (const wrong of ['192.0.2.0/24', '192.0.2.1,', 'web.example.org', '192.0.2.1-192.0.2.9', 'fe80::1%eth0'])
    t.throws(() => wish({ [NEW]: wrong }), { kind: 'permanent', code: 'bad_address' }, wrong)
})
