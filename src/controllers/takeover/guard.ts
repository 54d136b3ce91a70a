import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../call.ts'
import { messageOf, WindlassError } from '../../errors.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import type { EventRecorder } from '../../kubernetes/events.ts'
import type { ObjectMeta } from '../../kubernetes/objects.ts'
import { LEASES, NAMESPACES, NODES, SERVICES } from '../../kubernetes/resources.ts'
import type { Logger } from '../../telemetry/log.ts'
import { COMPONENT } from '../cluster.ts'
import { createLeaseWatch, LEASE } from './lease.ts'
import { type ForeignWrite, newestForeignWrite } from './writes.ts'

export interface GuardOptions {
  kubernetes: KubernetesApi
  recorder: EventRecorder
  log: Logger
  /** Called once each time that another controller is found, after it was said in log and Event. */
  onFound?(): Promise<void>
  /** Times of the tests are shorter. */
  pace?: Partial<GuardPace>
}

export interface GuardPace {
  /** Between two looks while it is not known that nobody else works. */
  closeLookMs: number
  /** Between two looks otherwise. */
  calmLookMs: number
  /** So long after another controller's last write it counts as running. */
  quietMs: number
}

const PACE: GuardPace = { closeLookMs: 1500, calmLookMs: 20_000, quietMs: 60_000 }

/**
 * Keeps a cluster's workers from writing while another cloud controller manager works on the same objects: two of them would take
 * targets and labels from each other. Found by a lease that is being renewed, and by writes under another controller's name.
 */
export class TakeoverGuard {
  readonly #options: GuardOptions
  readonly #pace: GuardPace
  readonly #call: Call
  readonly #stopped = new AbortController()
  readonly #lease = createLeaseWatch()
  #problem: string | undefined = 'It is not known yet whether another cloud controller manager runs'
  /** The newest write of another controller that is known; undefined until all objects were looked at. */
  #newestWriteMs: number | undefined
  #writer: { manager: string; untilMs: number } | undefined
  #found = false
  #listedAtMs = Number.NEGATIVE_INFINITY
  #leaseForbidden = false

