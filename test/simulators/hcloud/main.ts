import { parseArgs } from 'node:util'
import { startHcloudSimulator } from './simulator.ts'

/** Runs the simulator until SIGTERM or SIGINT; prints its addresses as one line of JSON. */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    'robot-port': { type: 'string', default: '0' },
    token: { type: 'string' },
    'robot-user': { type: 'string', default: 'robot' },
    'robot-password': { type: 'string', default: 'secret' },
    options: { type: 'string', default: '{}' },
  },
})

const simulator = await startHcloudSimulator({
  ...(values.token === undefined ? {} : { token: values.token }),
  port: Number(values.port),
  robotPort: Number(values['robot-port']),
  robot: { user: values['robot-user'], password: values['robot-password'] },
  options: JSON.parse(values.options),
})
const { url, apiUrl, robotUrl, metadataUrl } = simulator
console.log(JSON.stringify({ url, apiUrl, robotUrl, metadataUrl }))

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void simulator.close())
