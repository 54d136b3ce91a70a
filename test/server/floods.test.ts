import { generateKeyPairSync, randomUUID, sign as signBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { sign } from '../../src/events/sign.ts'
import { BATCH_CONTENT_TYPE, eventsPath, SERVER_TIME_HEADER } from '../../src/events/types.ts'
import type { ServerDeps } from '../../src/server/deps.ts'
import { createFoldedLog } from '../../src/server/folded-log.ts'
import { createOidcVerifier } from '../../src/server/knative/oidc.ts'
import { nodeOf } from '../state/stores.ts'
import { harness, KEY, nodeChanged } from './harness.ts'
import { startIssuer } from './issuer.ts'

const STRANGER = Buffer.alloc(32, 7).toString('base64')
const KIB = 1024

async function serve(t: Test, more: Partial<ServerDeps> = {}) {
  const h = await harness(t, more)
  await h.server.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = h.server.app.server.address() as AddressInfo
  const open = (
    length: number,
    headers: Record<string, string>,
    agent: Agent | false = false,
    path = eventsPath('default'),
  ) =>
    request({
      agent,
      port,
      host: '127.0.0.1',
      path,
      method: 'POST',
      headers: { 'content-type': BATCH_CONTENT_TYPE, 'content-length': length, ...headers },
    })
  return { h, port, open }
}

async function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  answer.resume()
  return answer
}

t.test('what its head shows to be refused is refused before any byte of its body', async (t) => {
  const { open } = await serve(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const good = sign(KEY, 'a', Date.now(), '[]')
  const refused: [headers: Record<string, string>, status: number, path?: string][] = [
    [{}, 401],
    [{ ...good, 'webhook-signature': 'v1,AAAA' }, 401],
    [{ ...good, 'webhook-id': 'a.b' }, 401],
    [sign(STRANGER, 'a', Date.now() - 400_000, '[]'), 401],
    [good, 404, eventsPath('nobody')],
    [good, 404, '/nothing'],
  ]
  for (const [headers, status, path] of refused) {
    const sent = open(100 * KIB, headers, agent, path)
    sent.flushHeaders()
    const answer = await answerTo(sent)
    t.equal(answer.statusCode, status)
    if (headers['webhook-timestamp'] !== good['webhook-timestamp'] && headers['webhook-timestamp'])
      t.ok(answer.headers[SERVER_TIME_HEADER], 'the stale one is told the time')
    sent.end(Buffer.alloc(100 * KIB, 32))
    await once(sent, 'close')
  }
  const honest = open(2, sign(KEY, randomUUID(), Date.now(), '[]'), agent)
  honest.end('[]')
  t.equal((await answerTo(honest)).statusCode, 202, 'and the connection is still good')
})

t.test('bodies that are held back hold no more than the limit, and honest batches pass', async (t) => {
  const limit = 4 * 1024 * KIB
  const { h, open } = await serve(t, { bodiesLimitBytes: limit })
  const sentEach = 900 * KIB
  const answers: IncomingMessage[] = []
  const enough = Promise.withResolvers<void>()
  const flood = Array.from({ length: 40 }, () => {
    const sent = open(1024 * KIB, sign(STRANGER, 'a', Date.now(), '[]'))
    sent.on('error', () => {})
    sent.on('response', (answer) => {
      answer.resume()
      answers.push(answer)
      if ((40 - answers.length) * sentEach <= limit) enough.resolve()
    })
    sent.write(Buffer.alloc(sentEach, 32))
    return sent
  })
  t.teardown(() => {
    for (const sent of flood) sent.destroy()
  })
  await enough.promise
  for (const { statusCode, headers } of answers) t.match([statusCode, headers['retry-after']], [503, /^[1-9]/])
  const body = `[${JSON.stringify(nodeChanged(nodeOf('a', 1)))}${' '.repeat(512 * KIB)}]`
  for (let i = 0; i < 20; i++) {
    const honest = open(body.length, sign(KEY, randomUUID(), Date.now(), body))
    honest.end(body)
    t.equal((await answerTo(honest)).statusCode, 202)
  }
  t.equal(h.logged.filter(({ msg }) => msg === 'a request could not be served now').length, 1, 'in one line')
})

t.test('a body in pieces of one byte counts for what it costs', async (t) => {
  const { port } = await serve(t, { bodiesLimitBytes: 64 * KIB })
  const head = Object.entries({ 'content-type': BATCH_CONTENT_TYPE, ...sign(STRANGER, 'a', Date.now(), '[]') })
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`POST ${eventsPath('default')} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n${lines}\r\n`)
  socket.write('1\r\n \r\n'.repeat(2000))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1.1 503 /)
})

t.test('a request that never arrives whole is cut', async (t) => {
  const { open } = await serve(t, { requestTimeoutMs: 200 })
  const sent = open(100, sign(STRANGER, 'a', Date.now(), '[]'))
  sent.on('error', () => {})
  sent.write('[')
  t.equal((await answerTo(sent)).statusCode, 408)
})

t.test('a flood of refusals is told in a line of each kind', async (t) => {
  const { h, open } = await serve(t)
  for (let i = 0; i < 30; i++)
    for (const headers of [{}, sign(STRANGER, 'a', Date.now(), '[]')]) {
      const sent = open(2, headers)
      sent.end('[]')
      t.equal((await answerTo(sent)).statusCode, 401)
    }
  const lines = () => h.logged.filter(({ msg }) => msg === 'a batch was refused')
  t.match(lines(), [{ fault: 'missing' }, { fault: 'bad-signature' }])
  t.equal(lines().length, 2)
  const folded = createFoldedLog(h.deps.log)
  for (let i = 0; i < 5; i++) folded.warn('a', { i }, 'told')
  folded.close()
  t.match(
    h.logged.filter(({ msg }) => msg === 'told'),
    [{ i: 0 }, { i: 4, times: 4 }],
  )
})

t.test('a key that an issuer publishes and nobody can use is told as such', async (t) => {
  const claims = { aud: 'w', exp: Math.floor(Date.now() / 1000) + 600 }
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const large = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys: [what: string, jwk: object, key: typeof small][] = [
    ['too short', small.publicKey.export({ format: 'jwk' }), small],
    ['empty', { ...large.publicKey.export({ format: 'jwk' }), n: '' }, large],
  ]
  for (const [what, jwk, { privateKey }] of keys) {
    const issuer = await startIssuer(t)
    issuer.answer({ status: 200, body: JSON.stringify({ keys: [{ ...jwk, kid: 'k', alg: 'RS256' }] }) })
    const verifier = createOidcVerifier({ issuer: issuer.url, audience: 'w', jwksUrl: issuer.jwksUrl })
    t.teardown(() => verifier.close())
    const part = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url')
    const text = `${part({ alg: 'RS256', kid: 'k' })}.${part({ ...claims, iss: issuer.url })}`
    const token = `${text}.${signBytes('sha256', Buffer.from(text), privateKey).toString('base64url')}`
    await t.rejects(
      verifier.refusalOf(token),
      { kind: 'transient', message: /can't be used \(.+\): the issuer must/ },
      what,
    )
  }
})
