import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import t from 'tap'
import { checkRedis, producerConnection, whenReady, workerConnection } from '../../src/queue/redis.ts'
import { freePort, startRedis } from '../redis.ts'
import { eventually } from './rig.ts'

const settings = (url: string) => ({ url, prefix: 'windlass' })

t.test('a producer of a Redis that was never there is refused at once, and finds it once it is there', async (t) => {
  const port = await freePort()
  const redis = producerConnection(settings(`redis://127.0.0.1:${port}`))
  t.teardown(() => redis.disconnect())
  await t.rejects(redis.set('a', '1'))
  await t.rejects(
    eventually(() => whenReady(redis, 1500)),
    { kind: 'transient', message: /not reachable/ },
  )
  await t.rejects(checkRedis(redis), { kind: 'transient', message: /refuses connections/ })
  const server = await startRedis({ port })
  t.teardown(() => server.stop())
  await eventually(() => redis.status === 'ready')
  t.equal(await redis.set('a', '1'), 'OK')
})

t.test('a command of a producer ends although Redis is frozen, and works once it is not', async (t) => {
  const server = await startRedis()
  const redis = producerConnection(settings(server.url))
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  await whenReady(redis, 2000)
  server.pause()
  await t.rejects(redis.set('a', '1'), /timed out|Socket timeout|Connection is closed/)
  server.resume()
  await eventually(() => redis.set('a', '1').catch(() => null))
  t.pass()
})

t.test('a worker waits for a Redis that was never there, and for one that comes again', async (t) => {
  const port = await freePort()
  const redis = workerConnection(settings(`redis://127.0.0.1:${port}`))
  t.teardown(() => redis.disconnect())
  const first = redis.incr('a')
  const server = await startRedis({ port })
  t.teardown(() => server.stop())
  t.equal(await first, 1)
  await server.kill9()
  const second = redis.incr('a')
  await server.restart()
  t.equal(await second, 1)
})

t.test('user, password and database of the address are used', async (t) => {
  const server = await startRedis({ password: 'p@ss:w/rd', args: ['--databases', '4'] })
  const redis = producerConnection(
    settings(`redis://default:${encodeURIComponent('p@ss:w/rd')}@127.0.0.1:${server.port}/3`),
  )
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  await whenReady(redis, 2000)
  t.match(await redis.client('INFO'), /db=3/)
})

t.test('what would lose jobs is said in words', async (t) => {
  const server = await startRedis()
  t.teardown(() => server.stop())
  const check = async () => {
    const redis = producerConnection(settings(server.url))
    try {
      await whenReady(redis, 2000)
      return await checkRedis(redis)
    } finally {
      redis.disconnect()
    }
  }
  t.match(await check(), { version: /^[67]/, runId: /^[0-9a-f]{40}$/ })
  await server.config('maxmemory-policy', 'allkeys-lru')
  await t.rejects(check(), {
    kind: 'transient',
    message: /maxmemory-policy is allkeys-lru.*set maxmemory-policy to noeviction/,
  })
  await server.config('maxmemory-policy', 'noeviction')
  await server.command('REPLICAOF', '127.0.0.1', await freePort())
  await t.rejects(check(), { kind: 'transient', message: /replica/ })
  await server.command('REPLICAOF', 'NO', 'ONE')
  await t.resolves(check())

  const cluster = await startRedis({ args: ['--cluster-enabled', 'yes'] })
  t.teardown(() => cluster.stop())
  const redis = producerConnection(settings(cluster.url))
  t.teardown(() => redis.disconnect())
  await whenReady(redis, 2000)
  await t.rejects(checkRedis(redis), { kind: 'permanent', message: /cluster mode/ })
})

t.test('with TLS, a certificate of the given authority is trusted, and none without it', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-tls-'))
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...[
        '-keyout',
        key,
        '-out',
        cert,
        '-subj',
        '/CN=localhost',
        '-addext',
        'subjectAltName=DNS:localhost,IP:127.0.0.1',
      ],
    ],
    { stdio: 'ignore' },
  )
  const server = await startRedis()
  const front = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (socket) => {
    const upstream = connect(server.port, '127.0.0.1')
    socket.on('error', () => upstream.destroy())
    upstream.on('error', () => socket.destroy())
    socket.pipe(upstream).pipe(socket)
  })
  front.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  const address = front.address()
  const port = address && typeof address === 'object' ? address.port : 0
  const trusting = producerConnection({ ...settings(`rediss://127.0.0.1:${port}`), caFile: cert })
  const distrusting = producerConnection(settings(`rediss://127.0.0.1:${port}`))
  t.teardown(async () => {
    trusting.disconnect()
    distrusting.disconnect()
    front.close()
    await server.stop()
    rmSync(dir, { recursive: true })
  })
  await eventually(() => trusting.status === 'ready')
  t.equal(await trusting.set('a', '1'), 'OK')
  t.not(distrusting.status, 'ready')
})
