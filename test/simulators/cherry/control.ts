import { answerByName } from '../control.ts'
import type { Hub, LogEntry } from '../hub.ts'
import type { CherryAccount } from './account.ts'
import { readFault } from './faults.ts'
import type { HealthEndpoints, Probe } from './health.ts'
import { mutate, seed } from './seed.ts'
import { type StateView, stateView } from './views.ts'

type Json = Record<string, unknown>

/** How a test arranges and looks at the cloud; the same by HTTP under /_sim/ and as methods. */
export interface Control {
  /** Resolves once the API servers of seeded control plane nodes listen. */
  seed: (account: Json) => Promise<void>
  mutate: (patch: Json) => Promise<void>
  /** one fault, several, {clear: true} or 'clear' */
  fault: (fault: object | object[] | 'clear') => void
  state: () => StateView
  activity: () => { revision: number; inflight: number; requests: number }
  counters: () => { calls: Record<string, number>; rejected: Record<string, number> }
  log: () => LogEntry[]
  /** what came to the API servers of control plane nodes */
  probes: () => Probe[]
  /** an empty account, no faults, nothing counted */
  reset: () => Promise<void>
}

export function createControl(
  hub: () => Hub<CherryAccount>,
  health: HealthEndpoints,
  reset: () => Promise<void>,
): Control {
  return {
    seed: async (account) => {
      seed(hub().cloud, structuredClone(account))
      await health.follow()
    },
    mutate: async (patch) => {
      mutate(hub().cloud, structuredClone(patch))
      await health.follow()
    },
    fault: (fault) => {
      for (const item of [fault].flat()) hub().faults.add(readFault(item))
    },
    state: () => stateView(hub().cloud, health.port),
    activity: () => hub().activity(),
    counters: () => ({ calls: hub().calls, rejected: hub().rejected }),
    log: () => hub().log,
    probes: () => health.probes,
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
  if (method === 'DELETE' && name === 'fault') {
    control.fault('clear')
    return [200, {}]
  }
  const { state, activity, counters, log, probes, seed, mutate, fault, reset } = control
  return await answerByName(
    { state, activity, counters, log, probes },
    { seed, mutate, fault, reset },
    method,
    name,
    text,
  )
}
