import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { eventually, HCLOUD_TOKEN, isInitialised, startWorld } from './world.ts'

const NEXT = 'n'.repeat(64)

interface Given {
  env: Record<string, string | undefined>
  put(token: string): void
}

function asFile(dir: string): Given {
  const file = join(dir, 'token')
  return {
    env: { HCLOUD_TOKEN: undefined, HCLOUD_TOKEN_FILE: file },
    put: (token) => writeFileSync(file, token),
  }
}

/** As a kubelet writes it: each version in a folder of its own, and a link that is turned. The variable stays what it was. */
function asMountedSecret(dir: string): Given {
  const mount = join(dir, 'credentials')
  let version = 0
  mkdirSync(mount)
  symlinkSync(join('..data', 'HCLOUD_TOKEN'), join(mount, 'HCLOUD_TOKEN'))
  return {
    env: { HCLOUD_TOKEN, WINDLASS_CREDENTIALS_DIR: mount },
    put(token) {
      version++
      mkdirSync(join(mount, `..${version}`))
      writeFileSync(join(mount, `..${version}`, 'HCLOUD_TOKEN'), token)
      symlinkSync(`..${version}`, join(mount, '..data_tmp'))
      renameSync(join(mount, '..data_tmp'), join(mount, '..data'))
    },
  }
}

for (const [how, give] of Object.entries({ 'its file': asFile, 'a mounted Secret': asMountedSecret }))
  t.test(`what failed while a token was refused goes on as soon as a good one is in ${how}`, (t) => goesOn(t, give))

async function goesOn(t: Test, give: (dir: string) => Given): Promise<void> {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: ['w1', 'w2'].map((name, i) => ({ id: i + 1, name })) })
  const { env, put } = give(world.dir)
  put(HCLOUD_TOKEN)
  // So that nothing is answered from what the first token had shown.
  const all = world.start('all', { env: { ...env, HCLOUD_SERVER_CACHE_MODE: 'off' } })
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

  const { port } = await all.logged('the server listens')
  const readiness = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`)
    return { status: answer.status, text: await answer.text() }
  }
  t.match(await readiness(), { status: 503, text: /Hetzner Cloud refuses the token/ })

  put(NEXT)
  await eventually(async () => (await world.nodes()).every(isInitialised), 'the node is initialised')
  await eventually(
    async () => (await world.services())[0]?.status?.loadBalancer?.ingress?.length,
    'the Service has an address',
  )
  t.match(await readiness(), { status: 200 })
  t.notMatch(all.output(), NEXT)
}
