import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { formatFaults } from '../../src/config/fault.ts'
import { loadSettings } from '../../src/config/load.ts'
import type { Command } from '../../src/config/setting.ts'

const KEY = Buffer.alloc(24, 7).toString('base64')
const TOKEN = 'h'.repeat(64)
/** All that every command needs, for the tests of anything else. */
const BASE = { WINDLASS_REDIS_URL: 'redis://127.0.0.1:6379', KUBERNETES_SERVICE_HOST: '10.0.0.1' }
const HETZNER = { ...BASE, HCLOUD_TOKEN: TOKEN }
const CHERRY = { ...BASE, CHERRY_API_KEY: 'cherry-key', CHERRY_PROJECT_ID: '87553' }

type Env = Record<string, string | undefined>

async function load(env: Env, flags: Record<string, string> = {}, command: Command = 'all') {
  const loaded = await loadSettings({ command, flags: new Map(Object.entries(flags)), env })
  if ('faults' in loaded) throw new Error(formatFaults('faults', loaded.faults))
  const [cluster] = loaded.settings.clusters
  const notices = formatFaults('', loaded.notices)
  return { ...loaded, cluster, hcloud: cluster?.clouds.hcloud, cherry: cluster?.clouds.cherry, notices }
}

/** The faults as printed. */
async function faults(env: Env, flags: Record<string, string> = {}, command: Command = 'all') {
  const loaded = await loadSettings({ command, flags: new Map(Object.entries(flags)), env })
  return 'faults' in loaded ? formatFaults('', loaded.faults).slice(1) : ''
}

/** Asserts that settings are refused, each time for one reason alone. */
async function refused(t: Test, env: Env, fault: RegExp, flags: Record<string, string> = {}, command: Command = 'all') {
  const text = await faults(env, flags, command)
  t.match(text, fault)
  t.equal(text.split('\n').length, 1, 'one fault')
}

t.test('all in one needs a Redis, a cluster and one cloud, and nothing else', async (t) => {
  const { settings, hcloud, notices } = await load(HETZNER)
  t.equal(notices, '')
  t.match(settings, {
    log: { level: 'info', format: 'json' },
    redis: { url: 'redis://127.0.0.1:6379', prefix: 'windlass' },
    server: { listen: { host: '127.0.0.1', port: 0 }, dashboard: undefined, metricsToken: undefined },
    worker: { concurrency: 32, untilIdle: false, graceMs: 25_000, resyncPeriodMs: 600_000 },
    clusters: [
      {
        id: 'default',
        kubernetes: { kubeconfig: undefined },
        webhookKeys: [],
        framework: {
          clusterCidrs: [],
          configureCloudRoutes: true,
          nodeMonitorPeriodMs: 5000,
          nodeStatusUpdateFrequencyMs: 300_000,
        },
      },
    ],
  })
  t.equal(settings.clusters[0]?.framework.controllers.size, 4)
  t.equal(settings.clusters[0]?.clouds.cherry, undefined)
  t.equal(hcloud?.token.read(), TOKEN)
  t.match(hcloud, {
    endpoint: 'https://api.hetzner.cloud/v1',
    addressFamily: 'ipv4',
    networkRoutesEnabled: false,
    zoneLabelEnabled: true,
    serverCacheMode: 'all',
    serverCacheMaxAgeMs: 10_000,
    metricsAddress: ':8233',
    robot: undefined,
    loadBalancers: { enabled: true, disableIpv6: false },
  })
  t.equal(hcloud?.loadBalancers.usesProxyProtocol, undefined, 'three states')
})

