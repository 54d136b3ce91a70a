/**
 * A worker in a process of its own, so that it can be killed, frozen and blocked. Writes what it does to the list `log` in Redis, whose order
 * is the truth: `start <name>` when a run begins, `write <name>` for each write that the gate let through, `refused <name>` for others,
 * `gave-up <name>` for a job that ends without being run. The cause of a trigger says what the run does.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { type Handler, startWorker } from '../../src/worker/host.ts'
import type { Timings } from '../../src/worker/timings.ts'

export interface ChildOptions {
  name: string
  url: string
  timings: Partial<Timings>
}

const options = JSON.parse(process.argv[2] ?? '') as ChildOptions
const log = new Redis(options.url)
const note = (what: string) => log.rpush('log', `${what} ${options.name}`)

const handler: Handler = async ({ cause, call }) => {
  await note('start')
  const write = async () => {
    try {
      await call.beforeWrite('write')
      await note('write')
    } catch (error) {
      await note('refused')
      throw error
    }
  }
  await write()
  if (cause === 'hang') await sleep(600_000, undefined, { signal: call.signal })
  if (cause.startsWith('block ')) {
    // Whoever runs it second does not.
    if ((await log.set('blocked', '1', 'NX')) === 'OK') {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(cause.slice(6)))
    }
  }
  if (cause === 'steps') {
    for (let step = 0; step < 40; step++) {
      await sleep(25)
      await write()
    }
  }
  await write()
  return {}
}

const host = startWorker(
  {
    redis: { url: options.url, prefix: 'windlass' },
    clusters: ['c'],
    handlers: {
      node: handler,
      service: handler,
      targets: handler,
      route: handler,
      addresses: handler,
      resync: handler,
    },
    concurrency: 5,
    log: pino({ level: 'silent' }),
    graceMs: 1000,
    onRun({ givenUp }) {
      if (givenUp) void note('gave-up')
    },
  },
  { timings: options.timings },
)
process.once('SIGTERM', async () => {
  await host.stop()
  log.disconnect()
})
