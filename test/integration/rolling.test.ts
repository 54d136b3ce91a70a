import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { freePort } from '../redis.ts'
import { eventually, isInitialised, startWorld, type WindlassProcess } from './world.ts'

/** `ROUNDS=100` for a long run. */
const ROUNDS = Number(process.env.ROUNDS ?? 4)

t.setTimeout(90_000 + ROUNDS * 20_000)

t.test(
  'every role is replaced while there is work, each ends as told, and nothing is lost or made twice',
  async (t) => {
    // A run takes long enough to be at work when its worker is told to end.
    const world = await startWorld({ kubernetes: 'simulator', hcloud: { action_ms: 700, rate_limit: 1_000_000 } })
    t.teardown(() => world.stop())
    const address = `127.0.0.1:${await freePort()}`
    const common = { HCLOUD_LOAD_BALANCERS_TYPE: 'lb31', HCLOUD_SERVER_CACHE_MAX_AGE: '300ms' }
    const start = {
      server: () => world.start('server', { env: { WINDLASS_LISTEN: address } }),
      forwarder: () => world.start('forwarder', { env: { WINDLASS_SERVER_URL: `http://${address}` } }),
      worker: () => world.start('worker', { env: { ...common, WINDLASS_GRACE_PERIOD: '3s' } }),
    }
    const running: Record<keyof typeof start, WindlassProcess> = {
      server: start.server(),
      forwarder: start.forwarder(),
      worker: start.worker(),
    }
    const codes: (number | string)[] = []
    const replace = async (role: keyof typeof start) => {
      const old = running[role]
      // One that is not up yet has nothing to end.
      await old.logged(role === 'server' ? 'the server listens' : 'probes are answered')
      await delay(100)
      // The server's address is one, as behind a Service.
      if (role !== 'server') running[role] = start[role]()
      old.signal('SIGTERM')
      codes.push(await old.exited)
      if (role === 'server') running[role] = start[role]()
    }
    const busy = () => eventually(async () => world.hcloud.control.activity().inflight > 0, 'an action is on its way')
    const ids: number[] = []
    for (let round = 1; round <= ROUNDS; round++) {
      ids.push(round)
      world.hcloud.control.seed({ servers: [{ id: round, name: `w${round}` }] })
      await world.addNode(`w${round}`)
      await world.addService(`s${round}`, { ports: [{ name: 'http', port: 80 }] })
      await busy()
      await Promise.all([replace('worker'), replace('server'), replace('forwarder')])
    }
    t.same(
      codes,
      codes.map(() => 0),
    )
    t.equal(codes.length, 3 * ROUNDS)
    await eventually(async () => (await world.nodes()).every(isInitialised), 'all nodes are initialised')
    await eventually(async () => {
      const { load_balancers } = await world.account()
      return load_balancers.length >= ROUNDS && load_balancers.every(({ targets }) => targets.length === ids.length)
    }, 'every load balancer has all nodes')
    const services = await eventually(async () => {
      const all = await world.services()
      return all.every(({ status }) => status?.loadBalancer?.ingress?.length) && all
    }, 'every Service has its address')
    const { load_balancers } = await world.account()
    t.same(
      load_balancers.map(({ labels }) => labels['hcloud-ccm/service-uid']).sort(),
      services.map(({ metadata }) => metadata.uid).sort(),
      'one for each',
    )
  },
)
