import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { formatFaults } from '../../src/config/fault.ts'
import { loadSettings } from '../../src/config/load.ts'
import type { Command } from '../../src/config/setting.ts'

const BASE = { WINDLASS_REDIS_URL: 'redis://127.0.0.1:6379', KUBERNETES_SERVICE_HOST: '10.0.0.1' }
const HETZNER = { ...BASE, HCLOUD_TOKEN: 'h'.repeat(64) }
const CHERRY = { CHERRY_API_KEY: 'k', CHERRY_PROJECT_ID: '1', CHERRY_LOAD_BALANCER: 'metallb:///' }
const BOTH = { ...HETZNER, ...CHERRY }

async function placing(env: Record<string, string>, command: Command = 'all') {
  const loaded = await loadSettings({ command, flags: new Map(), env })
  return 'faults' in loaded ? formatFaults('', loaded.faults).trim() : loaded.settings.clusters[0]?.placing
}

t.test('each cloud has a class, and nobody has to choose where Services without one go', async (t) => {
  t.same(await placing(BOTH), {
    classes: { 'windlass.dev/hcloud': 'hcloud', 'windlass.dev/cherryservers': 'cherryservers' },
  })
  const named = {
    ...BOTH,
    WINDLASS_HCLOUD_LOAD_BALANCER_CLASS: 'hetzner',
    WINDLASS_CHERRY_LOAD_BALANCER_CLASS: 'example.com/metallb',
    WINDLASS_DEFAULT_LOAD_BALANCER: 'cherryservers',
  }
  const wanted = { classes: { hetzner: 'hcloud', 'example.com/metallb': 'cherryservers' }, unclassed: 'cherryservers' }
  t.same(await placing(named), wanted)
  t.match(await placing({ ...HETZNER, WINDLASS_DEFAULT_LOAD_BALANCER: 'none' }), { unclassed: 'none' })
})

t.test('a server tells by the same classes what is ours, and need not know the clouds', async (t) => {
  const env = {
    ...BASE,
    WINDLASS_WEBHOOK_KEYS: Buffer.alloc(24, 7).toString('base64'),
    WINDLASS_HCLOUD_LOAD_BALANCER_CLASS: 'h',
  }
  t.same(await placing(env, 'server'), { classes: { h: 'hcloud', 'windlass.dev/cherryservers': 'cherryservers' } })
})

t.test('what can not be meant is refused', async (t) => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ ...BOTH, WINDLASS_HCLOUD_LOAD_BALANCER_CLASS: 'a b' }, /HCLOUD_LOAD_BALANCER_CLASS.*no load balancer class/],
    [{ ...BOTH, WINDLASS_HCLOUD_LOAD_BALANCER_CLASS: '/a' }, /HCLOUD_LOAD_BALANCER_CLASS.*no load balancer class/],
    [
      { ...BOTH, WINDLASS_CHERRY_LOAD_BALANCER_CLASS: 'windlass.dev/hcloud' },
      /CHERRY_LOAD_BALANCER_CLASS.*a class of its own/,
    ],
    [{ ...BOTH, WINDLASS_DEFAULT_LOAD_BALANCER: 'cherry' }, /WINDLASS_DEFAULT_LOAD_BALANCER/],
    [{ ...HETZNER, WINDLASS_DEFAULT_LOAD_BALANCER: 'cherryservers' }, /not set up: set CHERRY_API_KEY/],
    [{ ...BASE, ...CHERRY, WINDLASS_DEFAULT_LOAD_BALANCER: 'hcloud' }, /not set up: set HCLOUD_TOKEN/],
    [
      { ...HETZNER, CHERRY_API_KEY: 'k', CHERRY_PROJECT_ID: '1', WINDLASS_DEFAULT_LOAD_BALANCER: 'cherryservers' },
      /no load balancers: set CHERRY_LOAD_BALANCER/,
    ],
    [
      { ...BOTH, HCLOUD_LOAD_BALANCERS_ENABLED: 'false', WINDLASS_DEFAULT_LOAD_BALANCER: 'hcloud' },
      /load balancers are off/,
    ],
  ]
  for (const [env, fault] of cases) {
    const said = await placing(env)
    t.match(said, fault)
    t.equal(String(said).split('\n').length, 1, 'one fault')
  }
})

t.test('clusters of one file may differ', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-placing-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'clusters.yaml')
  const cluster = (more: object) => ({
    kubeconfig: file,
    hcloud: { token: 'h'.repeat(64) },
    cherry: { apiKey: 'k', projectId: 1, loadBalancer: 'metallb:///' },
    ...more,
  })
  const env = { WINDLASS_REDIS_URL: BASE.WINDLASS_REDIS_URL, WINDLASS_CLUSTERS_FILE: file }
  const read = async (clusters: object) => {
    writeFileSync(file, JSON.stringify(clusters))
    const loaded = await loadSettings({ command: 'worker', flags: new Map(), env })
    return 'faults' in loaded
      ? formatFaults('', loaded.faults)
      : loaded.settings.clusters.map((one) => one.placing.unclassed)
  }
  t.same(await read({ a: cluster({ defaultLoadBalancer: 'cherryservers' }), b: cluster({}) }), [
    'cherryservers',
    undefined,
  ])
  t.match(
    await read({ a: cluster({ cherryLoadBalancerClass: 'windlass.dev/hcloud' }) }),
    /cherryLoadBalancerClass of cluster a/,
  )
})
