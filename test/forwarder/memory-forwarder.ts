/* The process that memory.ts measures: a forwarder and nothing else. */
import { keepHeapSmall } from '../../src/cli/small-heap.ts'
import { startForwarder } from '../../src/forwarder/forwarder.ts'
import { kubernetesSource } from '../../src/forwarder/source.ts'
import { connect } from '../../src/kubernetes/connection.ts'
import { createLogger } from '../../src/telemetry/log.ts'

const [, , kubernetesUrl = '', serverUrl = '', key = ''] = process.argv
if (!key) process.exit()
keepHeapSmall(1)
const log = createLogger({ level: 'warn' })
const connection = await connect({ server: kubernetesUrl }, log, { env: {} })
const source = kubernetesSource(connection, log)
const forwarder = startForwarder({ cluster: 'prod', keys: [key], serverUrl, source, log })
await forwarder.ready
process.send?.('ready')
process.on('message', () => {
  const { rss, heapUsed } = process.memoryUsage()
  process.send?.({ ...forwarder.stats(), rss, heapUsed })
})
