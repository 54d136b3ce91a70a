import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../call.ts'
import type { CloudProvider } from '../cloud/provider.ts'
import type { Cluster } from '../controllers/cluster.ts'
import { kindOf, messageOf } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'

const RETRY_MS = { first: 500, longest: 30_000 }
/** A start waits so long for a cloud that says nothing at all. */
const PATIENCE_MS = 5000

/**
 * Whether each cloud of a cluster has answered once to its credential. Until one has, nothing of the cluster is touched; one that does not
 * answer holds up its own part only.
 */
export class FirstContact {
  readonly #cluster: Pick<Cluster, 'clouds'>
  readonly #log: Logger
  readonly #stopped = new AbortController()
  /** Clouds that have not answered, and why. */
  readonly #silent: Map<CloudProvider, string>
  readonly #asking = new Map<CloudProvider, Promise<void>>()

  constructor(cluster: Pick<Cluster, 'clouds'>, log: Logger) {
    this.#cluster = cluster
    this.#log = log
    this.#silent = new Map(cluster.clouds.map((cloud) => [cloud, `${cloud.name} has not answered yet`]))
  }

  /** What is not in order; undefined when all is. */
  get problem(): string | undefined {
    return this.#silent.size === 0 ? undefined : [...this.#silent.values()].join('; ')
  }

  /** Why the cluster has to wait; undefined when it need not. */
  get obstacle(): string | undefined {
    return this.#silent.size === this.#cluster.clouds.length ? this.problem : undefined
  }

  /** One try, at the start. Throws `permanent` when all clouds refuse a credential or a setting; other troubles stay in `problem`. */
  async attempt(): Promise<void> {
    const patience = new AbortController()
    try {
      await Promise.race([this.#askAll(), delay(PATIENCE_MS, undefined, { signal: patience.signal })])
    } finally {
      patience.abort()
    }
  }

  /** Tries until all have answered: a refused credential may be put right in its file. */
  async persist(): Promise<void> {
    for (let waitMs = RETRY_MS.first; this.#silent.size > 0 && !this.#stopped.signal.aborted; waitMs *= 2) {
      await delay(Math.min(waitMs, RETRY_MS.longest), undefined, { signal: this.#stopped.signal }).catch(() => {})
      if (this.#stopped.signal.aborted) return
      await this.#askAll().catch(() => {})
    }
    if (this.#silent.size === 0) this.#log.info('all clouds have answered')
  }

  stop(): void {
    this.#stopped.abort()
  }

  async #askAll(): Promise<void> {
    const answers = await Promise.allSettled([...this.#silent.keys()].map((cloud) => this.#ask(cloud)))
    const refused = answers.filter((answer) => answer.status === 'rejected')
    // A cloud that refuses holds up its own part only, as long as there is another.
    if (refused.length > 0 && refused.length === this.#cluster.clouds.length) throw refused[0]?.reason
  }

  #ask(cloud: CloudProvider): Promise<void> {
    const asking = this.#asking.get(cloud) ?? this.#check(cloud).finally(() => this.#asking.delete(cloud))
    this.#asking.set(cloud, asking)
    return asking
  }

  async #check(cloud: CloudProvider): Promise<void> {
    const { signal } = this.#stopped
    const call: Call = { signal, urgency: 'user', log: this.#log, beforeWrite: async () => {} }
    try {
      await cloud.check(call)
      this.#silent.delete(cloud)
    } catch (error) {
      const message = messageOf(error)
      this.#silent.set(cloud, message)
      if (kindOf(error) === 'permanent') {
        this.#log.error({ cloud: cloud.name, error: message }, 'the cloud refuses this cluster: put the setting right')
        throw error
      }
      this.#log.warn({ cloud: cloud.name, error: message }, 'the cloud does not answer yet')
    }
  }
}
