import t from 'tap'
import { bench, lbOf, nodes, service, targetsOf } from './bench.ts'

const NETWORK = {
  id: 500,
  name: 'net',
  ip_range: '10.0.0.0/8',
  subnets: [{ type: 'cloud', ip_range: '10.0.0.0/24', network_zone: 'eu-central' }],
}

t.test(
  'an action that never tells its end holds a run for some seconds, and the next one goes on from what it did',
  async (t) => {
    const of = await bench({
      account: {
        networks: [NETWORK],
        servers: [{ id: 1, name: 'w1', private_net: [{ network: 'net', ip: '10.0.0.11' }] }],
      },
      settings: { network: 'net', networkRoutesEnabled: false },
      // Its effect is there at once.
      options: { apply_at_start: true, action_ms: 20 },
    })
    t.teardown(() => of.close())
    const match = 'POST /load_balancers/{id}/actions/attach_to_network'
    of.simulator.control.fault({ match, kind: 'action-hang' })
    const wanted = service({ 'private-ipv4': '10.0.0.77' })
    const error = await of.ensure(wanted, nodes(1)).catch((error) => error)
    t.match(error, { kind: 'throttled', code: 'action_running', message: /attach_to_network.*still running/ })
    const waitMs = error.retryAtMs - Date.now()
    t.ok(waitMs > 1000 && waitMs <= 15_000, 'it is looked at again soon')
    of.calls()
    const { ingress } = await of.ensure(wanted, nodes(1))
    t.equal(ingress.at(-1)?.ip, '10.0.0.77')
    t.strictSame(targetsOf(lbOf(of)), ['server 1'])
    t.equal(of.calls()[match], undefined, 'what is done is not done again')
    const locked = of.ensure(service({ 'private-ipv4': '10.0.0.77', 'algorithm-type': 'least_connections' }), nodes(1))
    // What it keeps from being done is waited for, which is no failure.
    await t.rejects(locked, { name: 'WindlassError', kind: 'throttled' })
  },
)
