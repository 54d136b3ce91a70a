import { Redis } from 'ioredis'
import t from 'tap'
import type { CloudProvider } from '../../../src/cloud/provider.ts'
import { startRedis } from '../../redis.ts'
import { bench, node, robotSettings, secret } from '../hcloud/bench.ts'

const redis = await startRedis()
const connections: Redis[] = []
t.teardown(async () => {
  for (const one of connections) one.disconnect()
  await redis.stop()
})
t.afterEach(() => redis.flush())

const connect = () => {
  const one = new Redis(redis.url)
  connections.push(one)
  return one
}

const ACCOUNT = { robot_servers: [{ server_number: 321, server_name: 'r1' }] }
const metal = node('r1', { providerId: 'hrobot://321' })

t.test('eight workers read the account once', async (t) => {
  const of = await bench({ account: ACCOUNT, robot: {} })
  t.teardown(() => of.close())
  const workers = Array.from({ length: 8 }, () => of.worker({ redis: connect() }))
  const found = await Promise.all(workers.map(({ instances }) => instances.find(metal, of.call)))
  t.ok(found.every(({ kind }) => kind === 'found'))
  t.equal(of.calls()['ROBOT GET /server'], 1)
})

t.test('eight workers try a wrong password once, and a new one at once', async (t) => {
  const of = await bench({ account: ACCOUNT, robot: {} })
  t.teardown(() => of.close())
  let password = 'wrong'
  const settings = of.settings({
    robot: { ...robotSettings(of.simulator), password: { name: 'ROBOT_PASSWORD', read: () => password } },
  })
  const workers = Array.from({ length: 8 }, () => of.worker({ redis: connect(), settings }))
  const ask = ({ instances }: CloudProvider) => instances.find(metal, of.call)
  const answers = await Promise.allSettled(workers.map(ask))
  t.ok(answers.every(({ status }) => status === 'rejected'))
  for (const worker of workers) await t.rejects(ask(worker), { kind: 'permanent', message: /not tried again/ })
  t.equal(of.calls()['ROBOT GET /server'], 1)
  password = 'secret'
  t.match(await ask(workers[0]!), { kind: 'found' })
})

t.test('a refusal for the rate stops all workers, with the time that Robot or the settings name', async (t) => {
  const of = await bench({ account: ACCOUNT, robot: {} })
  t.teardown(() => of.close())
  for (const [rateLimitWaitTimeMs, least, most] of [
    [3000, 2000, 3000],
    [0, 299_000, 300_000],
  ] as const) {
    const settings = of.settings({ robot: robotSettings(of.simulator, { rateLimitWaitTimeMs }) })
    const [first, second] = [of.worker({ redis: connect(), settings }), of.worker({ redis: connect(), settings })]
    of.simulator.control.fault({ match: 'ROBOT GET /server', kind: 'rate-limit' })
    const error = await first.instances.find(metal, of.call).catch((error) => error)
    t.match(error, { kind: 'throttled', message: /rate limit exceeded/ })
    const waitMs = error.retryAtMs - Date.now()
    t.ok(waitMs > least - 1000 && waitMs <= most, String(waitMs))
    await t.rejects(second.instances.find(metal, of.call), { kind: 'throttled', message: /Hetzner Robot/ })
    t.equal(of.calls()['ROBOT GET /server'], 1)
    await redis.flush()
  }
})

t.test('eight workers that ask all the time stay within what Robot allows in an hour', async (t) => {
  const of = await bench({ account: ACCOUNT, robot: {}, options: { robot_max_request: 200 } })
  t.teardown(() => of.close())
  const workers = Array.from({ length: 8 }, () => of.worker({ redis: connect() }))
  // Each look for a name that is not there reads the account anew.
  const renamed = node('other', { providerId: 'hrobot://321' })
  const look = async ({ instances }: CloudProvider) => {
    for (let i = 0; i < 40; i++)
      await instances.find(renamed, of.call, { fresh: true }).catch((error) => {
        if (error.kind !== 'throttled') throw error
      })
  }
  await Promise.all(workers.map(look))
  t.strictSame(of.calls(), { 'ROBOT GET /server': 200 })
  t.strictSame(of.simulator.control.counters().rejected, {}, 'Robot refused none')
  const { retryAtMs } = await workers[0]!.instances.find(renamed, of.call, { fresh: true }).catch((error) => error)
  t.ok(retryAtMs > Date.now() + 3_500_000, 'an hour after the first of them, and none comes back before')
  t.match(await workers[0]!.instances.find(metal, of.call), { kind: 'found' }, 'what is known serves meanwhile')
})

t.test('a node that stays not ready costs few requests, by however many workers it is looked at', async (t) => {
  const of = await bench({ account: ACCOUNT, robot: {} })
  t.teardown(() => of.close())
  const workers = Array.from({ length: 4 }, () => of.worker({ redis: connect() }))
  for (const { instances } of [...workers, ...workers]) {
    const lookup = await instances.find(metal, of.call, { fresh: true })
    t.equal(lookup.kind === 'found' && (await instances.isOff(lookup.instance, of.call)), false)
  }
  t.strictSame(of.calls(), { 'ROBOT GET /server': 1, 'ROBOT GET /reset/{number}': 1 })
  const renamed = node('other', { providerId: 'hrobot://321' })
  for (const { instances } of workers)
    t.match(await instances.find(renamed, of.call, { fresh: true }), { kind: 'not-found' })
  t.equal(of.calls()['ROBOT GET /server'], workers.length, 'but that it is not there is asked anew each time')
})

t.test('the login is sent to Robot alone, and appears in no key', async (t) => {
  const of = await bench({ account: ACCOUNT, robot: {} })
  t.teardown(() => of.close())
  await of
    .worker({
      redis: connect(),
      settings: of.settings({ robot: robotSettings(of.simulator, { user: secret('ROBOT_USER', 'robot') }) }),
    })
    .instances.find(metal, of.call)
  const keys = (await redis.command('KEYS', '*')) as string[]
  t.ok(keys.length > 0)
  t.notOk(keys.some((key) => key.includes('secret')))
})
