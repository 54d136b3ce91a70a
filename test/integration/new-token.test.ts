import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eventually, HCLOUD_TOKEN, isInitialised, startWorld } from './world.ts'

const NEXT = 'n'.repeat(64)

t.test('what failed while a token was refused goes on as soon as a good one is in its file', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: ['w1', 'w2'].map((name, i) => ({ id: i + 1, name })) })
  const file = join(world.dir, 'token')
  writeFileSync(file, HCLOUD_TOKEN)
  // So that nothing is answered from what the first token had shown.
  const env = { HCLOUD_TOKEN: undefined, HCLOUD_TOKEN_FILE: file, HCLOUD_SERVER_CACHE_MODE: 'off' }
  const all = world.start('all', { env })
  await world.addNode('w1')
  await eventually(async () => (await world.nodes()).some(isInitialised), 'the first node is initialised')

  world.hcloud.control.mutate({ tokens: [{ token: HCLOUD_TOKEN, delete: true }, { token: NEXT }] })
  await world.addNode('w2')
  await world.addService('web')
  const refused = (key: string) =>
    eventually(
      async () =>
        all.lines().some((line) => line.msg === 'run ended' && line.key === key && line.outcome === 'permanent'),
      `${key} fails for good`,
    )
  await refused('Node/w2')
  await refused('Service/default/web')
  const told = async (kind: string) =>
    (await world.events()).some(
      ({ involvedObject, message }) => involvedObject.kind === kind && message?.includes('check HCLOUD_TOKEN'),
    )
  await eventually(async () => (await told('Node')) && (await told('Service')), 'both say what to do')

  writeFileSync(file, NEXT)
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the node is initialised')
  await eventually(
    async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length,
    'the Service has an address',
  )
  t.notMatch(all.output(), NEXT)
})
