import t from 'tap'
import { SERVICES } from '../../src/kubernetes/resources.ts'
import { eventually, startWorld, type WindlassProcess } from './world.ts'

const CLASS = 'windlass.dev/hcloud'
const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'
const at = (name: string) => ({ namespace: 'default', name })

t.test('where only a class asks for a load balancer, Services without one are left to others', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const named = async (name: string) => (await world.services()).find(({ metadata }) => metadata.name === name)
  const addressed = (name: string) =>
    eventually(async () => (await named(name))?.status?.loadBalancer?.ingress?.[0]?.ip, `${name} has an address`)
  const runs = (all: WindlassProcess, name: string) =>
    all.lines().filter(({ msg, key }) => msg === 'run ended' && key === `Service/default/${name}`).length
  const looked = (all: WindlassProcess, name: string, before = 0) =>
    eventually(async () => runs(all, name) > before, `${name} was looked at`)
  const first = world.start('all')
  await world.addService('old')
  const address = await addressed('old')
  await first.end()

  const env = { WINDLASS_DEFAULT_LOAD_BALANCER: 'none' }
  const all = world.start('all', { env })
  const others = await world.addService('of-metallb')
  await world.addService('ours', { loadBalancerClass: CLASS })
  await addressed('ours')
  await looked(all, 'of-metallb')
  t.equal((await named('of-metallb'))?.metadata.resourceVersion, others.metadata.resourceVersion, 'nothing is written')
  t.equal((await world.account()).load_balancers.length, 2)

  await t.test('one that has a load balancer keeps it, also when nothing is remembered of it', async (t) => {
    await world.redis.flush()
    const body = [{ op: 'replace', path: '/spec/ports/0/port', value: 8080 }]
    await world.api.patch(SERVICES, at('old'), { type: 'json', body }, world.call)
    await eventually(
      async () =>
        (await world.account()).load_balancers.some(({ services }) =>
          services.some(({ listen_port }) => listen_port === 8080),
        ),
      'its listener follows',
    )
    t.equal(await addressed('old'), address)
    const plan = world.start('plan', { args: ['Service/default/of-metallb', 'Service/default/old'], env })
    t.equal(await plan.exited, 0)
    t.match(plan.output(), /left to others/)
  })

  await t.test('one that another controller has put the same finalizer on is none of ours', async (t) => {
    const before = runs(all, 'of-metallb')
    const body = { metadata: { finalizers: [FINALIZER] } }
    await world.api.patch(SERVICES, at('of-metallb'), { type: 'merge', body }, world.call)
    await looked(all, 'of-metallb', before)
    const marked = runs(all, 'of-metallb')
    await world.api.delete(SERVICES, at('of-metallb'), world.call)
    await looked(all, 'of-metallb', marked)
    t.same((await named('of-metallb'))?.metadata.finalizers, [FINALIZER])
  })

  await t.test('what is ours goes with its Service', async (t) => {
    for (const name of ['old', 'ours']) await world.api.delete(SERVICES, at(name), world.call)
    await eventually(async () => (await world.services()).length === 1, 'both are gone')
    t.same((await world.account()).load_balancers, [])
  })
})
