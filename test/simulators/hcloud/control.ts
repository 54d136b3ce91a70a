import { answerByName } from '../control.ts'
import type { Hub, LogEntry } from '../hub.ts'
import type { Cloud } from './cloud.ts'
import { mutate, seed } from './seed.ts'
import type { TrafficGap } from './traffic.ts'
import { stateView } from './views.ts'

type Json = Record<string, unknown>

/** How a test arranges and looks at the cloud; the same by HTTP under /_sim/ and as methods. */
export interface Control {
  seed: (account: Json) => void
  mutate: (patch: Json) => void
  /** one fault, several, or {clear: true} */
  fault: (fault: object | object[]) => void
  state: () => Record<string, unknown[]>
  activity: () => { revision: number; inflight: number; requests: number }
  counters: () => { calls: Record<string, number>; rejected: Record<string, number> }
  log: () => LogEntry[]
  trafficGaps: () => TrafficGap[]
  /** an empty account, no faults, nothing counted */
  reset: () => void
}

export function createControl(
  hub: () => Hub<Cloud>,
  tokens: Map<string, { readonly: boolean }>,
  reset: () => void,
): Control {
  return {
    seed: (account) => seed(hub().cloud, withoutTokens(account, tokens)),
    mutate: (patch) => mutate(hub().cloud, withoutTokens(patch, tokens)),
    fault: (fault) => {
      for (const item of [fault].flat()) hub().faults.add(item)
    },
    state: () => stateView(hub().cloud),
    activity: () => hub().activity(),
    counters: () => ({ calls: hub().calls, rejected: hub().rejected }),
    log: () => hub().log,
    trafficGaps: () => hub().cloud.traffic.gaps,
    reset,
  }
}

/** Answers a request for /_sim/NAME. */
export async function answerControl(
  control: Control,
  method: string,
  name: string,
  text: string,
): Promise<[number, unknown]> {
  const reads: Record<string, () => unknown> = {
    state: control.state,
    activity: control.activity,
    counters: control.counters,
    log: control.log,
    'traffic-gaps': control.trafficGaps,
  }
  const writes: Record<string, (body: Json) => void> = {
    seed: control.seed,
    mutate: control.mutate,
    fault: control.fault,
    reset: control.reset,
  }
  return await answerByName(reads, writes, method, name, text)
}

/** tokens: [{token, readonly?, delete?}] belong to the front door, not to the account's resources. */
function withoutTokens(given: Json, tokens: Map<string, { readonly: boolean }>): Json {
  const { tokens: changes, ...rest } = given
  for (const change of (changes as { token: string; readonly?: boolean; delete?: boolean }[]) ?? []) {
    if (change.delete) tokens.delete(change.token)
    else tokens.set(change.token, { readonly: change.readonly === true })
  }
  return rest
}
