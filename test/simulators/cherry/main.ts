import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { startCherrySimulator } from './simulator.ts'

/** Runs the simulator until SIGTERM or SIGINT; prints its addresses as one line of JSON. */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    token: { type: 'string' },
    options: { type: 'string', default: '{}' },
    'ca-out': { type: 'string' },
  },
})

const simulator = await startCherrySimulator({
  ...(values.token === undefined ? {} : { token: values.token }),
  port: Number(values.port),
  options: JSON.parse(values.options),
})
const { url, apiUrl, ca } = simulator
if (values['ca-out'] !== undefined) writeFileSync(values['ca-out'], ca)
console.log(JSON.stringify({ url, apiUrl }))

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void simulator.close())
