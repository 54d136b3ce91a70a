import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { eventually, HCLOUD_TOKEN, isInitialised, startWorld } from '../integration/world.ts'

t.test('a cluster whose kubeconfig is no good turns red, and the others are worked for', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  const keyFile = join(world.dir, 'keys')
  const tokenFile = join(world.dir, 'token')
  const broken = join(world.dir, 'broken.kubeconfig')
  const file = join(world.dir, 'clusters.yaml')
  writeFileSync(keyFile, world.env.WINDLASS_WEBHOOK_KEYS ?? '')
  writeFileSync(tokenFile, HCLOUD_TOKEN)
  writeFileSync(broken, 'apiVersion: v1\nkind: Config\ncurrent-context: nowhere\n')
  const cluster = (kubeconfig: string) => ({
    kubeconfig,
    webhookKeysFile: keyFile,
    hcloud: { tokenFile, endpoint: world.hcloud.apiUrl },
  })
  writeFileSync(file, stringify({ good: cluster(world.kubeconfigFor('all')), bad: cluster(broken) }))

  const own = {
    WINDLASS_CLUSTERS_FILE: file,
    WINDLASS_WEBHOOK_KEYS: '',
    HCLOUD_TOKEN: undefined,
    HCLOUD_ENDPOINT: undefined,
  }
  const env = { ...own, KUBECONFIG: undefined, HCLOUD_METADATA_ENDPOINT: undefined }
  const server = world.start('server', { env })
  const { host, port } = await server.logged('the server listens')
  const worker = world.start('worker', { env })
  world.start('forwarder', { args: ['--cluster=good'], env: { ...env, WINDLASS_SERVER_URL: `http://${host}:${port}` } })
  await world.addNode('w1')
  await eventually(
    async () => (await world.nodes()).every(isInitialised),
    'the node of the good cluster is initialised',
  )

  const probes = await worker.logged('probes are answered')
  const ready = await fetch(`http://127.0.0.1:${probes.port}/readyz`)
  t.equal(ready.status, 503)
  t.match(await ready.json(), { problems: [/^Cluster bad: .*nowhere/] })
})
