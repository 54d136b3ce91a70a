import t from 'tap'
import { KINDS } from './kinds.ts'
import { strategicMerge } from './strategic-merge.ts'

const schemaOf = (plural: string) => KINDS.find((kind) => kind.plural === plural)?.mergeSchema ?? {}
const node = (original: object, patch: object) => strategicMerge(original as never, patch as never, schemaOf('nodes'))
const addresses = (...pairs: [string, string][]) => pairs.map(([type, address]) => ({ type, address }))

t.test('taints are one value: a patch puts its list in the place of the old', async (t) => {
  const merged = node({ spec: { taints: [{ key: 'a' }, { key: 'b' }] } }, { spec: { taints: [{ key: 'c' }] } })
  t.same(merged, { spec: { taints: [{ key: 'c' }] } })
})

t.test('conditions merge by type and keep what the patch does not name', async (t) => {
  const merged = node(
    {
      status: {
        conditions: [
          { type: 'Ready', status: 'True', reason: 'x' },
          { type: 'NetworkUnavailable', status: 'True' },
        ],
      },
    },
    {
      status: {
        conditions: [
          { type: 'NetworkUnavailable', status: 'False' },
          { type: 'Ready', status: 'False' },
        ],
      },
    },
  )
  t.same(merged.status, {
    conditions: [
      { type: 'NetworkUnavailable', status: 'False' },
      { type: 'Ready', status: 'False', reason: 'x' },
    ],
  })
})

t.test('addresses have type as their key', async (t) => {
  const old = addresses(['Hostname', 'n'], ['InternalIP', '10.0.0.1'])
  const merge = (change: object[], present: object[] | undefined = old) =>
    (
      node({ status: present ? { addresses: present } : {} }, { status: { addresses: change } }).status as {
        addresses?: unknown
      }
    ).addresses

  t.test('so old entries survive a new list', async (t) => {
    t.same(
      merge(addresses(['ExternalIP', '1.1.1.1'])),
      addresses(['ExternalIP', '1.1.1.1'], ['Hostname', 'n'], ['InternalIP', '10.0.0.1']),
    )
  })
  t.test('two of one type become one', async (t) => {
    t.same(
      merge(addresses(['InternalIP', '10.0.0.2'], ['InternalIP', 'fd00::2'])),
      addresses(['Hostname', 'n'], ['InternalIP', 'fd00::2']),
    )
  })
  t.test('with $patch replace only the new list is left, grouped by type', async (t) => {
    const change = [
      ...addresses(['InternalIP', '10.0.0.2'], ['ExternalIP', '1.1.1.1'], ['InternalIP', 'fd00::2']),
      { $patch: 'replace' },
    ]
    t.same(merge(change), addresses(['InternalIP', '10.0.0.2'], ['InternalIP', 'fd00::2'], ['ExternalIP', '1.1.1.1']))
  })
  t.test('without a list before, the new one is taken as it is and directives fall away', async (t) => {
    const change = [...addresses(['InternalIP', '10.0.0.2'], ['InternalIP', 'fd00::2']), { $patch: 'replace' }]
    t.same(node({ status: {} }, { status: { addresses: change } }).status, {
      addresses: addresses(['InternalIP', '10.0.0.2'], ['InternalIP', 'fd00::2']),
    })
  })
  t.test('$patch delete takes away by type', async (t) => {
    t.same(merge([{ $patch: 'delete', type: 'Hostname' }]), addresses(['InternalIP', '10.0.0.1']))
  })
  t.test('an element without type is refused', async (t) => {
    t.throws(() => merge([{ address: '1.1.1.1' }]), { code: 400 })
  })
})

t.test('finalizers', async (t) => {
  const service = (finalizers: string[] | undefined, patch: object) =>
    strategicMerge(
      { metadata: finalizers ? { finalizers } : {} } as never,
      { metadata: patch } as never,
      schemaOf('services'),
    ).metadata
  t.test('are added to, without doubles', async (t) => {
    t.same(service(['a'], { finalizers: ['b'] }), { finalizers: ['b', 'a'] })
    t.same(service(['a', 'b'], { finalizers: ['b'] }), { finalizers: ['a', 'b'] })
    t.same(service(undefined, { finalizers: ['b'] }), { finalizers: ['b'] })
  })
  t.test('come in the order that the patch asks for', async (t) => {
    t.same(service(['a', 'c'], { '$setElementOrder/finalizers': ['b', 'a'], finalizers: ['b'] }), {
      finalizers: ['b', 'a', 'c'],
    })
  })
  t.test('refuse an order that misses an element of the patch', async (t) => {
    t.throws(() => service(['a'], { '$setElementOrder/finalizers': ['a'], finalizers: ['b'] }), { code: 500 })
  })
  t.test('are taken away one by one', async (t) => {
    t.same(
      service(['a', 'b'], { '$deleteFromPrimitiveList/finalizers': ['a'], '$setElementOrder/finalizers': ['b'] }),
      { finalizers: ['b'] },
    )
    t.same(service(undefined, { '$deleteFromPrimitiveList/finalizers': ['a'] }), {})
  })
  t.test('are all wiped by null', async (t) => {
    t.same(service(['a', 'b'], { finalizers: null }), {})
  })
})

t.test('maps obey $patch and $retainKeys, null takes away', async (t) => {
  t.same(node({ spec: { a: 1, b: 2 } }, { spec: { $patch: 'replace', c: 3 } }), { spec: { c: 3 } })
  t.same(node({ spec: { a: 1 } }, { spec: { $patch: 'delete' } }), { spec: {} })
  t.same(node({ spec: { a: 1, b: 2 } }, { spec: { $retainKeys: ['b', 'c'], c: 3 } }), { spec: { b: 2, c: 3 } })
  t.same(node({ metadata: { labels: { a: '1', b: '2' } } }, { metadata: { labels: { a: null } } }), {
    metadata: { labels: { b: '2' } },
  })
  t.throws(() => node({ spec: {} }, { spec: { $patch: 'other' } }), { code: 500 })
})