t.test('each command needs its own, and tells all that is missing at once', async (t) => {
  const missing: [Command, RegExp[]][] = [
    ['forwarder', [/KUBECONFIG is missing/, /WINDLASS_SERVER_URL is missing/, /WINDLASS_WEBHOOK_KEYS is missing/]],
    ['server', [/WINDLASS_REDIS_URL is missing/, /WINDLASS_WEBHOOK_KEYS is missing/]],
    [
      'worker',
      [/WINDLASS_REDIS_URL is missing/, /KUBECONFIG is missing/, /HCLOUD_TOKEN and CHERRY_API_KEY are missing/],
    ],
    ['all', [/WINDLASS_REDIS_URL is missing/, /KUBECONFIG is missing/, /HCLOUD_TOKEN and CHERRY_API_KEY are missing/]],
    ['plan', [/KUBECONFIG is missing/, /HCLOUD_TOKEN and CHERRY_API_KEY are missing/]],
    ['doctor', []],
  ]
  for (const [command, patterns] of missing) {
    const text = await faults({}, {}, command)
    for (const pattern of patterns) t.match(text, pattern, command)
    t.equal(text.split('\n').filter((line) => line !== '').length, patterns.length, `${command} has no other faults`)
  }
  const bare = await faults({}, {}, 'all')
  t.match(bare, /KUBECONFIG is missing .* In a Pod of the cluster none is needed/)
  t.match(bare, /Set HCLOUD_TOKEN for Hetzner, or CHERRY_API_KEY and CHERRY_PROJECT_ID for Cherry Servers/)
  const half = await faults({ ...BASE, HCLOUD_NETWORK: 'net', CHERRY_REGION_NAME: 'LT-Siauliai' })
  t.match(half, /HCLOUD_TOKEN is missing .*: all needs it for Hetzner\./)
  t.match(half, /CHERRY_API_KEY is missing .*: all needs it for Cherry Servers\./)
  t.match(half, /CHERRY_PROJECT_ID is missing .*: all needs it for Cherry Servers\./)
  const forwarder = await load(
    {
      WINDLASS_SERVER_URL: 'http://10.0.0.2:8080/',
      WINDLASS_WEBHOOK_KEYS: `${KEY},whsec_${KEY}`,
      KUBERNETES_SERVICE_HOST: 'x',
    },
    {},
    'forwarder',
  )
  t.same(forwarder.settings.forwarder, { serverUrl: 'http://10.0.0.2:8080', caFile: undefined, listen: undefined })
  t.same(forwarder.cluster?.webhookKeys, [KEY, `whsec_${KEY}`])
  const server = await load({ ...BASE, WINDLASS_WEBHOOK_KEYS: KEY, HCLOUD_DEBUG: 'maybe' }, {}, 'server')
  t.same(server.cluster?.clouds, {}, 'a server looks at no cloud')
  t.same(server.settings.server.listen, { host: '127.0.0.1', port: 8080 })
})

t.test('a flag wins over its variable, that over the file, that over the default', async (t) => {
  const config = join(
    t.testdir({ 'windlass.yaml': 'concurrency: 3\nhcloud: { endpoint: "https://file.example.org", debug: true }\n' }),
    'windlass.yaml',
  )
  const file = { ...HETZNER, WINDLASS_CONFIG: config }
  t.equal((await load(HETZNER)).settings.worker.concurrency, 32)
  t.equal((await load(file)).settings.worker.concurrency, 3)
  t.equal((await load({ ...file, WINDLASS_CONCURRENCY: '4' })).settings.worker.concurrency, 4)
  t.equal((await load({ ...file, WINDLASS_CONCURRENCY: '4' }, { concurrency: '5' })).settings.worker.concurrency, 5)
  t.equal(
    (await load({ ...file, WINDLASS_CONCURRENCY: '' })).settings.worker.concurrency,
    3,
    'an empty variable is none',
  )
  t.match((await load(file)).hcloud, { endpoint: 'https://file.example.org', debug: true })
  t.match((await load(file, { 'hcloud-endpoint': 'https://flag.example.org' })).hcloud, {
    endpoint: 'https://flag.example.org',
  })
})

t.test('what an empty Hetzner variable means', async (t) => {
  const { hcloud } = await load({
    ...HETZNER,
    HCLOUD_ENDPOINT: '',
    HCLOUD_NETWORK: '',
    HCLOUD_NETWORK_ROUTES_ENABLED: 'garbage is harmless without a network',
    HCLOUD_INSTANCES_ADDRESS_FAMILY: '',
    HCLOUD_METRICS_ADDRESS: '',
    HCLOUD_LOAD_BALANCERS_LOCATION: '',
    HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE: '',
    HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL: '',
    HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES: '',
    HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE: '',
    ROBOT_CACHE_TIMEOUT: '',
  })
  t.match(hcloud, { endpoint: 'https://api.hetzner.cloud/v1', addressFamily: 'ipv4', metricsAddress: ':8233' })
  t.equal(hcloud?.network, undefined)
  for (const name of [
    'HCLOUD_DEBUG',
    'HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK',
    'HCLOUD_INSTANCES_ZONE_LABEL_ENABLED',
    'HCLOUD_SERVER_CACHE_MODE',
    'HCLOUD_SERVER_CACHE_MAX_AGE',
    'HCLOUD_METRICS_ENABLED',
    'HCLOUD_LOAD_BALANCERS_ENABLED',
    'HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK',
    'HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL',
    'HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP',
    'ROBOT_ENABLED',
    'ROBOT_FORWARD_INTERNAL_IPS',
  ]) {
    await refused(t, { ...HETZNER, [name]: '' }, new RegExp(`${name} "" is`))
  }
  await refused(t, { ...HETZNER, HCLOUD_TOKEN: '' }, /HCLOUD_TOKEN is empty/)
})

t.test('a credential that a template left empty turns no cloud on beside another', async (t) => {
  const both = { ...BASE, HCLOUD_TOKEN: '', CHERRY_API_KEY: 'key', CHERRY_PROJECT_ID: '1' }
  t.match(await load(both), { hcloud: undefined, cherry: { projectId: 1 } })
  t.match(await load({ ...HETZNER, CHERRY_API_KEY: '', CHERRY_PROJECT_ID: '' }), { hcloud: {}, cherry: undefined })
  await refused(t, { ...BASE, HCLOUD_TOKEN: '', CHERRY_API_KEY: '' }, /HCLOUD_TOKEN is empty/)
})

