import t from 'tap'
import { startCherrySimulator } from '../../simulators/cherry/simulator.ts'
import { substitute } from '../form/substitute.ts'
import { tidy } from '../form/tidy.ts'
import { fillPlaceholders, namedServices, normalAccount } from './cherry-account.ts'

const uid = '11111111-2222-3333-4444-555555555555'
const hashOfWeb = 'grOt6dAM0WQqTUIOZw1s2Y60hJou4P9m1mieZFyOsz8='

t.test('placeholders of an account are what tags hold', async (t) => {
  t.strictSame(
    fillPlaceholders({ ips: [{ tags: { cluster: '{kube-system uid}', service: '{sha256 of default/web}' } }] }, uid),
    { ips: [{ tags: { cluster: uid, service: hashOfWeb } }] },
  )
})

t.test('Services are found wherever a case names them', async (t) => {
  const steps = [
    { apply: { kind: 'Service', metadata: { name: 'web', namespace: 'shop' } } },
    { delete: { kind: 'Service', name: 'api' } },
    { apply: { kind: 'Node', metadata: { name: 'w1' } } },
    { settle: null },
  ]
  t.strictSame(namedServices([undefined, steps]), ['shop/web', 'default/api'])
})

t.test('an account is told by names', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  const seeded = {
    projects: [{ id: 7, name: 'lab' }],
    servers: [
      { id: 1, hostname: 'w1', bgp: true, tags: { team: 'a' } },
      { id: 2, hostname: 'w2', power: 'off', state: 'inactive' },
    ],
    ips: [{ address: '5.199.171.9', tags: { cluster: uid }, targeted_to: 1 }],
  }
  await simulator.control.seed(seeded)
  const made = { region: 'NL-Amsterdam', tags: { service: hashOfWeb, cluster: uid } }
  await simulator.control.mutate({ ips: [{ create: made }, { create: made }] })

  const { account, substitutions } = normalAccount(simulator.control.state(), seeded, ['default/web'], uid)
  t.strictSame(tidy(substitute(account, substitutions)), {
    projects: [{ id: 7, name: 'lab', bgp: { enabled: false, local_asn: 0 } }],
    servers: {
      w1: { bgp: true, state: 'active', tags: { team: 'a' } },
      w2: { bgp: false, state: 'inactive', power: 'off' },
    },
    ips: [
      {
        address: '5.199.171.9',
        region: 'LT-Siauliai',
        tags: { cluster: '{kube-system uid}' },
        targeted_to: 'w1',
        routed_to: '5.199.160.1',
      },
      ...['{ip of default/web}', '{ip 2 of default/web}'].map((address) => ({
        address,
        region: 'NL-Amsterdam',
        tags: { cluster: '{kube-system uid}', service: '{sha256 of default/web}' },
      })),
    ],
  })
})
