import t from 'tap'
import { parseCherryLoadBalancer } from '../../src/config/cherry-load-balancer.ts'
import { parseControllers } from '../../src/config/controllers.ts'
import { parseRedisUrl, withPassword } from '../../src/config/redis-url.ts'
import { parseWebhookKeys } from '../../src/config/webhook-keys.ts'

t.test('controllers are switched as by the framework', async (t) => {
  const all = [
    'cloud-node-controller',
    'cloud-node-lifecycle-controller',
    'service-lb-controller',
    'node-route-controller',
  ]
  const cases: [string, string[]][] = [
    ['*', all],
    ['*,-node-route-controller', all.slice(0, 3)],
    ['-route,*', all.slice(0, 3)],
    ['service', ['service-lb-controller']],
    ['service, cloud-node', ['cloud-node-controller', 'service-lb-controller']],
    ['-service', []],
    ['-service,service,*', all.filter((name) => name !== 'service-lb-controller')],
    ['service,-service-lb-controller', ['service-lb-controller']],
  ]
  for (const [text, names] of cases) {
    const parsed = parseControllers(text)
    t.same('value' in parsed && [...parsed.value], names, text)
  }
  t.match(parseControllers('*,-servce'), { fault: /unknown controller.*nearest is service/ })
  t.match(parseControllers('Service'), { fault: /nearest is service/ }, 'letters have one case')
  t.match(parseControllers('frobnicate'), { fault: /write \* or cloud-node-controller/ })
})

t.test('Redis addresses', async (t) => {
  for (const url of [
    'redis://127.0.0.1:6379',
    'redis://:word@redis',
    'redis://user:w%40rd@redis:6379/3',
    'rediss://[::1]:6380/',
    'redis+sentinel://a:26379,b:26379/mymaster',
    'rediss+sentinel://user:word@a,b:1,[::1]:26379/m',
  ]) {
    t.same(parseRedisUrl(url), { value: url }, url)
  }
  const bad: [string, RegExp][] = [
    ['redis+cluster://a:6379', /Redis Cluster/],
    ['rediss+cluster://a:6379,b:6379', /Redis Cluster/],
    ['redis://a:6379,b:6379', /several hosts/],
    ['redis+sentinel://a:26379', /master's name/],
    ['redis+sentinel://a:26379/', /master's name/],
    ['http://a', /unknown scheme/],
    ['a:6379', /not a Redis address/],
    ['redis://', /host/],
    ['redis://a:99999', /host/],
    ['redis://a/x', /database/],
    ['redis://a?db=1', /query/],
  ]
  for (const [url, fault] of bad) t.match(parseRedisUrl(url), { fault }, url)
})

t.test('a password kept apart is put into the address', async (t) => {
  t.equal(withPassword('redis://redis:6379/1', 'p@ss/word'), 'redis://:p%40ss%2Fword@redis:6379/1')
  t.equal(withPassword('rediss://user@redis', 'x'), 'rediss://user:x@redis')
  t.equal(withPassword('redis://user:old@redis', 'new'), 'redis://user:new@redis')
  t.equal(withPassword('redis+sentinel://a:1,b:2/m', 'x'), 'redis+sentinel://:x@a:1,b:2/m')
})

t.test('Cherry load balancer settings', async (t) => {
  const metallb = { kind: 'metallb', namespace: 'metallb-system', bgpPeerMode: 'native' }
  const good: [string, object][] = [
    ['kube-vip://', { kind: 'kube-vip' }],
    ['kube-vip:', { kind: 'kube-vip' }],
    ['Kube-VIP:///any/path', { kind: 'kube-vip' }],
    ['metallb:', metallb],
    ['metallb://', metallb],
    ['metallb:///', metallb],
    ['metallb://metallb-system', metallb],
    ['metallb://lb-system', { ...metallb, idle: 'lb-system' }],
    ['metallb:lb-system', { ...metallb, idle: 'lb-system' }],
    ['metallb://a/b', { ...metallb, namespace: 'b', idle: 'a' }],
    ['metallb:///lb-system/?bgp-peer-mode=frr', { ...metallb, namespace: 'lb-system', bgpPeerMode: 'frr' }],
    ['metallb:///?bgp-peer-mode=none', { ...metallb, bgpPeerMode: 'none' }],
    ['metallb:///?bgp-peer-mode=', metallb],
    ['empty://', { kind: 'empty', ipAnnotation: undefined }],
    ['empty://?ip-annotation=example.org/lb-ip', { kind: 'empty', ipAnnotation: 'example.org/lb-ip' }],
  ]
  for (const [text, value] of good) t.same(parseCherryLoadBalancer(text), { value }, text)
  const bad: [string, RegExp][] = [
    ['kube-vip', /not a URL/],
    ['metallb', /not a URL/],
    ['none', /not a URL/],
    ['metallb://%zz', /not a URL/],
    ['haproxy://', /unknown scheme/],
    ['metallb:///metallb-system/config', /not one namespace/],
    ['metallb:///?bgp-peer-mode=bird', /native, frr or none/],
    ['metallb:///?bgp-peer-mode=FRR', /native, frr or none/],
  ]
  for (const [text, fault] of bad) t.match(parseCherryLoadBalancer(text), { fault }, text)
})

t.test('webhook keys are base64 of at least 24 bytes', async (t) => {
  const key = Buffer.alloc(24, 7).toString('base64')
  const longer = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
  t.same(parseWebhookKeys(key), { value: [key] })
  t.same(parseWebhookKeys(`${longer}, ${key}`), { value: [longer, key] })
  t.match(parseWebhookKeys(Buffer.alloc(23).toString('base64')), { fault: /has only 23 bytes,/ })
  t.match(parseWebhookKeys(`${key},whsec_c2hvcnQ=`), { fault: /has only 5 bytes \(key 2 of 2\)/ })
  t.match(parseWebhookKeys(`${key},`), { fault: /not base64 \(key 2 of 2\)/ })
  t.match(parseWebhookKeys('not base64!'), { fault: /not base64/ })
})