t.test('Hetzner settings come to what they mean', async (t) => {
  const { hcloud, notices } = await load({
    ...HETZNER,
    HCLOUD_NETWORK: 'net',
    HCLOUD_SERVER_CACHE_TTL: '3s',
    HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE: ' Least_Connections ',
    HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL: 'false',
    HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE: '10.0.5.7/24',
    HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL: '21s',
    HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_TIMEOUT: '0s',
    HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES: '0',
    HCLOUD_METRICS_ENABLED: 'f',
  })
  t.match(hcloud, { network: 'net', networkRoutesEnabled: true, serverCacheMaxAgeMs: 3000 })
  t.same(hcloud?.loadBalancers, {
    enabled: true,
    location: undefined,
    networkZone: undefined,
    type: undefined,
    algorithmType: 'least_connections',
    disablePublicNetwork: undefined,
    usesProxyProtocol: false,
    disablePrivateIngress: false,
    disableIpv6: false,
    usePrivateIp: false,
    privateSubnetIpRange: '10.0.5.0/24',
    healthCheckIntervalMs: 21_000,
    healthCheckTimeoutMs: undefined,
    healthCheckRetries: undefined,
  })
  t.equal(hcloud?.metricsAddress, undefined)
  t.match(notices, /HCLOUD_SERVER_CACHE_TTL is now called HCLOUD_SERVER_CACHE_MAX_AGE/)
  t.match((await load({ ...HETZNER, HCLOUD_TOKEN: 'short' })).notices, /HCLOUD_TOKEN has 5 characters/)
})

t.test('Robot, with credentials, without, and with half of them', async (t) => {
  const robot = async (env: Env) => (await load({ ...HETZNER, ROBOT_ENABLED: 'true', ...env })).hcloud?.robot
  t.match(await robot({}), {
    user: undefined,
    password: undefined,
    endpoint: 'https://robot-ws.your-server.de',
    cacheTimeoutMs: 300_000,
    rateLimitWaitTimeMs: 0,
    forwardInternalIps: true,
  })
  const whole = await robot({
    ROBOT_USER: 'u',
    ROBOT_PASSWORD: 'p',
    ROBOT_CACHE_TIMEOUT: '-1s',
    ROBOT_RATE_LIMIT_WAIT_TIME: '3s',
  })
  t.same([whole?.user?.read(), whole?.password?.read()], ['u', 'p'])
  t.match(whole, { cacheTimeoutMs: -1000, rateLimitWaitTimeMs: 3000 })
  t.match(await robot({ ROBOT_CACHE_TIMEOUT: '0s' }), { cacheTimeoutMs: 300_000 })
  await refused(
    t,
    { ...HETZNER, ROBOT_ENABLED: 'true', ROBOT_USER: 'robot' },
    /ROBOT_USER and ROBOT_PASSWORD belong together/,
  )
  t.equal((await load({ ...HETZNER, ROBOT_USER: 'robot' })).hcloud?.robot, undefined, 'not looked at while it is off')
  await refused(t, { ...HETZNER, ROBOT_ENABLED: 'true', HCLOUD_NETWORK: 'net' }, /ROBOT_ENABLED excludes routes/)
  t.ok(await robot({ HCLOUD_NETWORK: 'net', HCLOUD_NETWORK_ROUTES_ENABLED: 'false' }))
})

t.test('wrong Hetzner settings are refused by name', async (t) => {
  const cases: [string, string, RegExp][] = [
    ['HCLOUD_INSTANCES_ADDRESS_FAMILY', 'both', /ADDRESS_FAMILY "both" is unknown, write ipv4, ipv6 or dualstack/],
    ['HCLOUD_INSTANCES_ADDRESS_FAMILY', 'IPv4', /ADDRESS_FAMILY "IPv4" is unknown/],
    ['HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE', 'fastest', /"fastest" is unknown, write round_robin or least_connections/],
    ['HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL', '10 seconds', /"10 seconds" is not a duration/],
    ['HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE', '10.0.0.0', /"10.0.0.0" is not a CIDR/],
    ['HCLOUD_METRICS_ADDRESS', '8233', /"8233" is not a listen address/],
    ['HCLOUD_ENDPOINT', 'https://u:planted@example.org', /"https:\/\/\*\*\*@example.org" holds a user or password/],
  ]
  for (const [name, text, fault] of cases) await refused(t, { ...HETZNER, [name]: text }, fault)
  await refused(
    t,
    { ...HETZNER, HCLOUD_LOAD_BALANCERS_LOCATION: 'fsn1', HCLOUD_LOAD_BALANCERS_NETWORK_ZONE: 'eu-central' },
    /LOCATION and HCLOUD_LOAD_BALANCERS_NETWORK_ZONE exclude each other/,
  )
  await refused(t, { ...HETZNER, HCLOUD_TOKEN: 'planted\n' }, /HCLOUD_TOKEN \(not shown\) contains a line break/)
})

