import { Agent, get } from 'node:https'
import t from 'tap'
import { call } from './caller.ts'
import { startCherrySimulator } from './simulator.ts'

const floatingIp = '127.0.0.150'

t.test('control plane nodes', async (t) => {
  const simulator = await startCherrySimulator()
  t.teardown(() => simulator.close())
  const { control } = simulator
  const loopback = (n: number) => [
    { address: `127.0.0.${n}`, type: 'primary-ip' },
    { address: `127.0.1.${n}`, type: 'private-ip' },
  ]
  t.beforeEach(async () => {
    await control.reset()
    await control.seed({
      servers: [
        { id: 1, hostname: 'cp-1', ip_addresses: loopback(141), apiserver: 'ok' },
        { id: 2, hostname: 'cp-2', ip_addresses: loopback(142), apiserver: 503 },
        { id: 3, hostname: 'cp-3', ip_addresses: loopback(143), apiserver: 'refuse' },
        { id: 4, hostname: 'w1', ip_addresses: loopback(144) },
      ],
      ips: [{ address: floatingIp }],
    })
  })

  const probe = (
    address: string,
    { path = '/healthz', agent, ...options }: { path?: string; agent?: Agent; headers?: object; timeout?: number } = {},
  ): Promise<number | string | undefined> =>
    new Promise((resolve) => {
      const { apiserver_port: port } = control.state().settings
      const url = `https://${address}:${port}${path}`
      const trust = { ca: simulator.ca, servername: 'localhost' }
      const request = get(url, { ...trust, agent: agent ?? false, ...(options as object) }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode))
      })
      request.on('timeout', () => request.destroy(new Error('timeout')))
      request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    })
  const move = (targeted_to: string | 0) => {
    const id = control.state().ips.find(({ address }) => address === floatingIp)?.id
    return call(simulator, 'PUT', `/ips/${id}`, { targeted_to })
  }

  t.test('answer on all of their loopback addresses as they were told to', async (t) => {
    t.equal(await probe('127.0.0.141'), 200)
    t.equal(await probe('127.0.1.141'), 200)
    t.equal(await probe('127.0.0.141', { path: '/readyz?verbose' }), 200)
    t.equal(await probe('127.0.0.141', { path: '/api' }), 404)
    t.equal(await probe('127.0.0.142'), 503)
    t.equal(await probe('127.0.0.143'), 'ECONNRESET')
    t.equal(await probe('127.0.0.144'), 'ECONNREFUSED', 'a worker has no API server')
  })

  t.test('may accept and never answer', async (t) => {
    await control.mutate({ servers: [{ hostname: 'cp-1', apiserver: 'hang' }] })
    t.equal(await probe('127.0.0.141', { timeout: 60 }), 'timeout')
  })

  t.test('are reached through a floating IP while it is theirs', async (t) => {
    t.equal(await probe(floatingIp), 'ECONNRESET', 'nobody’s')
    await move('1')
    t.equal(await probe(floatingIp), 200)
    await move('2')
    t.equal(await probe(floatingIp), 503)
    await move('4')
    t.equal(await probe(floatingIp), 'ECONNRESET', 'a worker’s')
    await move('1')
    await move(0)
    t.equal(await probe(floatingIp), 'ECONNRESET')
  })

  t.test('are silent when their server is off, broken or gone', async (t) => {
    await move('1')
    for (const change of [
      { state: 'inactive' },
      { state: 'active', power: 'off' },
      { power: 'on', apiserver: 'refuse' },
    ]) {
      await control.mutate({ servers: [{ hostname: 'cp-1', ...change }] })
      t.equal(await probe('127.0.0.141'), 'ECONNRESET')
      t.equal(await probe(floatingIp), 'ECONNRESET')
    }
    await control.mutate({ servers: [{ hostname: 'cp-1', apiserver: 'ok' }] })
    t.equal(await probe(floatingIp), 200)
    await control.mutate({ servers: [{ hostname: 'cp-1', $delete: true }] })
    t.equal(await probe('127.0.0.141'), 'ECONNREFUSED')
    t.equal(await probe(floatingIp), 'ECONNRESET')
  })

  t.test('lose their connections when a floating IP moves on', async (t) => {
    await control.mutate({ servers: [{ hostname: 'cp-2', apiserver: 'ok' }] })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    await move('1')
    t.equal(await probe(floatingIp, { agent }), 200)
    await move('2')
    t.equal(await probe(floatingIp, { agent }), 'ECONNRESET', 'the old connection')
    t.equal(await probe(floatingIp, { agent }), 200, 'a new one')
  })

  t.test('have a certificate that is signed with what is handed out, and for the API server’s own name', async (t) => {
    const port = control.state().settings.apiserver_port
    const trial = (options: object) =>
      new Promise((resolve) => {
        const request = get({ host: '127.0.0.141', port, path: '/healthz', agent: false, ...options }, (response) => {
          response.resume()
          resolve(response.statusCode)
        })
        request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      })
    t.equal(await trial({ servername: 'localhost' }), 'DEPTH_ZERO_SELF_SIGNED_CERT')
    t.equal(await trial({ ca: simulator.ca }), 'ERR_TLS_CERT_ALTNAME_INVALID')
    t.equal(await trial({ ca: simulator.ca, servername: 'localhost' }), 200)
  })

  t.test('tell what came, and whether it brought credentials along', async (t) => {
    await probe('127.0.0.141')
    await probe('127.0.0.142', { headers: { authorization: 'Bearer secret' } })
    await probe(floatingIp)
    t.strictSame(control.probes(), [
      { address: '127.0.0.141', path: '/healthz', hostname: 'cp-1', authorized: false, status: 200 },
      { address: '127.0.0.142', path: '/healthz', hostname: 'cp-2', authorized: true, status: 503 },
      { address: floatingIp },
    ])
  })

  t.test('listen where they are told to', async (t) => {
    const { apiserver_port: before } = control.state().settings
    await control.reset()
    await control.seed({
      settings: { apiserver_port: before },
      servers: [{ hostname: 'cp-9', ip_addresses: loopback(149), apiserver: 'ok' }],
    })
    t.equal(control.state().settings.apiserver_port, before)
    t.equal(await probe('127.0.0.149'), 200)
    t.equal(await probe('127.0.0.141'), 'ECONNREFUSED', 'of the account before')
  })
})
