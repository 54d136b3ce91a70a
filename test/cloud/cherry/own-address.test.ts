import t from 'tap'
import {
  ADDRESS_NOTE,
  addressAnnotations,
  annotationsFor,
  readNote,
  wishOf,
} from '../../../src/cloud/cherry/load-balancers/own-address.ts'
import { KUBE_VIP, service, UID } from './bench.ts'

const NEW = 'metallb.io/loadBalancerIPs'
const OLD = 'metallb.universe.tf/loadBalancerIPs'
const EMPTY = 'cherryservers.com/loadBalancerIPs'
const CHOSEN = 'example.com/ip'
const keys = addressAnnotations({ kind: 'metallb', namespace: 'metallb-system', bgpPeerMode: 'native' })
const implementations = [
  { kind: 'metallb', keys },
  { kind: 'kube-vip', keys: addressAnnotations({ kind: 'kube-vip' }) },
  { kind: 'empty', keys: addressAnnotations({ kind: 'empty' }) },
  { kind: 'empty with a key', keys: addressAnnotations({ kind: 'empty', ipAnnotation: CHOSEN }) },
]
const own = '5.199.171.77'
const noted = { [ADDRESS_NOTE]: `${UID} ${own}` }

t.test('an address is written where nothing says it yet, and once', async (t) => {
  t.same(annotationsFor(service(), keys, own, []), { [NEW]: own, ...noted })
  t.same(annotationsFor(service({ [NEW]: own }), keys, own, []), noted)
  t.same(annotationsFor(service({ [OLD]: own }), keys, own, []), noted, 'as a release of long ago wrote it')
  t.same(annotationsFor(service({}, { loadBalancerIp: own }), keys, own, []), noted, 'as one before that did')
  t.same(annotationsFor(service({ [NEW]: own, ...noted }), keys, own, []), {})
})

t.test('what we wrote before goes, where another address is said', async (t) => {
  const next = '5.199.171.78'
  const note = { [ADDRESS_NOTE]: `${UID} ${next}` }
  t.same(annotationsFor(service({ [NEW]: own, ...noted }), keys, next, []), { [NEW]: next, ...note })
  t.same(annotationsFor(service({ [OLD]: own, ...noted }), keys, next, []), { [OLD]: null, [NEW]: next, ...note })
  const inField = service({ [NEW]: own, ...noted }, { loadBalancerIp: next })
  t.same(annotationsFor(inField, keys, next, []), { [NEW]: null, ...note }, 'MetalLB takes no Service that has both')
  t.same(annotationsFor(service({ [NEW]: own, [OLD]: own, ...noted }), keys, undefined, []), {
    [NEW]: null,
    [OLD]: null,
    [ADDRESS_NOTE]: null,
  })
  t.same(annotationsFor(service({ [NEW]: '192.0.2.9', ...noted }), keys, undefined, []), { [ADDRESS_NOTE]: null })
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

t.test('what we wrote for another implementation goes with the note, and what a user wrote stays', async (t) => {
  const next = '5.199.171.78'
  const keysOf = { [NEW]: own, [OLD]: own, [KUBE_VIP]: own, [EMPTY]: own, [CHOSEN]: own }
  const everywhere = { ...keysOf, [ADDRESS_NOTE]: `${UID} ${own} ${CHOSEN}` }
  const gone = Object.fromEntries(Object.keys(keysOf).map((key) => [key, null]))
  for (const { kind, keys } of implementations) {
    t.same(annotationsFor(service(everywhere), keys, undefined, []), { ...gone, [ADDRESS_NOTE]: null }, kind)
    const chosen = keys.write === CHOSEN ? ` ${CHOSEN}` : ''
    const moved = { ...gone, [keys.write]: next, [ADDRESS_NOTE]: `${UID} ${next}${chosen}` }
    t.same(annotationsFor(service(everywhere), keys, next, []), moved, kind)
    t.same(annotationsFor(service(everywhere), keys, own, []), {}, 'workers of two settings undo nothing of each other')
    t.match(annotationsFor(service({ ...everywhere, [OLD]: ` ${own}` }), keys, next, []), { [OLD]: null }, kind)
    const users = Object.fromEntries(Object.keys(keysOf).map((key) => [key, '192.0.2.9']))
    t.same(annotationsFor(service({ ...users, ...noted }), keys, undefined, []), { [ADDRESS_NOTE]: null }, kind)
  }
})

t.test('what the replaced controller wrote for another implementation is known by its reservation', async (t) => {
  const left = service({ [NEW]: own, [KUBE_VIP]: own })
  for (const { kind, keys } of implementations)
    t.same(annotationsFor(left, keys, undefined, [own]), { [NEW]: null, [KUBE_VIP]: null }, kind)
  t.same(annotationsFor(left, keys, undefined, []), {}, "without one it is a user's")
})

t.test('a key that an admin chose is noted, since no later setting tells it', async (t) => {
  const chosen = addressAnnotations({ kind: 'empty', ipAnnotation: CHOSEN })
  const both = { [ADDRESS_NOTE]: `${UID} ${own} ${CHOSEN}` }
  t.same(annotationsFor(service(), chosen, own, []), { [CHOSEN]: own, ...both })
  t.same(annotationsFor(service({ [CHOSEN]: own, ...both }), chosen, own, []), {})
  t.same(
    annotationsFor(service({ [CHOSEN]: own, ...both }), keys, own, []),
    { [NEW]: own },
    'also under another setting',
  )
  const users = service({ [CHOSEN]: '192.0.2.9', ...both })
  t.same(annotationsFor(users, keys, own, []), { [NEW]: own, ...noted }, "until it is a user's")
  t.same(readNote(both), { uid: UID, address: own, keys: [CHOSEN] })
  t.same(readNote(noted), { uid: UID, address: own, keys: [] })
  for (const broken of ['', UID, ` ${own}`, `${UID} ${own} `]) t.equal(readNote({ [ADDRESS_NOTE]: broken }), undefined)
})
