import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../call.ts'
import type { Cluster } from '../controllers/cluster.ts'
import { kindOf, messageOf } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'

const RETRY_MS = { first: 500, longest: 30_000 }

/** Whether each cloud of a cluster has answered once to its credential. Until then nothing of the cluster is touched. */
export class FirstContact {
  readonly #cluster: Cluster
  readonly #log: Logger
  readonly #stopped = new AbortController()
  #problem: string | undefined = 'The cloud has not been asked yet'

  constructor(cluster: Cluster, log: Logger) {
    this.#cluster = cluster
    this.#log = log
  }

  /** Why the cluster has to wait; undefined when it need not. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** One try. Throws `permanent` when a credential or a setting is refused; other troubles stay in `problem`. */
  async attempt(): Promise<void> {
    const call: Call = {
      signal: this.#stopped.signal,
      urgency: 'user',
      log: this.#log,
      beforeWrite: async () => {},
    }
    try {
      await Promise.all(this.#cluster.clouds.map((cloud) => cloud.check(call)))
      this.#problem = undefined
    } catch (error) {
      this.#problem = messageOf(error)
      if (kindOf(error) === 'permanent') throw error
      this.#log.warn({ error: this.#problem }, 'the cloud does not answer yet')
    }
  }

  /** Tries until it succeeds: a refused credential may be put right in its file. */
  async persist(): Promise<void> {
    for (let waitMs = RETRY_MS.first; this.#problem !== undefined && !this.#stopped.signal.aborted; waitMs *= 2) {
      await delay(Math.min(waitMs, RETRY_MS.longest), undefined, { signal: this.#stopped.signal }).catch(() => {})
      if (this.#stopped.signal.aborted) return
      await this.attempt().catch((error) =>
        this.#log.error({ error: messageOf(error) }, 'a cloud refuses this cluster: put the setting right'),
      )
    }
    if (this.#problem === undefined) this.#log.info('all clouds have answered')
  }

  stop(): void {
    this.#stopped.abort()
  }
}
