/**
 * `npm run bench`: what Windlass needs for what a cluster does most, on the real kube-apiserver, with everything on this machine.
 * Prints figures and asserts none of them; it fails if something came out wrong. The clock starts when all roles are ready.
 */
import { parseArgs } from 'node:util'
import { benchCherry } from './cherry.ts'
import { benchFailOver } from './fail-over.ts'
import { benchIdle } from './idle.ts'
import { benchNodes } from './nodes.ts'
import { type Figures, printFigures } from './report.ts'
import { benchServices } from './services.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '500' },
    services: { type: 'string', default: '40' },
    runs: { type: 'string', default: '20' },
    only: { type: 'string' },
    simulator: { type: 'boolean', default: false },
  },
})

const kubernetes = values.simulator ? 'simulator' : 'apiserver'

/** One after the other: they share the machine. */
const benches: { name: string; run: () => Promise<Figures> }[] = [
  { name: 'nodes', run: () => benchNodes({ kubernetes, count: Number(values.nodes) }) },
  { name: 'services', run: () => benchServices({ kubernetes, count: Number(values.services) }) },
  { name: 'idle', run: () => benchIdle({ kubernetes }) },
  { name: 'cherry', run: () => benchCherry({ kubernetes, perSecond: 0 }) },
  { name: 'cherry', run: () => benchCherry({ kubernetes, perSecond: 4 }) },
  { name: 'fail-over', run: () => benchFailOver({ kubernetes, runs: Number(values.runs) }) },
]

const names = [...new Set(benches.map(({ name }) => name))]
if (values.only !== undefined && !names.includes(values.only)) {
  console.error(`--only takes one of ${names.join(', ')}`)
  process.exit(2)
}
const figures: Figures[] = []
for (const { name, run } of benches) if ((values.only ?? name) === name) figures.push(await run())
printFigures(figures)
process.exit(figures.some(({ wrong = [] }) => wrong.length > 0) ? 1 : 0)