  constructor(options: GuardOptions) {
    this.#options = options
    this.#pace = { ...PACE, ...options.pace }
    this.#call = {
      signal: this.#stopped.signal,
      urgency: 'user',
      log: options.log,
      beforeWrite: async (what) => {
        throw new TypeError(`${what}: a guard writes nothing`)
      },
    }
  }

  /** Why nothing may be written now; undefined when it may. */
  get problem(): string | undefined {
    return this.#problem
  }

  /**
   * The same for work that must go on while Kubernetes does not answer, and so can't be asked: only another controller that was found
   * stops it.
   */
  get rival(): string | undefined {
    return this.#found ? this.#problem : undefined
  }

  /** An object that somebody read. */
  see(metadata: Pick<ObjectMeta, 'managedFields'>): void {
    const write = newestForeignWrite(metadata)
    if (write === undefined || this.#newestWriteMs === undefined || write.atMs <= this.#newestWriteMs) return
    this.#newestWriteMs = write.atMs
    this.#suspect(write, this.#pace.quietMs)
    this.#settle(this.#writerProblem())
  }

  /** One look. Where nobody else holds the lease and nobody else wrote of late, it is the only one needed. */
  async look(): Promise<void> {
    try {
      // Later ones are seen by those who work; only while all work waits somebody else has to look.
      const due = performance.now() - this.#listedAtMs >= this.#pace.quietMs / 6
      if (this.#newestWriteMs === undefined || (this.#writer && due)) await this.#lookAtWrites()
      this.#settle((await this.#leaseProblem()) ?? this.#writerProblem())
    } catch (error) {
      // What was known stays: an API server that does not answer takes no writes either.
      if (!this.#stopped.signal.aborted)
        this.#options.log.warn({ error: messageOf(error) }, 'could not look for another cloud controller manager')
    }
  }

  /** Looks again and again until `stop`. */
  async watch(): Promise<void> {
    const { signal } = this.#stopped
    while (!signal.aborted) {
      const waitMs = this.#problem === undefined ? this.#pace.calmLookMs : this.#pace.closeLookMs
      await delay(waitMs, undefined, { signal }).catch(() => {})
      if (!signal.aborted) await this.look()
    }
  }

  stop(): void {
    this.#stopped.abort()
  }

  async #leaseProblem(): Promise<string | undefined> {
    const { kubernetes, log } = this.#options
    try {
      const lease = await kubernetes.get(LEASES, LEASE, this.#call)
      const state = this.#lease.see(lease, performance.now(), Date.now())
      if (state.kind === 'undecided')
        return `It is not known yet whether ${state.holder} still renews Lease ${LEASE.namespace}/${LEASE.name}`
      if (state.kind === 'held')
        return `Another cloud controller manager runs: ${state.holder} renews Lease ${LEASE.namespace}/${LEASE.name}. ${ADVICE}`
    } catch (error) {
      if (!(error instanceof WindlassError && error.code === 'Forbidden')) throw error
      if (!this.#leaseForbidden) log.warn({ error: messageOf(error) }, 'may not read the lease of other controllers')
      this.#leaseForbidden = true
    }
    return undefined
  }

  /** The first look is the measure for all later ones: only a write that is newer than all known ones was made by somebody who runs. */
  async #lookAtWrites(): Promise<void> {
    const { kubernetes } = this.#options
    this.#listedAtMs = performance.now()
    const lists = await Promise.all([
      kubernetes.list(SERVICES, { project: ({ metadata }) => newestForeignWrite(metadata) }, this.#call),
      kubernetes.list(NODES, { project: ({ metadata }) => newestForeignWrite(metadata) }, this.#call),
    ])
    let newest: ForeignWrite | undefined
    for (const write of lists.flatMap(({ items }) => items))
      if (write && write.atMs > (newest?.atMs ?? 0)) newest = write
    const before = this.#newestWriteMs
    this.#newestWriteMs = Math.max(newest?.atMs ?? 0, before ?? 0)
    if (newest === undefined) return
    if (before !== undefined && newest.atMs > before) this.#suspect(newest, this.#pace.quietMs)
    // Only at the first look, and never for longer than it takes to see whether more is written.
    if (before === undefined) this.#suspect(newest, newest.atMs + this.#pace.quietMs - Date.now())
  }

  #suspect({ manager }: ForeignWrite, forMs: number): void {
    const untilMs = performance.now() + Math.min(forMs, this.#pace.quietMs)
    if (forMs > 0 && untilMs > (this.#writer?.untilMs ?? 0)) this.#writer = { manager, untilMs }
  }

  #writerProblem(): string | undefined {
    if (this.#writer && performance.now() >= this.#writer.untilMs) this.#writer = undefined
    return (
      this.#writer &&
      `Another cloud controller manager runs, or ended less than ${Math.round(this.#pace.quietMs / 1000)} s ago: ${this.#writer.manager} wrote to this cluster's Nodes or Services. ${ADVICE}`
    )
  }

  #settle(problem: string | undefined): void {
    const { log } = this.#options
    const found = problem?.startsWith('Another') === true
    this.#problem = problem
    if (found && !this.#found) {
      log.error({ problem }, 'another cloud controller manager runs: nothing is written')
      this.#event('Warning', 'OtherControllerRuns', problem ?? '')
      void this.#options.onFound?.()
    }
    if (this.#found && problem === undefined) {
      log.info('the other cloud controller manager is gone: going on')
      this.#event('Normal', 'OtherControllerGone', 'No other cloud controller manager runs any more; Windlass goes on')
    }
    if (found || problem === undefined) this.#found = found
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { kubernetes, recorder, log } = this.#options
    const record = async () => {
      const namespace = await kubernetes.get(NAMESPACES, { name: LEASE.namespace }, this.#call)
      if (!namespace) return
      const { name, uid } = namespace.metadata
      recorder.record({
        object: { kind: 'Namespace', name, uid },
        type,
        reason,
        message,
        component: COMPONENT.windlass,
      })
    }
    record().catch((error) => log.warn({ error: messageOf(error) }, 'could not record an Event on a namespace'))
  }
}

const ADVICE =
  'Windlass only plans until it is gone: scale it down, or set WINDLASS_IGNORE_OTHER_CONTROLLER if they share no objects'
