import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { sign } from '../../src/events/sign.ts'
import { BATCH_CONTENT_TYPE, eventsPath } from '../../src/events/types.ts'
import { type Listening, startServer } from '../../src/server/listen.ts'
import { nodeOf } from '../state/stores.ts'
import { type Harness, harness, KEY, nodeChanged } from './harness.ts'

const agent = new Agent({ keepAlive: true })
t.teardown(() => agent.destroy())

/** Requests on kept connections, as a forwarder's are. */
async function ask(at: Listening, path: string, body?: string): Promise<{ status: number; connection?: string }> {
  const sent = httpRequest({
    agent,
    port: at.port,
    host: '127.0.0.1',
    path,
    method: body === undefined ? 'GET' : 'POST',
    headers:
      body === undefined
        ? {}
        : {
            'content-type': BATCH_CONTENT_TYPE,
            ...sign(KEY, `id-${Math.random().toString(36).slice(2)}`, Date.now(), body),
          },
  })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  return { status: answer.statusCode ?? 0, connection: answer.headers.connection }
}

/** A server whose queue takes a batch when told to. */
async function slow(h: Harness): Promise<{ listening: Listening; arrived: Promise<void>; go: () => void }> {
  const { enqueue } = h.deps.enqueuer
  let go = () => {}
  let arrive = () => {}
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  h.deps.enqueuer.enqueue = async (...args) => {
    arrive()
    await gate
    return await enqueue(...args)
  }
  const listening = await startServer(h.deps, { host: '127.0.0.1', port: 0 })
  return { listening, arrived, go }
}

const body = JSON.stringify([nodeChanged(nodeOf('a', 1))])

t.test('closing turns readiness red, answers what is in flight, and does not wait for idle connections', async (t) => {
  const h = await harness(t)
  const { listening, arrived, go } = await slow(h)
  t.same(await ask(listening, '/healthz'), { status: 200, connection: 'keep-alive' })
  const unused = connect(listening.port, '127.0.0.1')
  await once(unused, 'connect')
  const inFlight = ask(listening, eventsPath('default'), body)
  await arrived

  const closed = listening.close({ noticeMs: 300, limitMs: 20_000 })
  const ready = await ask(listening, '/readyz')
  t.same(ready, { status: 503, connection: 'close' }, 'while the others are told, new requests are still answered')
  t.equal((await ask(listening, '/healthz')).status, 200)
  await once(unused, 'close')
  await t.rejects(ask(listening, '/healthz'), { code: 'ECONNREFUSED' })
  go()
  t.equal((await inFlight).status, 202)
  await closed
  t.notOk(
    h.logged.some(({ msg }) => msg === 'requests were cut at the end of the grace period'),
    'before the limit, and so long before the keep-alive time',
  )
  t.ok((await h.jobs()).has('Node/a'))
})

t.test('a request that comes on a kept connection while we close is answered', async (t) => {
  const h = await harness(t)
  const { listening, arrived, go } = await slow(h)
  const first = ask(listening, eventsPath('default'), body)
  await arrived
  const closed = listening.close({ noticeMs: 0, limitMs: 20_000 })
  go()
  t.match(await first, { status: 202, connection: 'close' })
  await closed
  t.equal(await listening.close({ noticeMs: 0, limitMs: 0 }), undefined, 'closing twice is closing once')
})

t.test('a request that never ends is cut at the limit', async (t) => {
  const h = await harness(t)
  const { listening, arrived, go } = await slow(h)
  const first = ask(listening, eventsPath('default'), body)
  first.catch(() => {})
  await arrived
  await listening.close({ noticeMs: 0, limitMs: 100 })
  await t.rejects(first)
  t.match(h.logged.at(-1), { level: 'warn', connections: 1 })
  go()
})

t.test('garbage on the wire is answered or hung up on, and the server lives', async (t) => {
  const h = await harness(t)
  const listening = await startServer(h.deps, { host: '127.0.0.1', port: 0 })
  for (const bytes of [
    '\0\0\0\0',
    'GET\r\n\r\n',
    'POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n',
    `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`,
  ]) {
    const socket = connect(listening.port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('error', () => {})
    socket.write(bytes)
    await once(socket, 'close')
    t.match(answer, /^(HTTP\/1.1 4|$)/)
  }
  t.equal((await ask(listening, '/healthz')).status, 200)
  await listening.close({ noticeMs: 0, limitMs: 1000 })
})