t.test('secrets come from files too, and the plain variable wins', async (t) => {
  const dir = t.testdir({ token: `${TOKEN}\n`, empty: '', keys: `${KEY}\n`, redis: 'p@ss\n' })
  const fromFile = await load({ ...BASE, HCLOUD_TOKEN_FILE: join(dir, 'token') })
  t.equal(fromFile.hcloud?.token.read(), TOKEN)
  const both = await load({ ...HETZNER, HCLOUD_TOKEN_FILE: join(dir, 'nowhere') })
  t.equal(both.hcloud?.token.read(), TOKEN, 'the file is not even looked for')
  await refused(
    t,
    { ...BASE, HCLOUD_TOKEN: '', HCLOUD_TOKEN_FILE: join(dir, 'token') },
    /HCLOUD_TOKEN is empty and wins over HCLOUD_TOKEN_FILE/,
  )
  await refused(
    t,
    { ...BASE, HCLOUD_TOKEN_FILE: join(dir, 'nowhere') },
    /HCLOUD_TOKEN_FILE ".*nowhere" can't be read \(ENOENT\)/,
  )
  await refused(t, { ...BASE, HCLOUD_TOKEN_FILE: join(dir, 'empty') }, /HCLOUD_TOKEN_FILE ".*empty" is empty/)
  await refused(t, { ...BASE, HCLOUD_TOKEN_FILE: 'planted' }, /HCLOUD_TOKEN_FILE \(not shown\)/)
  const flag = await load(HETZNER, { 'hcloud-token-file': join(dir, 'token'), 'webhook-keys-file': join(dir, 'keys') })
  t.equal(flag.hcloud?.token.name, '--hcloud-token-file', 'a flag wins over a variable')
  t.same(flag.cluster?.webhookKeys, [KEY])
  const redis = await load({ ...HETZNER, WINDLASS_REDIS_PASSWORD_FILE: join(dir, 'redis') })
  t.equal(redis.settings.redis.url, 'redis://:p%40ss@127.0.0.1:6379')
})

t.test('Cherry settings come from the environment', async (t) => {
  const { cherry } = await load({
    ...CHERRY,
    CHERRY_API_URL: 'http://127.0.0.1:1234/v1/',
    CHERRY_LOAD_BALANCER: 'kube-vip://',
  })
  t.equal(cherry?.apiKey.read(), 'cherry-key')
  t.match(cherry, {
    projectId: 87553,
    apiUrl: 'http://127.0.0.1:1234/v1',
    loadBalancer: 'kube-vip://',
    apiServerPort: 0,
    fipHealthCheckUseHostIp: false,
    annotations: {
      localAsn: 'cherryservers.com/bgp-peers-{{n}}-node-asn',
      multiHop: 'cherryservers.com/bgp-peers-{{n}}-peer-multi-hop',
      fipRegion: 'cherryservers.com/fip-region',
    },
  })
  t.equal(cherry?.bgpNodeSelector, undefined)
})

t.test('Cherry settings come from its JSON file, below the environment', async (t) => {
  const path = join(
    t.testdir({
      'cloud-sa.json': JSON.stringify({
        apikey: 'from-file',
        projectID: 87553,
        Region: 'NL-Amsterdam',
        loadbalancer: 'empty://?ip-annotation=example.org/ip',
        fipTag: 'role=control-plane',
        apiServerPort: 443,
        bgpNodeSelector: 'bgp=yes',
        fipHealthCheckUseHostIP: true,
        annotationPeerASN: 'example.org/{{n}}-asn',
        'base-url': 'https://other.example.org/v1/',
        annotationPeerASNs: 'no such key',
      }),
    }),
    'cloud-sa.json',
  )
  const { cherry, notices } = await load({ ...BASE, CHERRY_CLOUD_CONFIG: path })
  t.equal(cherry?.apiKey.read(), 'from-file')
  t.match(cherry, {
    projectId: 87553,
    region: 'NL-Amsterdam',
    fipTag: 'role=control-plane',
    apiServerPort: 443,
    bgpNodeSelector: 'bgp=yes',
    fipHealthCheckUseHostIp: true,
    apiUrl: 'https://other.example.org/v1',
    annotations: { peerAsn: 'example.org/{{n}}-asn' },
  })
  t.match(notices, /"annotationPeerASNs" in .* is no setting/)
  t.match(notices, /base-url in .* takes effect; the replaced controller did not look at it/)
  const env = { ...BASE, CHERRY_API_KEY: 'right', CHERRY_REGION_NAME: '', CHERRY_API_SERVER_PORT: '0' }
  const mixed = (await load(env, { 'cloud-config': path })).cherry
  t.equal(mixed?.apiKey.read(), 'right')
  t.match(mixed, { region: 'NL-Amsterdam', apiServerPort: 0 }, 'an empty variable counts as none, a zero does not')
})

