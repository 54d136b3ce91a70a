import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { SERVICES } from '../../../src/kubernetes/resources.ts'
import { eventually, startWorld, type World } from '../../integration/world.ts'

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'
const OTHERS = 'example.com/backup'
const at = { namespace: 'default', name: 'web' }

async function open(t: Test): Promise<World> {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  return world
}

const finalizersOf = async (world: World) => (await world.services())[0]?.metadata.finalizers
const keep = (world: World) =>
  world.api.patch(SERVICES, at, { type: 'merge', body: { metadata: { finalizers: [OTHERS] } } }, world.call)

t.test('a Service that is being deleted is not touched, when it has nothing of ours', async (t) => {
  const world = await open(t)
  await world.addService('web')
  await keep(world)
  await world.api.delete(SERVICES, at, world.call)
  const before = (await world.services())[0]?.metadata.resourceVersion
  const all = world.start('all', { env: { WINDLASS_RESYNC_PERIOD: '1s' } })
  const looks = () => all.lines().filter(({ msg }) => msg === 'enqueued everything once more').length
  await eventually(async () => looks() >= 2, 'it was looked at')
  t.equal((await world.services())[0]?.metadata.resourceVersion, before)
  t.same((await world.account()).load_balancers, [])
})

t.test(
  'one that is deleted just before its finalizer is set gets none, no load balancer, and no failure',
  async (t) => {
    const world = await open(t)
    const server = /server: (\S+)/.exec(readFileSync(world.kubeconfigFor('all'), 'utf8'))?.[1]
    const fault = {
      match: { verb: 'patch', resource: 'services/status' },
      effect: { kind: 'delay', ms: 1500 },
      times: 1,
    }
    const all = world.start('all')
    await eventually(
      async () => all.lines().some(({ msg }) => msg === 'enqueued everything once more'),
      'it has looked at everything',
    )
    await fetch(`${server}/_sim/faults`, { method: 'POST', body: JSON.stringify(fault) })
    await world.addService('web')
    await keep(world)
    const writes = () => all.lines().filter(({ what }) => String(what).includes('patch Service default/web'))
    await eventually(async () => writes().length > 0, 'the finalizer is on its way')
    await world.api.delete(SERVICES, at, world.call)
    const ended = () => all.lines().filter(({ msg, key }) => msg === 'run ended' && key === 'Service/default/web')
    await eventually(async () => ended().length >= 2, 'the run is over, and that for the deletion too')
    t.same(await finalizersOf(world), [OTHERS])
    t.same((await world.account()).load_balancers, [])
    t.notOk(ended().some(({ outcome }) => outcome !== 'done'))
    t.notOk((await world.events()).some(({ type }) => type === 'Warning'))
  },
)

t.test('one that goes keeps the finalizers of others, and loses ours last', async (t) => {
  const world = await open(t)
  world.start('all')
  await world.addService('web')
  await eventually(async () => (await finalizersOf(world))?.includes(FINALIZER), 'it has ours')
  const body = { metadata: { finalizers: [OTHERS, FINALIZER] } }
  await world.api.patch(SERVICES, at, { type: 'merge', body }, world.call)
  await eventually(
    async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length,
    'the Service has an address',
  )
  world.hcloud.control.fault({ match: 'DELETE /load_balancers/{id}', kind: 'http', status: 503, times: 2 })
  await world.api.delete(SERVICES, at, world.call)
  const failed = await eventually(
    async () =>
      (await world.events()).find(
        ({ involvedObject, message }) => involvedObject.name === 'web' && message?.includes('could not be deleted'),
      ),
    'an Event says what it waits for',
  )
  t.match(failed, { type: 'Warning', reason: 'SyncLoadBalancerFailed' })
  await eventually(async () => `${await finalizersOf(world)}` === OTHERS, 'only theirs is left')
  t.same((await world.account()).load_balancers, [])
})
