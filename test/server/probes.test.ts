import t from 'tap'
import { transient } from '../../src/errors.ts'
import { METRICS } from '../../src/telemetry/metrics.ts'
import { nodeOf } from '../state/stores.ts'
import { harness, nodeChanged } from './harness.ts'

const h = await harness(t)
const get = (url: string, headers = {}) => h.server.app.inject({ url, headers })

t.test('a live process says so, a ready one too', async (t) => {
  t.same((await get('/healthz')).json(), { alive: true })
  t.same((await get('/readyz')).json(), { ready: true, problems: [] })
})

t.test('the metrics are those of the table, with what the server and the queue count', async (t) => {
  await h.post([nodeChanged(nodeOf('a', 1))])
  const answer = await get('/metrics')
  t.match(answer.headers['content-type'], /^text\/plain/)
  for (const name of Object.keys(METRICS)) t.match(answer.body, `# TYPE ${name} `)
  t.match(answer.body, 'windlass_events_received_total{cluster="default",type="dev.windlass.node.changed"} 1')
  t.match(answer.body, 'windlass_event_batches_total{cluster="default",status="202"} 1')
  t.match(answer.body, 'windlass_redis_up 1')
  t.match(answer.body, 'windlass_jobs{cluster="default",state="waiting"} 1')
  t.match(answer.body, 'windlass_jobs{cluster="other",state="failed"} 0')
})

t.test('every metric has a help, a unit in its name where it has one, and labels that bound it', async (t) => {
  for (const [name, { help, type, labels }] of Object.entries(METRICS)) {
    t.match(help, /^[A-Z1].*\.$/, name)
    t.match(name, /^[a-z_]+$/)
    if (type === 'counter') t.match(name, /_total$/)
    if (type === 'histogram') t.match(name, /_seconds$/)
    for (const label of labels) t.notMatch(label, /uid|job|trace|subject|node|service/, name)
  }
})

t.test('the backlog is what an autoscaler scales by: due now, running, or due within a minute', async (t) => {
  const answer = await get('/v1/backlog')
  t.equal(answer.statusCode, 200)
  const { clusters, ...total } = answer.json()
  t.match(total, { due: 3, waiting: 1, active: 0, failed: 0, oldestWaitingMs: Number })
  t.match(clusters, [
    { cluster: 'default', due: 3 },
    { cluster: 'other', due: 0 },
  ])
})

t.test('a backlog that can not be read is no empty backlog', async (t) => {
  const broken = await harness(t, {
    backlog: async () => {
      throw transient('Redis does not answer')
    },
  })
  const answer = await broken.server.app.inject('/v1/backlog')
  t.equal(answer.statusCode, 503)
  t.ok(answer.headers['retry-after'])
  t.equal((await broken.server.app.inject('/metrics')).statusCode, 200, 'the other metrics are there')
})

t.test('with a token for the metrics, nobody else reads them', async (t) => {
  const guarded = await harness(t, { metricsToken: 'let me in' })
  for (const url of ['/metrics', '/v1/backlog']) {
    for (const authorization of [undefined, 'Bearer', 'Bearer let me', 'Basic let me in', 'let me in']) {
      const answer = await guarded.server.app.inject({ url, headers: authorization ? { authorization } : {} })
      t.equal(answer.statusCode, 401, `${url} with ${authorization}`)
      t.match(answer.headers['www-authenticate'], /^Bearer/)
    }
    const answer = await guarded.server.app.inject({ url, headers: { authorization: 'Bearer let me in' } })
    t.equal(answer.statusCode, 200)
  }
  t.equal((await guarded.server.app.inject('/healthz')).statusCode, 200)
  t.notMatch(JSON.stringify(guarded.logged), 'let me in')
})

t.test('the description is OpenAPI 3.1 and has every route that is served', async (t) => {
  const description = (await get('/openapi.json')).json()
  t.match(description, { openapi: '3.1.0', info: { title: String, version: String } })
  const described = Object.entries(description.paths as Record<string, Record<string, object>>).flatMap(
    ([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  t.same(described.sort(), [
    'GET /healthz',
    'GET /metrics',
    'GET /openapi.json',
    'GET /readyz',
    'GET /v1/backlog',
    'POST /v1/clusters/{cluster}/events',
    'POST /v1/clusters/{cluster}/knative',
  ])
  const served = [...h.server.app.printRoutes({ commonPrefix: false }).matchAll(/^[├└]── (\S+) \((\w+)/gm)]
    .map(([, path, method]) => `${method} ${path?.replace(/:(\w+)/g, '{$1}')}`)
    .filter((route) => route !== 'GET /queues')
  t.same(served.sort(), described)
  for (const [path, methods] of Object.entries(description.paths as Record<string, Record<string, Operation>>))
    for (const operation of Object.values(methods)) {
      t.ok(operation.summary, `${path} has a summary`)
      for (const [status, answer] of Object.entries(operation.responses))
        t.ok(answer.description, `${path} ${status} is described`)
    }
  const events = description.paths['/v1/clusters/{cluster}/events'].post
  t.ok(events.requestBody.content['application/cloudevents-batch+json'].schema)
  t.same(Object.keys(events.responses), ['202', '400', '401', '404', '413', '415', '503'])
  const refs = JSON.stringify(description).match(/"\$ref":"[^"]+"/g) ?? []
  t.same(refs, [], 'it stands on its own')
})

t.test('what is not there says where to look, and pages of others can not frame or load anything', async (t) => {
  const answer = await get('/nothing')
  t.equal(answer.statusCode, 404)
  t.match(answer.json().message, '/openapi.json')
  t.match(answer.headers['content-security-policy'], "default-src 'none'")
  t.equal(answer.headers['x-content-type-options'], 'nosniff')
})

t.test('an overloaded process refuses work with a time to try again, but answers its probes', async (t) => {
  const { app } = h.server
  const until = Date.now() + 30_000
  // under-pressure looks once a second: the loop is kept busy until it has.
  while (!app.isUnderPressure() && Date.now() < until) {
    const blockedUntil = Date.now() + 1500
    while (Date.now() < blockedUntil);
    await new Promise((resolve) => setImmediate(resolve))
  }
  const answer = await h.post([])
  t.equal(answer.status, 503)
  t.ok(answer.headers['retry-after'])
  t.equal((await get('/healthz')).statusCode, 200)
  t.equal((await get('/readyz')).statusCode, 200)
})

interface Operation {
  summary?: string
  responses: Record<string, { description?: string }>
}
