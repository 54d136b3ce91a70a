import { ApiError } from './errors.ts'

export interface ResourceRef {
  id: number
  type: 'load_balancer' | 'network' | 'certificate'
}

export interface Action {
  id: number
  command: string
  status: 'running' | 'success' | 'error'
  progress: number
  started: string
  finished: string | null
  resources: ResourceRef[]
  error: { code: string; message: string } | null
}

export interface Start {
  command: string
  resources: ResourceRef[]
  /** ms until the end; 0 is over before the answer, Infinity never ends */
  durationMs: number
  /** what the action does, done at its end; may throw an ApiError, which then is the action's error */
  effect: () => void
  /** undoes what the request did when the action ends with an error */
  undo?: () => void
  /** the action ends with this error and has no effect */
  fails?: { code: string; message: string }
}

/** Ids beyond 32 bits, as the real ones are. */
const firstId = 30_000_000_001

/** All actions of the account. A running one locks its resources. */
export class ActionBook {
  readonly all: Action[] = []
  #running = new Set<Action>()
  #timers = new Map<number, NodeJS.Timeout>()
  #endless = new Map<number, Start>()
  #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** Running actions that will end by themselves. */
  get inFlight(): number {
    return this.#timers.size
  }

  start(given: Start): Action {
    const action: Action = {
      id: firstId + this.all.length,
      command: given.command,
      status: 'running',
      progress: 0,
      started: new Date().toISOString(),
      finished: null,
      resources: given.resources,
      error: null,
    }
    this.all.push(action)
    this.#running.add(action)
    if (given.durationMs === Number.POSITIVE_INFINITY) this.#endless.set(action.id, given)
    else if (given.durationMs <= 0) this.#end(action, given)
    else {
      this.#timers.set(
        action.id,
        setTimeout(() => this.#end(action, given), given.durationMs),
      )
    }
    return action
  }

  /** Ends an action that would never end, as it would have ended. */
  release(id: number): void {
    const action = this.all.find((candidate) => candidate.id === id)
    const given = this.#endless.get(id)
    this.#endless.delete(id)
    if (action && given) this.#end(action, given)
  }

  isBusy(ref: ResourceRef): boolean {
    return [...this.#running].some((action) =>
      action.resources.some((own) => own.id === ref.id && own.type === ref.type),
    )
  }

  /** A load balancer or certificate with a running action answers 423 locked, a network 409 conflict. */
  assertFree(ref: ResourceRef): void {
    if (!this.isBusy(ref)) return
    if (ref.type === 'network') throw new ApiError('conflict', 'another change of the network is running, please retry')
    throw new ApiError('locked', `${ref.type} is locked: an action is running`)
  }

  of(ref: ResourceRef): Action[] {
    return this.all.filter((action) => action.resources.some((own) => own.id === ref.id && own.type === ref.type))
  }

  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  #end(action: Action, given: Start): void {
    this.#timers.delete(action.id)
    let error = given.fails
    if (!error) {
      try {
        given.effect()
      } catch (cause) {
        if (!(cause instanceof ApiError)) throw cause
        error = { code: cause.code, message: cause.message }
      }
    }
    if (error) given.undo?.()
    this.#finish(action, error)
    this.#onChange()
  }

  #finish(action: Action, error: Action['error'] | undefined): void {
    this.#running.delete(action)
    action.status = error ? 'error' : 'success'
    action.progress = 100
    action.finished = new Date().toISOString()
    action.error = error ?? null
  }
}
