/**
 * `npm run bench`: what Windlass needs for the two things a cluster does most, on the real kube-apiserver, with everything on this machine.
 * Prints figures and asserts nothing. The clock starts when all roles are ready.
 */
import { parseArgs } from 'node:util'
import { benchNodes } from './nodes.ts'
import { type Figures, printFigures } from './report.ts'
import { benchServices } from './services.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '500' },
    services: { type: 'string', default: '40' },
    only: { type: 'string' },
    simulator: { type: 'boolean', default: false },
  },
})

const kubernetes = values.simulator ? 'simulator' : 'apiserver'

const figures: Figures[] = []
if (values.only !== 'services') figures.push(await benchNodes({ kubernetes, count: Number(values.nodes) }))
if (values.only !== 'nodes') figures.push(await benchServices({ kubernetes, count: Number(values.services) }))
printFigures(figures)
process.exit(0)
