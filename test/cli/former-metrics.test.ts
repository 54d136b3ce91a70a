import t from 'tap'
import { eventually, startWorld } from '../integration/world.ts'

t.test("metrics are served where Hetzner's controller served them, by its names", async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const env = { HCLOUD_METRICS_ENABLED: 'true', HCLOUD_METRICS_ADDRESS: '127.0.0.1:0' }
  const worker = world.start('worker', { env })
  const ports = new Set<unknown>()
  while (ports.size < 2) {
    for (const { msg, port } of worker.lines()) if (msg === 'probes are answered') ports.add(port)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  for (const port of ports) {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
    t.equal(answer.status, 200)
    t.match(await answer.text(), /^hcloud_api_requests_total\{.*api_endpoint="\/locations".*\} 1$/m)
  }
})

t.test('all in one serves the numbers of its forwarder too, at either address', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const all = world.start('all', { env: { HCLOUD_METRICS_ENABLED: 'true', HCLOUD_METRICS_ADDRESS: '127.0.0.1:0' } })
  const ports = [await all.logged('the server listens'), await all.logged('probes are answered')].map(
    ({ port }) => port,
  )
  for (const port of ports)
    await eventually(async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      return (
        /^windlass_forwarder_ready\{cluster="default"\} 1$/m.test(text) &&
        /^windlass_forwarder_last_watch_timestamp_seconds\{.*\} \d/m.test(text)
      )
    }, `the forwarder's numbers at port ${port}`)
  t.equal(ports.length, 2)
})

t.test('an address that is taken is said, and is no reason not to start', async (t) => {
  const world = await startWorld({ kubernetes: 'simulator' })
  t.teardown(() => world.stop())
  const taken = `127.0.0.1:${world.redis.port}`
  const worker = world.start('worker', { env: { HCLOUD_METRICS_ENABLED: 'true', HCLOUD_METRICS_ADDRESS: taken } })
  const said = await worker.logged('metrics are not served at the address of HCLOUD_METRICS_ADDRESS')
  t.match(String(said.error), /EADDRINUSE/)
  worker.signal('SIGTERM')
  t.equal(await worker.exited, 0)
})
