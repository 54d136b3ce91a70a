import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import t from 'tap'
import { createLogger } from '../../src/telemetry/log.ts'
import { beginSpan, startTraces, stopTraces } from '../../src/telemetry/traces.ts'

t.test('a receiver that does not take traces is told once in a while, and when it takes them again', async (t) => {
  let status = 400
  let batches = 0
  const receiver = createServer((request, answer) => {
    request.resume()
    request.once('end', () => {
      batches++
      if (status === 0) return
      answer.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    receiver.close()
    receiver.closeAllConnections()
  })
  const said: { level: string; msg: string; error?: string; lostBatches: number }[] = []
  const destination = new Writable({
    write(line, _encoding, done) {
      said.push(JSON.parse(String(line)))
      done()
    },
  })
  process.env.OTEL_BSP_SCHEDULE_DELAY = '20'
  const at = `127.0.0.1:${(receiver.address() as AddressInfo).port}`
  const log = createLogger({ destination })
  await startTraces({ endpoint: `http://user:hidden@${at}`, service: 'test', version: '1', ratio: 1, log })
  t.teardown(stopTraces)
  const sendUntil = async (reached: () => boolean) => {
    while (!reached()) {
      beginSpan('one').end()
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
  }
  await sendUntil(() => batches >= 4 && said.length > 0)
  t.match(said, [{ level: 'warn', receiver: at, msg: /^traces can not be sent: check OTEL_EXPORTER_OTLP_ENDPOINT/ }])
  t.equal(said.length, 1, 'not for each batch')
  t.notMatch(JSON.stringify(said), 'hidden')
  t.notMatch(said[0]?.error, 'stack')

  status = 200
  await sendUntil(() => said.length > 1)
  t.match(said[1], { level: 'info', msg: 'traces are sent again' })
  t.ok((said[1]?.lostBatches ?? 0) > 1)

  status = 0
  await sendUntil(() => said.length > 2)
  t.match(said[2], { level: 'warn', error: 'no answer within 3000 ms' }, 'before the exporter has given up')
})
