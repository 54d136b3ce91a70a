import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { eventually, isInitialised, startWorld } from './world.ts'

interface Span {
  service: string
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  attributes: Record<string, unknown>
  error?: string
}

interface Otlp {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: {
      spans: (Omit<Span, 'service' | 'attributes' | 'error'> & {
        attributes: Attribute[]
        status?: { code?: number; message?: string }
      })[]
    }[]
  }[]
}

interface Attribute {
  key: string
  value: { stringValue?: string; intValue?: number }
}

const plain = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))

/** A receiver of OTLP in JSON over HTTP. */
async function startReceiver(t: Test) {
  const spans: Span[] = []
  const asked: { path: string; headers: Record<string, unknown> }[] = []
  const server = createServer(async (request, answer) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    asked.push({ path: request.url ?? '', headers: request.headers })
    for (const { resource, scopeSpans } of (JSON.parse(Buffer.concat(chunks).toString()) as Otlp).resourceSpans)
      for (const { attributes, status, ...span } of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({
          ...span,
          service: String(plain(resource.attributes)['service.name']),
          attributes: plain(attributes),
          ...(status?.code === 2 ? { error: status.message ?? '' } : {}),
        })
    answer.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, asked }
}

t.test('a change of a Service is one trace, from the forwarder to the call at the cloud', async (t) => {
  const receiver = await startReceiver(t)
  const world = await startWorld()
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=windlass',
    OTEL_BSP_SCHEDULE_DELAY: '200',
  }
  const server = world.start('server', { env })
  const { host, port } = await server.logged('the server listens')
  const forwarder = world.start('forwarder', { env: { ...env, WINDLASS_SERVER_URL: `http://${host}:${port}` } })
  const worker = world.start('worker', { env })
  await world.addNode('w1')
  await eventually(async () => (await world.nodes()).some(isInitialised), 'the node is initialised')
  await world.addService('web')
  const made = await eventually(
    async () =>
      receiver.spans.find(({ name, attributes }) => name === 'POST' && attributes['url.path'] === '/v1/load_balancers'),
    'the call that makes the load balancer is told',
  )
  // What is left is sent at the end.
  for (const one of [forwarder, server, worker]) await one.end()

  const trace = receiver.spans.filter(({ traceId }) => traceId === made.traceId)
  const path: Span[] = []
  for (let at: Span | undefined = made; at; at = trace.find(({ spanId }) => spanId === path.at(-1)?.parentSpanId))
    path.push(at)
  t.same(
    path.map(({ service, name }) => `${service}: ${name}`),
    [
      'windlass-worker: POST',
      'windlass-worker: reconcile service',
      'windlass-server: enqueue service',
      'windlass-forwarder: changed Service',
    ],
  )
  t.equal(path[0]?.attributes['http.response.status_code'], 201)
  t.match(path[1]?.attributes, { 'windlass.object': 'Service/default/web', 'windlass.cluster': 'default' })
  const logged = worker.lines().find(({ msg, key }) => msg === 'run ended' && key === 'Service/default/web')
  t.equal(logged?.traceId, made.traceId, 'the log has the same id')
  t.ok(receiver.asked.every(({ path, headers }) => path === '/v1/traces' && headers['x-tenant'] === 'windlass'))
  const said = JSON.stringify(receiver.spans)
  t.notMatch(said, world.env.HCLOUD_TOKEN, 'no secret is in them')
})

t.test('a receiver that is away stops no work', async (t) => {
  const world = await startWorld()
  t.teardown(() => world.stop())
  world.hcloud.control.seed({ servers: [{ id: 1, name: 'w1' }] })
  const all = world.start('all', {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_SCHEDULE_DELAY: '100' },
  })
  await world.addNode('w1')
  await eventually(async () => (await world.nodes()).some(isInitialised), 'the node is initialised')
  const begun = performance.now()
  await delay(300)
  all.signal('SIGTERM')
  t.equal(await all.exited, 0)
  t.comment(`ended after ${Math.round(performance.now() - begun)} ms`)
})
