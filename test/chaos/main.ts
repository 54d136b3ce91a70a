/**
 * `node test/chaos/main.ts`: 50 nodes join and 10 Services appear while every role is killed with -9 at random moments and Redis loses
 * everything once in the middle. Then the end state is compared with what it must be, and the times from a kill to the next run are printed.
 * Ends with `N passed, N failed`; `--seed N` repeats the order of the kills.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { eventually, isInitialised, startWorld, type World } from '../integration/world.ts'
import { freePort } from '../redis.ts'
import { checkEnd } from './check.ts'
import { random } from './random.ts'
import { failedRuns, takeOverTimes } from './takeover-times.ts'
import { Troupe } from './troupe.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '50' },
    services: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    simulator: { type: 'boolean', default: false },
  },
})

const nodes = Number(values.nodes)
const services = Number(values.services)
const dice = random(Number(values.seed))

/** Kills go on for so long at least, whatever is done by then. */
const TROUBLE_MS = 25_000
/** Between two kills: about as long as a process takes to start and to get into its work. */
const KILL_EVERY_MS = { least: 500, most: 2000 }

async function main(): Promise<number> {
  const world = await startWorld({
    kubernetes: values.simulator ? 'simulator' : 'apiserver',
    hcloud: { action_ms: 500, max_load_balancers: services + 10 },
  })
  const troupe = new Troupe(world, await freePort())
  process.once('SIGINT', () => void stop(world, troupe).then(() => process.exit(130)))
  try {
    console.log(`${nodes} nodes, ${services} Services, ${world.flavour}, seed ${values.seed}`)
    world.hcloud.control.seed({
      servers: Array.from({ length: nodes }, (_, i) => ({ id: i + 1, name: `node-${i}` })),
    })
    troupe.startAll()
    const trouble = makeTrouble(world, troupe)
    await joinAndAppear(world)
    await trouble
    troupe.peace()
    console.log(`kills: ${JSON.stringify(troupe.kills)}, and Redis lost everything once`)
    const calm = performance.now()
    await settle(world)
    console.log(`settled ${((performance.now() - calm) / 1000).toFixed(1)} s after the last kill`)
    for (const [what, count] of failedRuns(troupe)) console.log(`  ${count} × ${what}`)
    const checks = await checkEnd(world, { nodes, services })
    for (const { what, ok, detail } of checks) console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}${ok ? '' : `: ${detail}`}`)
    const times = takeOverTimes(troupe)
    console.log(
      `kill -9 of a worker to the next run of an object that it worked on: ${times.length} times, ` +
        `median ${format(times[Math.floor(times.length / 2)])}, longest ${format(times.at(-1))}`,
    )
    const late = times.filter((ms) => ms > 10_000)
    console.log(`${late.length === 0 ? 'ok  ' : 'FAIL'} every such object runs again within 10 s`)
    const failed = checks.filter(({ ok }) => !ok).length + (late.length > 0 ? 1 : 0)
    console.log(`${checks.length + 1 - failed} passed, ${failed} failed`)
    return failed
  } finally {
    await stop(world, troupe)
  }
}

async function stop(world: World, troupe: Troupe): Promise<void> {
  troupe.peace()
  await world.stop()
}

async function makeTrouble(world: World, troupe: Troupe): Promise<void> {
  const begun = performance.now()
  let flushed = false
  while (performance.now() - begun < TROUBLE_MS) {
    await delay(dice.between(KILL_EVERY_MS.least, KILL_EVERY_MS.most))
    troupe.kill(dice.pick(troupe.roles))
    if (!flushed && performance.now() - begun > TROUBLE_MS / 2) {
      flushed = true
      await world.redis.flush()
    }
  }
}

async function joinAndAppear(world: World): Promise<void> {
  const things = [
    ...Array.from({ length: nodes }, (_, i) => () => world.addNode(`node-${i}`, { images: 5 })),
    ...Array.from({ length: services }, (_, i) => async () => void (await world.addService(`service-${i}`))),
  ]
  for (const create of dice.shuffle(things)) {
    await create()
    await delay(dice.between(0, (TROUBLE_MS * 1.4) / things.length))
  }
}

async function settle(world: World): Promise<void> {
  await eventually(
    async () => {
      const { load_balancers } = await world.account()
      return (
        (await world.nodes()).filter(isInitialised).length === nodes &&
        (await world.services()).every(({ status }) => status?.loadBalancer?.ingress?.length) &&
        load_balancers.every(({ targets }) => targets.length === nodes)
      )
    },
    'everything is in order',
    120_000,
  ).catch((error) => console.log(String(error)))
  // What would still be made twice gets the time to show.
  await delay(3000)
}

const format = (ms: number | undefined) => (ms === undefined ? '-' : `${(ms / 1000).toFixed(1)} s`)

process.exit((await main()) > 0 ? 1 : 0)
