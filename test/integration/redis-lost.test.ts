import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { NODES, SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, isInitialised, startWorld } from './world.ts'

const ROUNDS = 6

t.test('whenever Redis loses everything, all that was asked for comes about, once', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const names = Array.from({ length: ROUNDS }, (_, i) => `w${i}`)
  world.hcloud.control.seed({ servers: names.map((name, i) => ({ id: i + 1, name })) })
  const server = world.start('server')
  const { host, port } = await server.logged('the server listens')
  world.start('forwarder', { env: { WINDLASS_SERVER_URL: `http://${host}:${port}` } })
  // No look at everything helps within the time of this test, but that at a new beginning.
  const startWorker = () => world.start('worker', { env: { WINDLASS_RESYNC_PERIOD: '24h' } })
  const workers = [startWorker(), startWorker()]
  const gone: string[] = []
  for (const [i, name] of names.entries()) {
    await world.addNode(name)
    await world.addService(`s${i}`)
    const former = `s${i - 2}`
    if (i >= 2) {
      await world.api.delete(SERVICES, { namespace: 'default', name: former }, world.call)
      gone.push(former)
    }
    // Each time a little later in the middle of what that has set off.
    await delay(i * 60)
    if (i % 2 === 0) await world.redis.flush()
    else {
      await world.redis.kill9()
      await world.redis.restart()
    }
  }
  // At last all that is known of a change is in Redis, and nobody has begun to work on it.
  for (const one of workers) await one.end()
  await world.api.delete(NODES, { name: 'w0' }, world.call)
  await world.addService('last')
  await world.api.delete(SERVICES, { namespace: 'default', name: `s${ROUNDS - 1}` }, world.call)
  gone.push(`s${ROUNDS - 1}`)
  const owed = ['Service/default/last', `Service/default/s${ROUNDS - 1}`]
  await eventually(async () => {
    const waiting = (await world.redis.command('hkeys', '{windlass}:v1:work:default:why')) as string[]
    return owed.every((key) => waiting.includes(key))
  }, 'it is in Redis')
  await world.redis.flush()
  startWorker()

  const kept = ['last', ...names.map((_, i) => `s${i}`).filter((name) => !gone.includes(name))]
  await eventually(async () => {
    const nodes = await world.nodes()
    return nodes.length === ROUNDS - 1 && nodes.every(isInitialised)
  }, 'all nodes are initialised')
  await eventually(
    async () => `${(await world.services()).map(({ metadata }) => metadata.name).sort()}` === `${kept}`,
    'Services that were deleted are gone',
  )
  const targets = names.slice(1).map((_, i) => i + 2)
  await eventually(async () => {
    const { load_balancers } = await world.account()
    const whole = load_balancers.filter(
      (one) => `${one.targets.flatMap(({ server }) => server?.id ?? []).sort()}` === `${targets}`,
    )
    const addressed = (await world.services()).filter(({ status }) => status?.loadBalancer?.ingress?.length)
    return whole.length === kept.length && addressed.length === kept.length
  }, 'each Service is served by all nodes, and by none that went')
  const services = await world.services()
  const { load_balancers } = await world.account()
  t.same(
    load_balancers.map(({ labels }) => labels['hcloud-ccm/service-uid']).sort(),
    services.map(({ metadata }) => metadata.uid).sort(),
    'each Service has one load balancer, and there are no others',
  )
})
