import t from 'tap'
import { createLeaseWatch } from '../../../src/controllers/takeover/lease.ts'
import type { KubeLease } from '../../../src/kubernetes/resources.ts'

const lease = (spec: KubeLease['spec']): KubeLease => ({
  metadata: { name: 'x', namespace: 'y', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec: { leaseDurationSeconds: 15, ...spec },
})
const at = (second: number) => new Date(second * 1000).toISOString()

t.test('no lease, and one without a holder, leave nothing to wait for', async (t) => {
  const watch = createLeaseWatch()
  t.same(watch.see(undefined, 0, 0), { kind: 'none' })
  t.same(watch.see(lease({ holderIdentity: '', renewTime: at(0) }), 0, 0), { kind: 'none' })
  t.same(watch.see(lease({}), 0, 0), { kind: 'none' })
})

t.test('a renewal that we saw is proof, whatever the clocks say', async (t) => {
  const watch = createLeaseWatch()
  const wall = 1_000_000_000
  t.match(watch.see(lease({ holderIdentity: 'old', renewTime: at(5) }), 0, wall), { kind: 'undecided', holder: 'old' })
  t.match(watch.see(lease({ holderIdentity: 'old', renewTime: at(7) }), 2000, wall), { kind: 'held', holder: 'old' })
  t.match(watch.see(lease({ holderIdentity: 'old', renewTime: at(7) }), 4000, wall), { kind: 'held' })
  t.match(
    watch.see(lease({ holderIdentity: 'old', renewTime: at(7) }), 17_000, wall),
    { kind: 'stale' },
    'until it ends',
  )
  t.match(
    watch.see(lease({ holderIdentity: 'old', renewTime: at(9) }), 40_000, wall),
    { kind: 'held' },
    'or comes back',
  )
  t.match(watch.see(undefined, 41_000, wall), { kind: 'none' })
})

t.test('a lease of now that nobody renews is looked at for its duration', async (t) => {
  const watch = createLeaseWatch()
  const left = lease({ holderIdentity: 'old', renewTime: at(1000) })
  t.match(watch.see(left, 0, 1_000_000), { kind: 'undecided' })
  t.match(watch.see(left, 14_999, 1_015_000), { kind: 'undecided' })
  t.match(watch.see(left, 15_000, 1_015_001), { kind: 'stale' })
})

t.test('one that was left long ago is looked at shortly, but never by the clock alone', async (t) => {
  const watch = createLeaseWatch()
  const left = lease({ holderIdentity: 'old', renewTime: at(0) })
  const hour = 3_600_000
  t.match(watch.see(left, 0, hour), { kind: 'undecided' })
  t.match(watch.see(left, 2999, hour), { kind: 'undecided' })
  t.match(watch.see(left, 3000, hour), { kind: 'stale' })
})