t.test('what the replaced controller let pass goes on, and is told', async (t) => {
  const { cherry, notices } = await load({
    ...CHERRY,
    CHERRY_LOAD_BALANCER: 'metallb://lb-system',
    CHERRY_ANNOTATION_LOCAL_ASN: 'example.org/asn',
    CHERRY_ANNOTATION_PEER_IP: 'example.org/peer',
  })
  t.match(cherry?.annotations, { localAsn: 'example.org/asn', peerIp: 'example.org/peer' })
  t.match(notices, /CHERRY_LOAD_BALANCER has "lb-system" where a host stands.*: the namespace is metallb-system/)
  t.match(notices, /CHERRY_ANNOTATION_PEER_IP lacks \{\{n\}\}/)
  t.notMatch(notices, /CHERRY_ANNOTATION_LOCAL_ASN/)
})

t.test('wrong Cherry settings are refused by name', async (t) => {
  const cases: [string, string, RegExp][] = [
    ['CHERRY_PROJECT_ID', 'lab', /CHERRY_PROJECT_ID "lab" is not a whole number/],
    ['CHERRY_PROJECT_ID', '0', /CHERRY_PROJECT_ID "0" is out of range/],
    ['CHERRY_PROJECT_ID', '', /CHERRY_PROJECT_ID is missing/],
    ['CHERRY_API_SERVER_PORT', 'https', /"https" is not a whole number/],
    ['CHERRY_FIP_HEALTH_CHECK_USE_HOST_IP', 'maybe', /"maybe" is not a boolean/],
    ['CHERRY_LOAD_BALANCER', 'metallb://%zz', /"metallb:\/\/%zz" is not a URL/],
    ['CHERRY_LOAD_BALANCER', 'haproxy://', /"haproxy:\/\/" has an unknown scheme/],
    ['CHERRY_LOAD_BALANCER', 'metallb:///?bgp-peer-mode=bird', /unknown bgp-peer-mode/],
    ['CHERRY_BGP_NODE_SELECTOR', 'a in b)', /"a in b\)" is not a label selector/],
    ['CHERRY_ANNOTATION_PEER_IP', '{{n}}/a/b', /is no key that an annotation can have/],
    ['CHERRY_ANNOTATION_FIP_REGION', 'a/b/c', /is no key that an annotation can have/],
    ['CHERRY_API_KEY', '', /CHERRY_API_KEY is missing/],
  ]
  for (const [name, text, fault] of cases) await refused(t, { ...CHERRY, [name]: text }, fault)
  const metallb = { ...CHERRY, CHERRY_LOAD_BALANCER: 'metallb:///', CHERRY_BGP_NODE_SELECTOR: 'rank>2' }
  await refused(t, metallb, /CHERRY_BGP_NODE_SELECTOR has > or </)
  const dir = t.testdir({
    'broken.json': 'apiKey: planted',
    'list.json': '[]',
    'wrong.json': '{"region": {"a": 1}, "fipTag": null}',
    'quoted.json': '{"projectID": "87553"}',
    'word.json': '{"fipHealthCheckUseHostIP": "true"}',
  })
  const config = (name: string) => ({ ...CHERRY, CHERRY_CLOUD_CONFIG: join(dir, name) })
  await refused(t, config('broken.json'), /CHERRY_CLOUD_CONFIG ".*broken.json" is not valid JSON/)
  t.notMatch(await faults(config('broken.json')), /planted/)
  t.notMatch(await faults({ ...BASE, CHERRY_CLOUD_CONFIG: join(dir, 'broken.json') }), /missing/, 'it may be in there')
  await refused(t, { ...CHERRY, CHERRY_CLOUD_CONFIG: '/dev/zero' }, /can't be read \(more than 8 MiB\)/)
  await refused(t, config('list.json'), /does not hold keys and values/)
  await refused(t, config('wrong.json'), /region in .*wrong.json is not text/)
  await refused(t, config('quoted.json'), /projectID in .*quoted.json is not a number, write it without quotes/)
  await refused(t, config('word.json'), /fipHealthCheckUseHostIP in .*word.json is neither true nor false/)
  await refused(t, config('nowhere.json'), /can't be read \(ENOENT\)/)
})

t.test('credentials in a directory win over their variables, and what is not there takes nothing away', async (t) => {
  const next = 'n'.repeat(64)
  const dir = t.testdir({
    good: { HCLOUD_TOKEN: `${next}\n`, CHERRY_API_KEY: '', HCLOUD_NETWORK: 'a', WINDLASS_REDIS_URL: 'x' },
    odd: { HCLOUD_TOKEN: { 'a folder': '' } },
  })
  const within = (name: string) => ({ ...HETZNER, WINDLASS_CREDENTIALS_DIR: join(dir, name) })
  const { settings, hcloud, cherry } = await load({ ...CHERRY, ...within('good') })
  t.equal(hcloud?.token.read(), next)
  t.equal(cherry?.apiKey.read(), 'cherry-key')
  t.equal(settings.redis.url, BASE.WINDLASS_REDIS_URL, 'other secrets are not looked for')
  t.equal(hcloud?.network, undefined)
  await refused(t, within('odd'), /HCLOUD_TOKEN in .* can't be read \(EISDIR\)/)
  await refused(t, within('none'), /WINDLASS_CREDENTIALS_DIR ".*none" can't be read \(ENOENT\)/)
})

t.test('which clouds are on', async (t) => {
  const both = await load({ ...HETZNER, ...CHERRY })
  t.ok(both.hcloud)
  t.ok(both.cherry)
  await refused(t, CHERRY, /HCLOUD_TOKEN is missing/, { 'cloud-provider': 'hcloud' })
  await refused(t, HETZNER, /"cherryserver" is unknown, the nearest is cherryservers/, {
    'cloud-provider': 'cherryserver',
  })
  const half = await load({ ...HETZNER, CHERRY_PROJECT_ID: '5' })
  t.equal(half.cherry, undefined)
  t.match(half.notices, /CHERRY_PROJECT_ID is not used: without CHERRY_API_KEY that cloud is off/)
  const text = await faults({ ...BASE, HCLOUD_DEBUG: 'maybe' })
  t.match(text, /HCLOUD_TOKEN is missing/, 'anything of a cloud tells that it was meant')
  t.match(text, /HCLOUD_DEBUG "maybe"/)
  const ignored = await load(HETZNER, { 'cloud-provider': 'hcloud', 'cloud-config': '/nowhere' })
  t.match(ignored.notices, /--cloud-config is not read/)
})

t.test('flags of the framework take effect, or tell why not', async (t) => {
  const { cluster, notices } = await load(HETZNER, {
    controllers: '*,-route',
    'cluster-cidr': '10.244.0.0/16,fd00:10::/48',
    'node-monitor-period': '1s',
    'configure-cloud-routes': 'false',
    'leader-elect': 'false',
    'allow-untagged-cloud': 'true',
  })
  t.match(cluster?.framework, {
    clusterCidrs: ['10.244.0.0/16', 'fd00:10::/48'],
    nodeMonitorPeriodMs: 1000,
    configureCloudRoutes: false,
  })
  t.notOk(cluster?.framework.controllers.has('node-route-controller'))
  t.match(notices, /--leader-elect has no effect: jobs have one run at a time/)
  t.match(notices, /--allow-untagged-cloud has no effect: the replaced controllers make nothing of it either/)
  await refused(t, HETZNER, /--node-monitor-period "0s" is too short/, { 'node-monitor-period': '0s' })
  await refused(t, HETZNER, /--controllers "\*,-rout" names an unknown controller.*nearest is route/, {
    controllers: '*,-rout',
  })
})

t.test('how the cluster is reached', async (t) => {
  const dir = t.testdir({ a: '', b: '' })
  const { cluster } = await load({ ...HETZNER, KUBECONFIG: `${dir}/a:${dir}/b` }, { master: 'https://10.1.1.1:6443/' })
  t.same(cluster?.kubernetes, {
    kubeconfig: [`${dir}/a`, `${dir}/b`],
    context: undefined,
    server: 'https://10.1.1.1:6443',
  })
  await refused(t, HETZNER, /KUBECONFIG "\/nowhere" names no file that can be read \(ENOENT\)/, {
    kubeconfig: '/nowhere',
  })
})

t.test('certificate authorities are looked at', async (t) => {
  const dir = t.testdir({ good: '-----BEGIN CERTIFICATE-----', bad: 'x' })
  t.equal((await load({ ...HETZNER, WINDLASS_REDIS_CA_FILE: `${dir}/good` })).settings.redis.caFile, `${dir}/good`)
  await refused(
    t,
    { ...HETZNER, WINDLASS_REDIS_CA_FILE: `${dir}/bad` },
    /WINDLASS_REDIS_CA_FILE ".*bad" holds no PEM certificate/,
  )
})

t.test('a variable with a slip is told, one that Kubernetes makes of a Service is not', async (t) => {
  const { notices } = await load({
    ...HETZNER,
    HCLOUD_NETWRK: 'net',
    WINDLASS_SERVER_PORT: 'tcp://10.0.0.1:80',
    WINDLASS_REDIS_SERVICE_HOST: 'x',
  })
  t.equal(notices.trim(), 'HCLOUD_NETWRK is no setting, the nearest is HCLOUD_NETWORK')
  const text = await faults({ ...BASE, HCLOUD_TOKNE: 'planted', HCLOUD_DEBUG: 'true' })
  t.match(text, /HCLOUD_TOKEN is missing[\s\S]*HCLOUD_TOKNE is no setting, the nearest is HCLOUD_TOKEN/)
  t.notMatch(text, 'planted')
})

t.test('many clusters stand in one file', async (t) => {
  const dir = t.testdir({ kubeconfig: '', token: TOKEN, keys: KEY })
  const file = join(dir, 'clusters.yaml')
  writeFileSync(
    file,
    `
prod:
  kubeconfig: ${dir}/kubeconfig
  context: prod
  webhookKeysFile: ${dir}/keys
  framework: { controllers: [service, route], cluster-cidr: 10.244.0.0/16, nodeMonitorPeriod: 2s }
  hcloud: { tokenFile: ${dir}/token, HCLOUD_NETWORK: net, loadBalancersLocation: fsn1, ROBOT_ENABLED: false, debug: }
lab:
  kubeconfig: ${dir}/kubeconfig
  webhookKeys: [${KEY}, whsec_${KEY}]
  cherry: { apiKey: 0123, projectID: 87553, region: LT-Siauliai, base-url: "http://127.0.0.1/v1" }
`,
  )
  const { settings } = await load(
    { WINDLASS_REDIS_URL: 'redis://a', WINDLASS_CLUSTERS_FILE: file },
    { 'hcloud-endpoint': 'http://127.0.0.1:1' },
  )
  const [prod, lab] = settings.clusters
  t.match(prod, {
    id: 'prod',
    kubernetes: { kubeconfig: [`${dir}/kubeconfig`], context: 'prod' },
    webhookKeys: [KEY],
    framework: { clusterCidrs: ['10.244.0.0/16'], nodeMonitorPeriodMs: 2000 },
    clouds: {
      hcloud: { network: 'net', endpoint: 'http://127.0.0.1:1', loadBalancers: { location: 'fsn1' } },
      cherry: undefined,
    },
  })
  t.same([...(prod?.framework.controllers ?? [])], ['service-lb-controller', 'node-route-controller'])
  t.equal(prod?.clouds.hcloud?.token.read(), TOKEN)
  t.equal(prod?.clouds.hcloud?.metricsAddress, undefined, 'two clusters can’t share the default')
  t.match(lab, {
    id: 'lab',
    webhookKeys: [KEY, `whsec_${KEY}`],
    clouds: { cherry: { projectId: 87553, region: 'LT-Siauliai' } },
  })
  t.equal(lab?.clouds.cherry?.apiKey.read(), '0123', 'a secret stays as it was written')

  const set = {
    WINDLASS_REDIS_URL: 'redis://a',
    WINDLASS_CLUSTERS_FILE: file,
    HCLOUD_TOKEN: 'planted',
    KUBECONFIG: '/ambient',
  }
  await refused(t, set, /HCLOUD_TOKEN is set beside a file of clusters/)
})

t.test('faults in files name the place', async (t) => {
  const dir = t.testdir({
    'clusters.yaml': `
Prod: { webhookKeys: ${KEY}, hcloud: { tokn: planted, token: ${TOKEN}, debug: maybe } }
lab: { kubeconfg: /x, webhookKeys: planted }
dev: text
bare: { kubeconfig: /nowhere }
`,
    'windlass.yaml': 'redisUr: redis://planted\nlogLevel: loud\nframework: text\n',
    'broken.yaml': 'a: [planted\nb: "',
    'both.yaml': 'clusters: { a: { cherry: {} } }\nhcloud: {}\nkubeconfig: /x\n',
  })
  const many = await faults({ WINDLASS_REDIS_URL: 'redis://a', WINDLASS_CLUSTERS_FILE: join(dir, 'clusters.yaml') })
  for (const line of [
    /cluster Prod in .* is not a DNS label/,
    /hcloud.tokn of cluster Prod in .* is no setting, the nearest is token/,
    /hcloud.debug of cluster Prod in .* "maybe" is not a boolean/,
    /kubeconfg of cluster lab in .* is no setting, the nearest is kubeconfig/,
    /webhookKeys of cluster lab in .* \(not shown\) is not base64/,
    /cluster dev in .* does not hold keys and values/,
    /cluster bare in .* has no cloud/,
    /kubeconfig of cluster bare in .* "\/nowhere" names no file/,
  ]) {
    t.match(many, line)
  }
  t.notMatch(many, /planted/)
  const one = await faults({ ...HETZNER, WINDLASS_CONFIG: join(dir, 'windlass.yaml') })
  t.match(one, /redisUr in .* is no setting, the nearest is redisUrl/)
  t.match(one, /logLevel in .* "loud" is unknown/)
  t.match(one, /framework in .* does not hold keys and values/)
  const broken = await faults({ ...HETZNER, WINDLASS_CONFIG: join(dir, 'broken.yaml') })
  t.match(broken, /WINDLASS_CONFIG ".*broken.yaml" is not valid YAML at line \d+, column \d+/)
  t.notMatch(one + broken, /planted/)
  const both = await faults({ WINDLASS_REDIS_URL: 'redis://a', WINDLASS_CONFIG: join(dir, 'both.yaml') })
  t.match(both, /hcloud in .*both.yaml belongs to one cluster/)
  t.match(both, /kubeconfig in .*both.yaml is set beside a file of clusters/)
  t.match(both, /cherry.apiKey of cluster a in .*both.yaml is missing/)
})

t.test('a key that stands in the wrong block is told where it belongs, and one setting twice is a fault', async (t) => {
  const dir = t.testdir({
    'top.yaml': `HCLOUD_TOKEN: planted
cluster-cidr: 10.0.0.0/8
projectId: 5
hcloud: { token: ${'planted'.repeat(10)}, kubeconfig: /x, cluster-cidr: 10.0.0.0/8, redisUrl: 'redis://a' }
`,
    'clusters.yaml': `a: { logLevel: debug, hcloud: { token: ${'planted'.repeat(10)} } }\n`,
    'twice.yaml': `hcloud: { token: ${'p'.repeat(64)}, HCLOUD_TOKEN: ${'q'.repeat(64)}, network: a, HCLOUD_NETWORK: b }\n`,
  })
  const top = await faults({ ...BASE, WINDLASS_CONFIG: join(dir, 'top.yaml') })
  for (const line of [
    /HCLOUD_TOKEN in .*top.yaml is no setting here, it belongs into the block hcloud/,
    /cluster-cidr in .*top.yaml is no setting here, it belongs into the block framework/,
    /projectId in .*top.yaml is no setting here, it belongs into the block cherry/,
    /hcloud.kubeconfig in .*top.yaml is no setting here, it belongs to the cluster, outside of its blocks/,
    /hcloud.cluster-cidr in .*top.yaml is no setting here, it belongs into the block framework/,
    /hcloud.redisUrl in .*top.yaml is no setting here, it belongs to the process/,
  ])
    t.match(top, line)
  t.match(
    await faults({ ...BASE, WINDLASS_CLUSTERS_FILE: join(dir, 'clusters.yaml') }),
    /logLevel of cluster a in .* belongs to the process: set its variable or flag/,
  )
  const twice = await faults({ ...BASE, WINDLASS_CONFIG: join(dir, 'twice.yaml') })
  t.match(twice, /hcloud.HCLOUD_TOKEN in .* is the same setting as hcloud.token in .*, keep one of them/)
  t.match(twice, /hcloud.HCLOUD_NETWORK in .* is the same setting as hcloud.network/)
  t.notMatch(top + twice, /planted|pppp|qqqq/)
})

t.test('feature gates that Windlass does not have are taken and told', async (t) => {
  const gates = (text: string) => load(HETZNER, { 'feature-gates': text })
  t.match((await gates('Foo=true')).notices, /--feature-gates has no effect for Foo: Windlass has no such gate/)
  t.notMatch((await gates('CloudControllerManagerWatchBasedRoutesReconciliation=true')).notices, 'feature-gates')
})

t.test('nothing prints a secret, whatever prints the settings', async (t) => {
  const planted = (name: string) => Buffer.from(`planted ${name} planted planted`).toString('base64')
  const names = ['hcloud', 'robot', 'cherry', 'dashboard', 'metrics', 'redis', 'webhook'].map(planted)
  const [hcloud, robot, cherry, dashboard, metrics, redis, webhook] = names
  const loaded = await load({
    ...CHERRY,
    CHERRY_API_KEY: cherry,
    HCLOUD_TOKEN: hcloud,
    ROBOT_ENABLED: 'true',
    ROBOT_USER: 'u',
    ROBOT_PASSWORD: robot,
    WINDLASS_DASHBOARD_PASSWORD: dashboard,
    WINDLASS_METRICS_TOKEN: metrics,
    WINDLASS_REDIS_URL: `redis://:${encodeURIComponent(redis ?? '')}@127.0.0.1`,
    WINDLASS_WEBHOOK_KEYS: webhook,
  })
  t.equal(loaded.settings.server.dashboard?.password, dashboard)
  t.equal(loaded.settings.server.metricsToken, metrics)
  t.same(loaded.cluster?.webhookKeys, [webhook])
  const printed = [
    JSON.stringify(loaded),
    inspect(loaded, { depth: null, showHidden: true }),
    inspect(loaded.settings.clusters, { depth: null }),
    JSON.stringify(loaded.settings.server.dashboard),
    inspect({ ...loaded.settings.redis, and: { ...loaded.settings.server } }),
    JSON.stringify({ ...loaded.cluster, copied: true }),
    loaded.notices,
  ].join('\n')
  for (const secret of names) {
    t.notOk(printed.includes(secret) || printed.includes(encodeURIComponent(secret)), 'not in what is printed')
  }
  t.match(JSON.stringify(loaded.settings.server), /"metricsToken":"\*\*\*"/)
})
