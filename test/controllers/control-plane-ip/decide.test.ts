import t from 'tap'
import {
  type ControlPlaneNode,
  decide,
  hostAddress,
  machineAddresses,
} from '../../../src/controllers/control-plane-ip/decide.ts'

const node = (name: string, more: Partial<ControlPlaneNode> = {}): ControlPlaneNode => ({
  name,
  uid: name,
  providerId: `cherryservers://${name}`,
  addresses: [],
  unschedulable: false,
  deleting: false,
  ...more,
})
const [a, b, c] = [node('a'), node('b'), node('c')]
const holder = (name: string) => [`cherryservers://${name}`, name]
const none = new Set<string>()
const names = ({ candidates }: { candidates: ControlPlaneNode[] }) => candidates.map(({ name }) => name)

t.test('an address that nobody has goes to the first, schedulable ones before others', async (t) => {
  const verdict = decide({ nodes: [node('a', { unschedulable: true }), c, b], holder: undefined, known: none })
  t.match(verdict, { kind: 'move' })
  t.same(names(verdict), ['b', 'c', 'a'])
})

t.test('where it is it stays as long as it answers there, and never goes back to who failed', async (t) => {
  const verdict = decide({ nodes: [a, b], holder: holder('a'), known: none })
  t.match(verdict, { kind: 'check', node: { name: 'a' } })
  t.same(names(verdict), ['b'])
})

t.test('it leaves nodes that go, and cordoned ones for better ones only', async (t) => {
  t.match(decide({ nodes: [node('a', { deleting: true }), b], holder: holder('a'), known: none }), { kind: 'move' })
  const cordoned = node('a', { unschedulable: true })
  t.match(decide({ nodes: [cordoned, b], holder: holder('a'), known: none }), { kind: 'move' })
  const all = [cordoned, node('b', { unschedulable: true })]
  t.match(decide({ nodes: all, holder: holder('a'), known: none }), { kind: 'check' }, 'not round in circles')
})

t.test('a machine whose Node is gone loses it; one that never was a node keeps it while it answers', async (t) => {
  t.match(decide({ nodes: [b], holder: holder('a'), known: new Set(['cherryservers://a']) }), { kind: 'move' })
  t.match(decide({ nodes: [b], holder: holder('a'), known: new Set(['a']) }), { kind: 'move' })
  t.match(decide({ nodes: [b], holder: holder('x'), known: none }), { kind: 'check' })
})

t.test('nodes that go, or whose machine nobody knows, are no candidates', async (t) => {
  const { providerId: _, ...unknown } = node('b')
  t.same(names(decide({ nodes: [a, unknown, node('c', { deleting: true })], holder: undefined, known: none })), ['a'])
})

t.test('a machine is asked at its own addresses, never at the floating one or by name', async (t) => {
  const one = node('a', {
    addresses: [
      { type: 'Hostname', address: 'a' },
      { type: 'ExternalIP', address: '5.1.1.1' },
      { type: 'ExternalIP', address: '5.9.9.9' },
      { type: 'InternalIP', address: '10.1.1.1' },
      { type: 'InternalDNS', address: 'a.local' },
    ],
  })
  t.same(machineAddresses(one, '5.9.9.9'), ['5.1.1.1', '10.1.1.1'])
  t.equal(hostAddress(one, '5.9.9.9'), '5.1.1.1')
  t.equal(hostAddress(one, '5.1.1.1'), '5.9.9.9')
})
