/** Measures how long an object waits for its next run when the worker that runs it is killed. Run it with node; prints milliseconds. */
import { once } from 'node:events'
import { openClusterQueues } from '../../src/queue/cluster-queue.ts'
import { createEnqueuer } from '../../src/queue/enqueue.ts'
import { producerConnection, whenReady } from '../../src/queue/redis.ts'
import { eventually } from '../queue/rig.ts'
import { startRedis } from '../redis.ts'
import { children } from './children.ts'

const server = await startRedis()
const redis = producerConnection({ url: server.url, prefix: 'windlass' })
await whenReady(redis, 2000)
const queues = openClusterQueues(redis, 'windlass')
const workers = children(server.url)
let runner = workers.start('w0')
await createEnqueuer(queues).enqueue('c', [
  { kind: 'service', key: 'Service/default/web', cause: 'hang', urgency: 'user' },
])
await eventually(async () => (await workers.log()).includes('start w0'))
for (let round = 1; round <= 5; round++) {
  const next = workers.start(`w${round}`)
  // The next one is up and idle for longer than a lock's life, and the kill falls anywhere between two renewals.
  await new Promise((resolve) => setTimeout(resolve, 3000 + Math.random() * 2000))
  const gone = once(runner, 'exit')
  const killedMs = performance.now()
  runner.kill('SIGKILL')
  await gone
  await eventually(async () => (await workers.log()).includes(`start w${round}`))
  console.log(`killed, and run again after ${Math.round(performance.now() - killedMs)} ms`)
  runner = next
}
await workers.end()
await queues.close()
redis.disconnect()
await server.stop()
