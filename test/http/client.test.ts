import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { kindOf, type WindlassError } from '../../src/errors.ts'
import { HttpClient } from '../../src/http/client.ts'

async function serve(t: Test, handler: http.RequestListener) {
  const server = http.createServer(handler).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function clientFor(t: Test, env: NodeJS.ProcessEnv = {}) {
  const client = new HttpClient({ proxyEnv: env })
  t.teardown(() => client.close())
  return client
}

t.test('any status is an answer, with its body', async (t) => {
  const url = await serve(t, (request, response) => {
    response.statusCode = 418
    request.pipe(response)
  })
  const answer = await clientFor(t).request({ method: 'POST', url, body: 'tea', timeoutMs: 5000 })
  t.equal(answer.status, 418)
  t.equal(answer.body.toString(), 'tea')
})

t.test('no answer is transient and names host, path and cause, never the query', async (t) => {
  const client = clientFor(t)
  const hanging = await serve(t, () => {})
  const cut = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('part', () => response.destroy())
  })
  for (const [url, code] of [
    [hanging, 'timeout'],
    [cut, 'ECONNRESET'],
    ['http://127.0.0.1:1', 'ECONNREFUSED'],
  ] as const) {
    const error = await client.request({ method: 'GET', url: `${url}/path?token=s3cret`, timeoutMs: 200 }).then(
      () => t.fail('there is no answer'),
      (thrown: unknown) => thrown,
    )
    t.equal(kindOf(error), 'transient')
    t.equal((error as WindlassError).code, code)
    t.match((error as Error).message, /127\.0\.0\.1:\d+\/path/)
    t.notMatch((error as Error).message, /s3cret/)
  }
})

t.test('an answer that drips on for longer than it may take is given up', async (t) => {
  let gone: Promise<unknown> | undefined
  const url = await serve(t, (_request, response) => {
    const dripping = setInterval(() => response.write('x'), 10)
    gone = new Promise((resolve) => response.once('close', resolve)).finally(() => clearInterval(dripping))
  })
  await t.rejects(clientFor(t).request({ method: 'GET', url, timeoutMs: 200 }), {
    name: 'WindlassError',
    kind: 'transient',
  })
  await gone
})

t.test('a signal stops a request before and on its way', async (t) => {
  const client = clientFor(t)
  const arrived = Promise.withResolvers<void>()
  const url = await serve(t, () => arrived.resolve())
  const controller = new AbortController()
  const sent = client.request({ method: 'GET', url, timeoutMs: 5000, signal: controller.signal })
  await arrived.promise
  controller.abort()
  t.equal(await sent.catch(kindOf), 'aborted')
  t.equal(
    await client.request({ method: 'GET', url, timeoutMs: 5000, signal: controller.signal }).catch(kindOf),
    'aborted',
  )
})

t.test('an answer that is too long is refused', async (t) => {
  const url = await serve(t, (_request, response) => response.end('x'.repeat(1000)))
  await t.rejects(clientFor(t).request({ method: 'GET', url, timeoutMs: 5000, maxBytes: 999 }), { code: 'too-long' })
})

t.test('a stream gives what arrives until it is cut', async (t) => {
  const url = await serve(t, (_request, response) => {
    response.write('one')
    setImmediate(() => response.destroy())
  })
  const stream = await clientFor(t).stream({ method: 'GET', url, timeoutMs: 5000 })
  let text = ''
  const read = async () => {
    for await (const chunk of stream.body) text += chunk
    return 'ended'
  }
  t.equal(await read().catch(kindOf), 'transient')
  t.equal(text, 'one')
})

t.test('a read that met a connection which the peer had just closed is sent again', async (t) => {
  const server = http.createServer((_request, response) => response.end('here'))
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = clientFor(t)
  let peer: Socket | undefined
  server.once('connection', (socket) => {
    peer = socket
  })
  await client.request({ method: 'GET', url, timeoutMs: 5000 })
  peer?.resetAndDestroy()
  t.equal((await client.request({ method: 'GET', url, timeoutMs: 5000 })).status, 200)
})

t.test('proxies come from the environment (pins node:http proxyEnv)', async (t) => {
  const seen: string[] = []
  const proxy = await serve(t, (request, response) => {
    seen.push(request.url ?? '')
    response.end('from the proxy')
  })
  const direct = await serve(t, (_request, response) => response.end('direct'))
  const client = clientFor(t, { HTTP_PROXY: proxy, NO_PROXY: '127.0.0.1' })
  const answer = await client.request({ method: 'GET', url: 'http://cloud.invalid/v1/x', timeoutMs: 5000 })
  t.equal(answer.body.toString(), 'from the proxy')
  t.same(seen, ['http://cloud.invalid/v1/x'])
  t.equal((await client.request({ method: 'GET', url: direct, timeoutMs: 5000 })).body.toString(), 'direct')
})
