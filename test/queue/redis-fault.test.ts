import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import t, { type Test } from 'tap'
import type { RedisSettings } from '../../src/config/types.ts'
import { checkRedis, producerConnection, whenReady, whyAway } from '../../src/queue/redis.ts'
import { freePort, startRedis } from '../redis.ts'

/** What a role says at its start. */
async function fault(url: string, more: Partial<RedisSettings> = {}): Promise<string> {
  const redis = producerConnection({ url, prefix: 'windlass', ...more })
  try {
    await whenReady(redis, url.includes('sentinel') ? 1000 : 5000)
    return 'none'
  } catch (error) {
    const { message } = error as Error
    t.equal(whyAway(redis), message, 'and the same is said of it later')
    return message
  } finally {
    redis.disconnect()
  }
}

async function listening(t: Test, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

t.test('a password that is missing, wrong or of another user is told, and never shown', async (t) => {
  const server = await startRedis({ password: 'the-right-one' })
  t.teardown(() => server.stop())
  const at = `127.0.0.1:${server.port}`
  t.equal(await fault(server.url), 'none')
  t.equal(
    await fault(`redis://${at}`),
    `Redis is not reachable: ${at} wants a password, and none is given: set WINDLASS_REDIS_PASSWORD`,
  )
  const wrong = await fault(`redis://:a-wrong-one@${at}`)
  t.equal(
    wrong,
    `Redis is not reachable: ${at} refuses the password: correct WINDLASS_REDIS_PASSWORD, or user and password in WINDLASS_REDIS_URL`,
  )
  const user = await fault(`redis://someone:a-wrong-one@${at}`)
  t.match(user, /refuses the password of user someone, or that user/)
  t.notMatch(wrong + user, 'a-wrong-one')
})

t.test('a host that is not known and a port where nothing listens are told apart', async (t) => {
  const port = await freePort()
  t.match(
    await fault(`redis://:hidden@127.0.0.1:${port}`),
    `127.0.0.1:${port} refuses connections (ECONNREFUSED): check that it runs, and host and port in WINDLASS_REDIS_URL`,
  )
  t.match(
    await fault('redis://redis.invalid:6379'),
    /redis\.invalid:6379 has a host name that can not be resolved \((ENOTFOUND|EAI_AGAIN)\): correct the host in WINDLASS_REDIS_URL/,
  )
  t.match(await fault(`redis://[::1]:${port}`), `[::1]:${port} `)
})

t.test('what answers but is no Redis is told', async (t) => {
  const http = await listening(
    t,
    createHttpServer((_request, response) => response.end('hello')),
  )
  t.match(await fault(`redis://127.0.0.1:${http}`), `127.0.0.1:${http} answers, but is no Redis: correct host and port`)
  const closing = await listening(
    t,
    createTcpServer((socket) => socket.on('data', () => socket.end()).on('error', () => {})),
  )
  t.match(await fault(`redis://127.0.0.1:${closing}`), /closed the connection: .*rediss:\/\/ in WINDLASS_REDIS_URL/)
})

t.test('faults of TLS name the setting for certificates, or the address', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-tls-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const made = ['-keyout', key, '-out', cert, '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync('openssl', ['req', ...kind, ...made], { stdio: 'ignore' })
  const server = await startRedis()
  t.teardown(() => server.stop())
  const front = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (socket) => {
    const upstream = connect(server.port, '127.0.0.1')
    socket.on('error', () => upstream.destroy())
    upstream.on('error', () => socket.destroy())
    socket.pipe(upstream).pipe(socket)
  })
  front.on('tlsClientError', () => {})
  const port = await listening(t, front)
  t.equal(await fault(`rediss://localhost:${port}`, { caFile: cert }), 'none')
  t.match(await fault(`rediss://localhost:${port}`), /authority that is not trusted .*WINDLASS_REDIS_CA_FILE/)
  t.match(
    await fault(`rediss://127.0.0.1:${port}`, { caFile: cert }),
    /certificate for another name .*in WINDLASS_REDIS_URL/,
  )
  const http = await listening(t, createHttpServer())
  t.match(await fault(`rediss://127.0.0.1:${http}`), /TLS .*write redis:\/\/ in WINDLASS_REDIS_URL/)
  t.match(await fault(`redis://127.0.0.1:${port}`), /closed the connection: .*rediss:\/\//)
})

t.test('of sentinels it is told whether they or the primary are away', async (t) => {
  const port = await freePort()
  t.match(
    await fault(`redis+sentinel://127.0.0.1:${port}/main`),
    `the sentinel at 127.0.0.1:${port} did not take a connection: check that sentinels run there`,
  )
  const plain = await startRedis()
  t.teardown(() => plain.stop())
  t.match(await fault(`redis+sentinel://127.0.0.1:${plain.port}/main`), /answers, but is no sentinel/)
  const sentinel = await startRedis({ sentinel: `sentinel monitor main 127.0.0.1 ${port} 1\n` })
  t.teardown(() => sentinel.stop())
  t.match(
    await fault(`redis+sentinel://127.0.0.1:${sentinel.port}/main`),
    `the primary of main, as the sentinel at 127.0.0.1:${sentinel.port} names it, refuses connections`,
  )
})

t.test('a connection that was there and is lost says why, and no more once it is back', async (t) => {
  const server = await startRedis()
  const redis = producerConnection({ url: server.url, prefix: 'windlass' })
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  await whenReady(redis, 2000)
  await server.kill9()
  while (!whyAway(redis).includes('ECONNREFUSED')) await new Promise((resolve) => setTimeout(resolve, 20))
  await t.rejects(checkRedis(redis), { kind: 'transient', message: `127.0.0.1:${server.port} refuses connections` })
  await server.restart()
  while (redis.status !== 'ready') await new Promise((resolve) => setTimeout(resolve, 20))
  t.notMatch(whyAway(redis), 'ECONNREFUSED')
})
