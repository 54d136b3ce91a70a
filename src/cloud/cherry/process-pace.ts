import { createPace, type Pace } from './pace.ts'

const paces = new Map<string, Pace>()

/**
 * Where there is no Redis to share a pace by: one for each account in this process, whoever asks. Clusters of one account that a command
 * looks at one after the other would else send more than Cherry takes.
 */
export function processPace(apiUrl: string, credential: string): Pace {
  const key = `${apiUrl} ${credential}`
  const pace = paces.get(key) ?? createPace({ prefix: '', credential })
  paces.set(key, pace)
  return pace
}
