/**
 * `npm run demo`: everything on one machine. A simulated Kubernetes API and a simulated Hetzner account, real Redis, and Windlass' own
 * processes between them: a server, a forwarder, two workers.
 */
import { parseArgs } from 'node:util'
import { DASHBOARD, eventually, isInitialised, startWorld, type World } from '../integration/world.ts'
import { watchWorld } from './watch.ts'

const { values } = parseArgs({
  options: {
    once: { type: 'boolean', default: false },
    kubernetes: { type: 'string', default: 'simulator' },
  },
})

const NODES = 4

const say = (text: string) => console.log(text)

async function main(): Promise<void> {
  say('\nWindlass demo: a cluster, a Hetzner account and Redis, all on this machine\n')
  const started = performance.now()
  const flavour = values.kubernetes === 'apiserver' ? 'apiserver' : 'simulator'
  const world = await startWorld({ kubernetes: flavour, hcloud: { action_ms: 800 } })
  const ended = Promise.withResolvers<void>()
  process.once('SIGINT', () => ended.resolve())
  process.once('SIGTERM', () => ended.resolve())
  try {
    const interrupted = ended.promise.then(() => 'interrupted' as const)
    if ((await Promise.race([play(world, started), interrupted])) !== 'interrupted' && !values.once) {
      say('\nIt goes on until Ctrl-C: look at the dashboard, or start `npm run demo` again.')
      await ended.promise
    }
  } finally {
    say('\nStopping all processes …')
    await world.stop()
  }
}

async function play(world: World, started: number): Promise<void> {
  await world.hcloud.control.seed({ servers: Array.from({ length: NODES }, (_, i) => server(i)) })
  const windlass = world.start('server')
  const { host, port } = await windlass.logged('the server listens')
  world.start('forwarder', { env: { WINDLASS_SERVER_URL: `http://${host}:${port}` } })
  world.start('worker')
  world.start('worker')
  say(
    `  ${world.flavour === 'apiserver' ? 'real kube-apiserver' : 'simulated Kubernetes API'}, simulated Hetzner Cloud, Redis on port ${world.redis.port}`,
  )
  say('  windlass server, forwarder, worker, worker\n')
  say(`  Queue dashboard   http://${host}:${port}/queues`)
  say(`  Login             ${DASHBOARD.user} / ${DASHBOARD.password}\n`)

  const watching = watchWorld(world, (line) =>
    say(`  ${((performance.now() - started) / 1000).toFixed(1).padStart(5)} s  ${line}`),
  )
  try {
    for (let i = 0; i < NODES - 1; i++) await world.addNode(`worker-${i + 1}`)
    await world.addService('shop')
    await settled(world, NODES - 1)
    await world.addNode(`worker-${NODES}`)
    await settled(world, NODES)
    await watching.look()
    say('\nAll is reconciled: every node is initialised, and the load balancer has every node as a target.')
  } finally {
    watching.stop()
  }
}

const server = (i: number) => ({
  id: i + 1,
  name: `worker-${i + 1}`,
  location: ['fsn1', 'nbg1', 'hel1'][i % 3],
  server_type: 'cx22',
})

async function settled(world: World, nodes: number): Promise<void> {
  await eventually(async () => {
    const { load_balancers } = await world.account()
    const ready = (await world.nodes()).filter(isInitialised)
    const published = (await world.services()).every(({ status }) => status?.loadBalancer?.ingress?.length)
    return published && ready.length === nodes && load_balancers[0]?.targets.length === nodes
  }, 'everything is reconciled')
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
