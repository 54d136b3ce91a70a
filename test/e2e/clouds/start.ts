import { startCherry } from './cherry.ts'
import type { CloudContext, SimulatedCloud } from './cloud.ts'
import { startHcloud } from './hcloud.ts'

/** The cloud that the case names. */
export async function startCloud(context: CloudContext): Promise<SimulatedCloud> {
  const start = clouds[context.definition.cloud]
  if (!start) throw new Error(`no simulator for the cloud ${context.definition.cloud}`)
  return await start(context)
}

const clouds: Readonly<Record<string, (context: CloudContext) => Promise<SimulatedCloud>>> = {
  hcloud: startHcloud,
  cherry: startCherry,
}
