import type { Call } from '../../call.ts'
import { aborted, throttled, transient, WindlassError } from '../../errors.ts'
import type { Action } from './model.ts'

export interface ActionPollerOptions {
  get(ids: readonly number[], call: Call): Promise<Action[]>
  /** Milliseconds from the start of waiting until a run no longer holds its place for an action. */
  patienceMs?: number
}

export interface ActionPoller {
  /**
   * Resolves when all actions have succeeded. Throws `transient` with the action's own code for one that failed, and `throttled` for
   * one that does not end: the run leaves, and a later one goes on from the state that it finds then.
   */
  wait(actions: readonly Action[], call: Call): Promise<void>
  close(): void
}

const IDS_PER_REQUEST = 25
const FIRST_POLL_MS = 150
const INTERVALS_MS = [350, 500, 500, 500, 750, 1000, 1500]
const LONGEST_INTERVAL_MS = 2000
const DEFAULT_PATIENCE_MS = 15_000
const COME_BACK_MS = 5000
/** Waits that are due so soon are asked for along with the first. */
const TOGETHER_MS = 120
const MISSES = 3

interface Waiting {
  id: number
  command: string
  call: Call
  polls: number
  misses: number
  dueAt: number
  deadline: number
  resolve(): void
  reject(error: Error): void
}

/** Asks for the actions of all runs of this process together. */
export function createActionPoller(options: ActionPollerOptions): ActionPoller {
  const { get, patienceMs = DEFAULT_PATIENCE_MS } = options
  const waiting = new Set<Waiting>()
  let timer: NodeJS.Timeout | undefined
  let polling = false

  function schedule(): void {
    clearTimeout(timer)
    if (polling || waiting.size === 0) return
    const first = Math.min(...[...waiting].map(({ dueAt }) => dueAt))
    timer = setTimeout(() => void poll(), Math.max(0, first - performance.now()))
  }

  async function poll(): Promise<void> {
    polling = true
    const now = performance.now()
    const due = [...waiting].filter(({ dueAt }) => dueAt <= now + TOGETHER_MS).sort((a, b) => a.dueAt - b.dueAt)
    for (let at = 0; at < due.length; at += IDS_PER_REQUEST) await ask(due.slice(at, at + IDS_PER_REQUEST))
    polling = false
    schedule()
  }

  async function ask(batch: Waiting[]): Promise<void> {
    const [first] = batch
    if (!first) return
    const urgency = batch.some(({ call }) => call.urgency === 'user') ? 'user' : 'background'
    // The request belongs to many runs: none of them may end it.
    const call: Call = { ...first.call, urgency, signal: new AbortController().signal }
    let found: Action[] = []
    try {
      found = await get([...new Set(batch.map(({ id }) => id))], call)
    } catch (error) {
      // A poll that failed says nothing about the action; only a refused or blocked credential makes waiting pointless.
      const lasting = error instanceof WindlassError && error.kind !== 'transient'
      for (const one of batch) {
        if (lasting) settle(one, () => one.reject(error))
        else again(one)
      }
      return
    }
    const byId = new Map(found.map((action) => [action.id, action]))
    for (const one of batch) {
      const action = byId.get(one.id)
      if (!action && ++one.misses >= MISSES)
        settle(one, () => one.reject(transient(`Hetzner Cloud: action ${one.id} (${one.command}) is not found`)))
      else if (action?.status === 'success') settle(one, () => one.resolve())
      else if (action?.status === 'error') settle(one, () => one.reject(failed(action)))
      // Also one in a state that nobody knows yet.
      else again(one)
    }
  }

  function again(one: Waiting): void {
    const now = performance.now()
    if (now >= one.deadline) {
      settle(one, () =>
        one.reject(
          throttled(
            `Hetzner Cloud: action ${one.id} (${one.command}) is still running; looking again soon`,
            Date.now() + COME_BACK_MS,
            { code: 'action_running' },
          ),
        ),
      )
      return
    }
    one.dueAt = now + (INTERVALS_MS[one.polls++] ?? LONGEST_INTERVAL_MS)
  }

  function settle(one: Waiting, end: () => void): void {
    if (waiting.delete(one)) end()
  }

  const waitFor = (action: Action, call: Call) =>
    new Promise<void>((resolve, reject) => {
      const now = performance.now()
      const onAbort = () =>
        settle(one, () =>
          one.reject(aborted('the run was stopped while it waited for an action', { cause: call.signal.reason })),
        )
      const one: Waiting = {
        id: action.id,
        command: action.command,
        call,
        polls: 0,
        misses: 0,
        dueAt: now + FIRST_POLL_MS,
        deadline: now + patienceMs,
        resolve: () => {
          call.signal.removeEventListener('abort', onAbort)
          resolve()
        },
        reject: (error) => {
          call.signal.removeEventListener('abort', onAbort)
          reject(error)
        },
      }
      waiting.add(one)
      call.signal.addEventListener('abort', onAbort, { once: true })
      if (call.signal.aborted) onAbort()
      schedule()
    })

  return {
    async wait(actions, call) {
      const results = await Promise.allSettled(
        actions.map((action) => {
          if (action.status === 'success') return Promise.resolve()
          return action.status === 'error' ? Promise.reject(failed(action)) : waitFor(action, call)
        }),
      )
      const refused = results.find((result) => result.status === 'rejected')
      if (refused) throw refused.reason
    },
    close() {
      clearTimeout(timer)
      for (const one of waiting) settle(one, () => one.reject(aborted('the cloud client was closed')))
    },
  }
}

function failed({ id, command, error }: Action): WindlassError {
  const { code = 'action_failed', message = 'Action failed' } = error ?? {}
  return transient(`Hetzner Cloud: ${command}: ${message} (${code}, ${id})`, { code })
}
